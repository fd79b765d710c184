kernel k(A: tensor<f32>[M, N], B: tensor<f8e4m3>[M], C: tensor<bool>[M], i: tensor<i32>[2]) {
  let t = A[0 :+ 16, 0 :+ 16]
  let u = sort(t)
  let w = topk(t)
  atomic_add(i, 0, 1)
  let r = 7.0
  let m = A[0, 0] % r
  let z = t[0 :+ 4, :]
}
