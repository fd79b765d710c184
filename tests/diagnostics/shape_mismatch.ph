kernel k(a: tensor<f32>[M, N], b: tensor<f32>[N]) {
  let t = a[0 :+ 64, 0 :+ 32]
  let u = a[0 :+ 64, 0 :+ 16]
  let v = b[0 :+ 32]
  a[0 :+ 64, 0 :+ 32] = t + u
  a[0 :+ 64, 0 :+ 32] = t * v
  a[0 :+ 32, 0 :+ 32] = t
  b[0] = t
}
