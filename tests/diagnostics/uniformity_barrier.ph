kernel by_value(x: tensor<f32>[N], out: tensor<f32>[N]) {
  let t = ctx.thread
  let v = x[t]
  if v > 0.0 {
    barrier()
    out[t] = v
  }
}

kernel after_return(x: tensor<f32>[N], out: tensor<f32>[N]) {
  let t = ctx.thread
  if t >= N {
    return
  }
  out[t] = sum<over ctx.thread>(x[t])
}
