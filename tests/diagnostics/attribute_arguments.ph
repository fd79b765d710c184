@autotune(BLOCK = 16, T in [64, 16])
@launch(2048)
@pipeline(0)
@tensorcore(bf32)
@dynshared(3)
@registers
@registers
@grid(w = 3, y = ceildev(N, 4), z = alpha)
kernel k(x: tensor<f32>[N], alpha: f32) {
  x[0] = 0.0
}
