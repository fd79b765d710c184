kernel k(x: tensor<float>[N], y: tensor<f23>[N], z: vector, n: index) {
  var a: int = 3
  let b: tensor<f32>[4] = x[0 :+ 4]
}
