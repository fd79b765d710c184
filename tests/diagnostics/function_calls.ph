fn f(a: f32, b: i32) -> f32 { return a * f32(b) }
fn loop(a: f32) -> f32 { return loop(a - 1.0) }
fn row(T: tensor<f32>[R, 8]) -> f32 { return T[0, 0] }
fn square(t: tile<f32>[S, S]) -> tile<f32>[S, S] { return t * t }
kernel k(x: tensor<f32>[N], y: tensor<f16>[N, 8], z: tensor<f32>[N, 4]) {
  x[0] = f(x[1])
  x[1] = f(x[1], 1.5)
  x[2] = loop(2.0)
  x[3] = row(y)
  x[4] = row(z)
  x[5] = row(x[0])
  let t = square(x[0 :+ 4])
  let u = square(z[0 :+ 2, 0 :+ 4])
  x[6] = z(3)
}
