kernel none(x: tensor<f32>[N], y: tensor<f32>[N]) {
  y[ctx.cluster.rank :+ 16] = x[ctx.cluster.siz :+ 16]
  let all = ctx.cluster
  let size = ctx.cluster.size
  y[0 :+ 16] = cluster_sum(x[0 :+ 16])
}

@cluster(4)
@swizzle
kernel wrong(x: tensor<f32>[N], y: tensor<i8>[N], z: tensor<f32>[A, B, C, D, E]) {
  x[0 :+ 4] = cluster_sum(x[0 :+ 18])
  y[0 :+ 4] = cluster_sum(y[0 :+ 16])
  z[0 :+ 1, 0, 0, 0, 0] = cluster_sum(z[0 :+ 4, 0, 0, 0, 0])
  x[0 :+ 4] = cluster_sum(1.0)
}

@cluster(3)
kernel three(x: tensor<f32>[N]) { x[0 :+ 4] = cluster_sum(x[0 :+ 4]) }

@cluster(16)
kernel sixteen(x: tensor<f32>[N]) { x[0 :+ 4] = cluster_sum(x[0 :+ 4]) }

@cluster
kernel how_many(x: tensor<f32>[N]) { x[0 :+ 4] = cluster_sum(x[0 :+ 4]) }
