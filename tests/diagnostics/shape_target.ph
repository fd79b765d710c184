kernel k(X: tensor<f32>[N], W: tensor<f32>[M, N]) {
  let r = elem(X[0 :+ 4])
  X[0 :+ 4] = r
  let s = r + X[0 :+ 4]
  X[0] = X[0 :+ 4]
  X[0 :+ 16] = W[0, 0 :+ 16]
  store(X[0 :+ 4], iota(4))
}
