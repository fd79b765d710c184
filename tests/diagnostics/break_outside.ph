kernel k(x: tensor<f32>[N]) {
  if N > 3 { break }
  continue
  for i in range(0, N) { if x[i] > 0.0 { break } }
}
