kernel k(a: i8, b: u16, h: f16, x: tensor<i8>[N]) {
  x[0] = a + 300
  x[1] = -129
  let c = b - 70000
  let d = h * 1e6
  let e = 5000000000
  let f: u8 = -1
}
