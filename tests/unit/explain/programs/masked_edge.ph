//@ sm_80
@launch(128)
@aligned(K = 32)
kernel masked_edge(A: tensor<f16>[M, K], B: tensor<f32>[M, 48], T: tensor<i32>[M],
                   C: tensor<f32>[M, 48], S: tensor<f32>[M, 1]) {
  let row = ctx.block.x * 32
  var total: tile<f32>[32, 1] = 0.0
  for k in range(0, K, 64) {
    total += sum<over 1>(f32(A[row :+ 32, k :+ 64]))
  }
  S[row :+ 32, :] = total
  C[row + 1 :+ 32, :] = B[row :+ 32, :] * 2.0
  var own: tile<f32>[48] = 0.0
  own[ctx.thread % 48] = 1.0
  let last = C[T[row :+ 32], 40 :+ 8]
  C[row :+ 32, 0 :+ 8] = last
}
