kernel k(x: tensor<f32>[N], f: f32) {
  for i in range(0, f) { x[i] = 0.0 }
  for i in range(0, N, 0) { x[i] = 0.0 }
  for i in range(0.5, N) { x[i] = 0.0 }
  for i in range(x[0 :+ 4], N) { x[i] = 0.0 }
  for<unroll 0> i in range(4) { x[i] = 0.0 }
}
