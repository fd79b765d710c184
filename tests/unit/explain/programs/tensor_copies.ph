//@ sm_90a tensor-maps
// Two loops: the first takes tensor copies, the second computes with what it loads.
@launch(128)
@dynshared
@pipeline(3)
kernel tensor_copies(A: tensor<f16>[M, 256], B: tensor<f16>[256, 128], C: tensor<f32>[M, 128]) {
  let row = ctx.block.x * 64
  var acc: tile<f32>[64, 128] = 0.0
  for k in range(0, 256, 64) {
    acc += dot(A[row :+ 64, k :+ 64], B[k :+ 64, 0 :+ 128])
  }
  for k in range(0, 256, 64) {
    acc += dot(A[row :+ 64, k :+ 64] * 2, B[k :+ 64, 0 :+ 128])
  }
  C[row :+ 64, 0 :+ 128] = acc
}
