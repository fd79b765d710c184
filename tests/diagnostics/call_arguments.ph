kernel k(x: tensor<f32>[N], n: i32) {
  x[0] = fma(x[1], x[2])
  x[1] = sqrt(n)
  x[2] = f32()
  x[3] = clamp(x[0], 1.0)
  barrier(1)
  let b = barrier()
  x[4] = bitcast<f64>(x[0])
  x[5] = bitcast(x[0])
  x[6] = exp<f32>(x[0])
  x[7] = f32(extent(x, 1))
  x[8] = where(n, 1.0, 2.0)
}
