kernel k(X: tensor<f32>[N], Y: tensor<f32>[N]) {
  let a = X[0 :+ 64].sum()
  let b = X.load(0)
  let c = a.T
  let d = X.shape[0]
  let e = X.double()
}
