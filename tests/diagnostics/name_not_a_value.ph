fn helper(a: f32) -> f32 { return a }
kernel other(x: tensor<f32>[N]) { x[0] = 0.0 }
kernel k(x: tensor<f32>[N], y: tensor<f32>[N, M]) {
  let a = x
  let b = y + 1.0
  let c = exp
  let d = helper
  let e = ctx
  other(x)
}
