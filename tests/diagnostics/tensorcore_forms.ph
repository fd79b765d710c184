@tensorcore(tf32, wmma)
kernel first(x: tensor<f32>[N]) {
  x[0] = 0.0
}
@tensorcore(wmma, tf32x3)
kernel second(x: tensor<f32>[N]) {
  x[0] = 0.0
}
@tensorcore(wmma, wmmma)
kernel third(x: tensor<f32>[N]) {
  x[0] = 0.0
}
