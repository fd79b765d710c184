kernel k(A: tensor<f32>[M, N], n: i32) {
  assert(n)
  assert(n, "n is not 0")
  assert(n > 0, 5)
  print(n)
  print("{} {}", n)
  print("no hole", n)
  print("{ alone", n)
  print("{}", A[0 :+ 4, 0 :+ 4])
  let a = print("x")
  assert(A[0 :+ 4, 0 :+ 4] > 0, "all are positive")
  print()
  print("{}", unknown)
}
