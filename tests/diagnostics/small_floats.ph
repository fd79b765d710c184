kernel k(A: tensor<f8e4m3>[M], B: tensor<f8e5m2>[M], n: i32, h: f16) {
  let a = A[0 :+ 16] + 1
  let b = A[0] * B[0]
  let c = sum<over 0>(A[0 :+ 16])
  let d: f8e4m3 = 500.0
  let e = max(A[0], A[1])
  let f = A[0] < A[1]
  let g = bitcast<f8e4m3>(h)
  let i = byteperm(h, 1, 2)
  let j = byteperm(i64(n), 1, 2)
  let l = f16bits(h)
  let m = brev(h)
  let o = pow(n, 2)
  let p = -A[0]
}
