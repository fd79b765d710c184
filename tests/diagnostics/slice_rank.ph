kernel k(A: tensor<f32>[M, N], v: tensor<f32>[N]) {
  A[0] = 1.0
  v[0, 0 :+ 4] = 0.0
  let x = A[0, 1, 2]
}
