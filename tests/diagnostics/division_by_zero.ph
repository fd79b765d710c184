@autotune(BLOCK in [64])
kernel k(x: tensor<i32>[N], n: i32) {
  x[0] = n / 0
  x[1] = n % (BLOCK - 64)
  let a = 7 / 0
  let b = n << 32
  x[2] /= 0
}
