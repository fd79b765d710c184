//@ set BLOCK=1.5
//@ set TILE=0
@autotune(BLOCK in [16, 64], TILE in [8])
kernel k(x: tensor<f32>[N], y: tensor<f32>[TILE]) {
  x[0 :+ BLOCK] = 0.0
}
