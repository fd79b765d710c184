kernel k(x: tensor<f32>[N], n: i32) {
  let i = sum<over ctx.block>(n)
}
