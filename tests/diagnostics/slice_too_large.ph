kernel k(A: tensor<f32>[M, N], T: tensor<f32>[A0, A1, A2, A3]) {
  let t = A[0 :+ 4096, 0 :+ 4096]
  let u = T[0 :+ 2, 0 :+ 2, 0 :+ 2, 0 :+ 2]
  let s = sum(A[0, 0 :+ 1024])
}
