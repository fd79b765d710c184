kernel k(x: tensor<f32>[N], count: i32) {
  let max = x[0]
  x[1] = max(max, 1.0)
  let some = count<over ctx.lane>(count > 0)
}
