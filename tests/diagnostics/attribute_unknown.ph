@autotun(BLOCK in [16, 64])
@lauch(256)
@banana
kernel k(x: tensor<f32>[N]) {
  x[0] = 0.0
}
