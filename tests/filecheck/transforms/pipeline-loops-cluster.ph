// RUN: phobos-compile %s --chip sm_90a --tensor-maps --extent-multiple 16 --kernel alone -o - | filecheck %s --check-prefix ALONE
// RUN: phobos-compile %s --chip sm_90a --tensor-maps --extent-multiple 16 --kernel pair -o - | filecheck %s --check-prefix PAIR

// In clusters all threads copy, unless a tensor copy has to round on the way.
// ALONE: cp.async.bulk.tensor
@launch(128)
@dynshared
kernel alone(A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f32>[M, N]) {
  var sums: tile<f32>[64, 64] = 0.0
  for k in range(0, K, 64) {
    sums += dot(A[ctx.block.x * 64 :+ 64, k :+ 64], B[k :+ 64, 0 :+ 64])
  }
  C[ctx.block.x * 64 :+ 64, 0 :+ 64] = sums
}

// PAIR: .reqnctapercluster 2, 1, 1
// PAIR: cp.async.cg
// PAIR-NOT: cp.async.bulk.tensor
@launch(128)
@cluster(2)
@dynshared
kernel pair(A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f32>[M, N]) {
  let row = ctx.block.x / ctx.cluster.size * 64
  var sums: tile<f32>[64, 64] = 0.0
  for k in range(ctx.cluster.rank * 64, K, 128) {
    sums += dot(A[row :+ 64, k :+ 64], B[k :+ 64, 0 :+ 64])
  }
  C[row + ctx.cluster.rank * 32 :+ 32, 0 :+ 64] = cluster_sum(sums)
}
