//@ set BLOKC=64
@autotune(BLOCK in [16, 64])
kernel k(x: tensor<f32>[N]) {
  x[0 :+ BLOCK] = 0.0
}
