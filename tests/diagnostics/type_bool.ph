kernel k(x: tensor<f32>[N], n: i32) {
  let p = n > 3
  x[0] = p + 1.0
  if n { x[1] = 0.0 }
  while n - 1 { x[1] = 0.0 }
  let q = p < (n == 2)
  let r = !n || p
  let s = n && p
  let t = -p
}
