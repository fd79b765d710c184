kernel k(A: tensor<f32>[M, N], n: i32, B: tensor<f32>[M]) {
  let t = A[0 :+ 16, 0 :+ 16]
  let a = transpose(B[0 :+ 16])
  let b = reshape(t, 16, 17)
  let c = reshape(t, n)
  let d = iota(4, 4)
  let e = iota<2>(4, 4)
  let f = iota(n)
  let g = full(1.0)
  let h = full<i32>(1.5, 4)
  let i = full(t, 4)
  let j = tril(t, 1.5)
  let l = triu(B[0 :+ 16])
  let m = full<index>(1, 4)
  let o = transpose(A[0, 0])
  let p = flat(t, 1)
  let q = transpose<1>(t)
  let r = full(1.0, 0)
}
