kernel k(A: tensor<f32>[M, N]) {
  let t = A[0 :+ 16, 0 :+ 16]
  let u = sort(t)
  let w = topk(t)
}
