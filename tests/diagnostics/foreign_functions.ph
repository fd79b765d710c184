kernel k(X: tensor<f32>[N], W: tensor<f32>[M, N], n: i32) {
  __syncthreads()
  let a = float(n)
  let b = zeros(64)
  let c = len(X)
  atomicAdd(X, 0, 1.0)
  let d = __shfl_xor_sync(n, 1)
  printf("n is %d", n)
  let e = sum(X[0 :+ 64], 0)
  let f = max(X[0 :+ 64])
  atomic_add(W, 0, 1.0)
  let g = barrier
}
