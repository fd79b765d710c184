//@ set BLOCK=48
@autotune(BLOCK in [16, 64], STEP in [4])
@require(BLOCK % 32 == 0)
@require(N > 3)
@require(BLOCK)
kernel k(x: tensor<f32>[N]) {
  x[0 :+ BLOCK] = 0.0
}
