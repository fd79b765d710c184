//@ sm_90
@cluster(4)
@launch(128)
kernel column_sums(x: tensor<f32>[R, C], out: tensor<f32>[C]) {
  let column = ctx.block.x / ctx.cluster.size * 64
  var sums: tile<f32>[32, 64] = 0.0
  for row in range(ctx.cluster.rank * 32, R, ctx.cluster.size * 32) {
    sums += x[row :+ 32, column :+ 64]
  }
  let part = cluster_sum(transpose(sums))
  out[column + ctx.cluster.rank * 16 :+ 16] = flat(sum<over 1>(part))
}
