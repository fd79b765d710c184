kernel k(x: tensor<f32>[N], n: i32) {
  let i = ctx.thread
  let j = i + 1
  let i = 3
  x[j] = 0.0
}
