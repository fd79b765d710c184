fn f(x: f32): f32 { return x }
fn g(x: f32*) -> f32 { return x }
kernel k(X: tensor<f32>[N], n: i32) {
  shared s: tile<f32>[64]
  let a, b = 1, 2
  let c = [1, 2, 3]
  let d = 1 if n > 2 else 0
  let e = (f32)n
  let g = X[::2]
  let h = X[0 :+ 4] @ X[0 :+ 4]
  let i = X[0 :+ 4] as f16
  atomic_add(&X[0], 1.0)
  assert n > 3
  import math
}
