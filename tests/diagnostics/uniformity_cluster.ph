@cluster(4)
@launch(64)
kernel some(x: tensor<f32>[N], n: tensor<i32>[M], y: tensor<f32>[N]) {
  let t = x[ctx.block.x * 64 :+ 64]
  let number = ctx.block.x / ctx.cluster.size
  if number < 3 && N > 100 {
    y[number :+ 16] = cluster_sum(t)
  }
  let is_first = ctx.cluster.rank == 0
  if is_first {
    y[number :+ 16] = cluster_sum(t)
  }
  for i in range(n[0]) {
    y[number :+ 16] = cluster_sum(t)
  }
  if ctx.block.x > 7 { return }
  y[number :+ 16] = cluster_sum(t)
}
