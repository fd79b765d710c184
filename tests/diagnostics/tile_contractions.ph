kernel k(A: tensor<f32>[M, N], q: tensor<i32>[M, N], h: tensor<f16>[M, N], C: tensor<f16>[M, N],
         E: tensor<f32>[B, M, N]) {
  let t = A[0 :+ 16, 0 :+ 8]
  let a = dot(t, t)
  let b = dot_t(t, A[0 :+ 16, 0 :+ 4])
  let c = t_dot(t, A[0 :+ 8, 0 :+ 4])
  let d = dot(q[0 :+ 8, 0 :+ 8], q[0 :+ 8, 0 :+ 8])
  let e = dot(t, A[0, 0])
  let f = dot(E[0 :+ 2, 0 :+ 8, 0 :+ 8], E[0 :+ 3, 0 :+ 8, 0 :+ 8])
  let g = dot(t, E[0, 0 :+ 8, 0 :+ 8])
  var acc: tile<bf16>[8, 8] = 0
  acc += dot(h[0 :+ 8, 0 :+ 8], h[0 :+ 8, 0 :+ 8])
  let i = dot(t)
  C[0 :+ 8, 0 :+ 8] = dot(h[0 :+ 8, 0 :+ 8], h[0 :+ 8, 0 :+ 8])
}
