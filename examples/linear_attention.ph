// linear_attention: o_t = S_t^T q_t with S_t = diag(exp(g_t)) S_(t-1) + k_t v_t^T, one CTA a head.
//
// Teaches: scans and triangles. The recurrence over t is walked CHUNK steps at a time. Inside a chunk
// the decay between two steps is a difference of running sums of g, `cumsum`; who attends to whom
// is a product of matrices of which `tril` keeps the past; `t_dot` adds the chunk to the state, a
// tile that stays in registers.
//
// Launch H CTAs along x.
@autotune(CHUNK in [16, 64], D in [32, 128], E in [32, 128])
@launch(128)
kernel linear_attention(Q: tensor<f32>[H, T, D], K: tensor<f32>[H, T, D], G: tensor<f32>[H, T, D],
                        V: tensor<f32>[H, T, E], O: tensor<f32>[H, T, E]) {
  let h = ctx.block.x
  var state = full(0.0, D, E)
  for t in range(0, T, CHUNK) {
    let q = reshape(Q[h, t :+ CHUNK, :], CHUNK, D)
    let k = reshape(K[h, t :+ CHUNK, :], CHUNK, D)
    let g = reshape(G[h, t :+ CHUNK, :], CHUNK, D)
    let v = reshape(V[h, t :+ CHUNK, :], CHUNK, E)
    let since = cumsum(g)
    let whole = sum<over 0>(g)
    let decayed = q * exp(since)
    let past = tril(dot_t(decayed, k * exp(-since)))
    O[h, t :+ CHUNK, :] = reshape(dot(past, v) + dot(decayed, state), 1, CHUNK, E)
    state = transpose(exp(whole)) * state + t_dot(k * exp(whole - since), v)
  }
}
