kernel k(A: tensor<f32>[M, N], f: f32, p: bool) {
  A[f, 0] = 1.0
  A[0, 1.5] = 2.0
  A[0 < 1, 0] = 3.0
}
