kernel k(A: tensor<i8>[M, N], i: i32) {
  let a = sum(A[0 :+ 4, 0])
  let b = elem(A[0, 0])
  let c = word(A[0, 0 :+ 3])
  store(A[0, 0 :+ 4], 300)
  store(A[0, 0], elem(A[0, 0 :+ 4]))
  let d = store(A[0, 0 :+ 4], 1)
}
