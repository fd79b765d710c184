kernel k(a: i32, b: u32, x: tensor<i32>[N], f: tensor<u64>[N]) {
  x[0] = a + b
  let i = ctx.thread
  x[i] = i32(f[0] * i)
}
