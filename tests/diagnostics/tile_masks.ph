kernel k(A: tensor<f32>[M, N], q: tensor<i8>[M, N]) {
  let t = A[0 :+ 16, 0 :+ 16]
  let a = pad(t, -inf)
  let b = pad(A[0, 0], 1.0)
  let c = pad(q[0, 0 :+ 16], 300)
  let d = pad(q[0, 0 :+ 16], 0.5)
  let e = pad(A[0, 0 :+ 16])
  let f = valid(t + 1)
  let g = valid(A[0, 0])
  let h = pad(A[0, 0 :+ 16], t)
}
