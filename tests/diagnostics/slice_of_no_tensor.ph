kernel k(A: tensor<f32>[M, N], f: f32) {
  let n = f[0]
  let t = A[0 :+ 4, 0 :+ 4]
  let u = t[0, 0]
  let w = N[0]
  B[3] = 1.0
}
