kernel k(A: tensor<f32>[M, N], q: tensor<i8>[M, 64]) {
  let t = A[0 :+ 16, 0 :+ 16]
  let a = sum<over 2>(t)
  let b = max<over 1, 1>(t)
  let c = any<over 0>(t)
  let d = prod<over 0>(t < 1)
  let e = sum<over 0>(A[0, 0])
  let f = sum<over 0>(t, t)
  let g = exp<over 0>(t)
  let h = rowmax(q[0, :])
  let i = rowsum(flat(t))
  let j = sum(t)
  let l = rowmax(A[0, 0])
  let m = max<over 1>()
}
