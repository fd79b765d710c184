kernel k(x: tensor<f32>[N], h: f32) {
  x[0] = h & 3
  x[1] = ~h
  x[2] = h << 2
}
