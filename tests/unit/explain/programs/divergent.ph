//@ sm_80
fn start(share: index) -> index {
  return ctx.thread * share
}

kernel divergent(X: tensor<f32>[N], T: tensor<i32>[N], Y: tensor<f32>[N], twice: i32) {
  let i = ctx.block.x * ctx.threads + ctx.thread
  let own = start(4)
  if i < N {
    var steps = 0
    while steps < ctx.lane {
      steps += 1
    }
    if ctx.warp == 1 {
      Y[i] = X[2 * i] + f32(steps)
    } else {
      Y[N - 1 - i] = X[own] + X[index(T[i])]
    }
  }
  if twice > 1 {
    barrier()
  }
}
