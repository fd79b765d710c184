kernel k(x: tensor<f32>[N]) {
  var a: f32
  let t: tile<f32>[4, 4]
  var u
  var v: tile<f32>[N]
  x[0] = a
}
