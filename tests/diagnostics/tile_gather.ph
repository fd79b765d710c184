kernel k(W: tensor<f32>[V, D], T: tensor<i32>[I], U: tensor<f32>[I], J: tensor<i32>[I, D]) {
  let rows = T[0 :+ 16]
  let a = W[U[0 :+ 16], 0 :+ 8]
  let b = W[rows, rows]
  let c = W[J[0 :+ 4, 0 :+ 4], 0 :+ 8]
  let d = pad(W[rows, 0 :+ 8], 1.0)
  let e = sum(W[rows, 0 :+ 8])
  W[rows, 0 :+ 8] += 1.0
  let f = gather(W, rows, 0)
  let g = gather(rows, rows, 0)
  let h = gather(W, J[0 :+ 4, 0 :+ 4], 2)
  let i = gather(T, U[0 :+ 4], 0)
  let j = gather(T, rows)
}
