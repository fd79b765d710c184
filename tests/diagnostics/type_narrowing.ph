kernel k(h: tensor<f16>[N], f: tensor<f32>[N], n: tensor<i32>[N]) {
  h[0] = f[0]
  n[0] = f[1]
  n[1] = ctx.thread
  n[2] = 1.5
  var total: f16 = 0.0
  total += f[2]
  h[0 :+ 16] = f[0 :+ 16] * 2.0
}
