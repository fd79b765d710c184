kernel k(x: tensor<f32>[N]) {
  if ctx.thread == 0 {
    let value = x[0]
  }
  x[1] = value
}
