kernel start(x: tensor<f32>[N], out: tensor<f32>[N]) {
  out[ctx.warp * 64 :+ 64] = x[0 :+ 64] * 2.0
}

kernel scalar(x: tensor<f32>[N], out: tensor<f32>[N]) {
  let mine = x[ctx.thread]
  out[0 :+ 64] = x[0 :+ 64] + mine
}
