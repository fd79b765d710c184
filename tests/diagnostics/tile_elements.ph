fn f(t: tile<f32>[R, C]) -> f32 {
  t[0, 0] = 1
  return t[0, 0]
}
kernel k(A: tensor<f32>[16, 16], O: tensor<f32>[M, N], x: f32) {
  let t = A[:, :]
  var u = A[:, :]
  t[0, 0] = 1
  t[0 :+ 4, :] = 2
  let a = t[0]
  let b = t[16, 0]
  let c = t[x, 0]
  let d = (t + 1)[0, 0, 0]
  let e = x[0]
  u[0 :+ 4, :] = A[0 :+ 5, :]
  u[0, 0] = t
  store(t[0, 0 :+ 4], elem(A[0, 0 :+ 4]))
  let g = (x + 1)[0]
  let h = extent(u, 2)
  let i = f(u)
  let j = pad((t + 1)[0 :+ 4, :], 0)
}
