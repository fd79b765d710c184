// Attention, forward: O = softmax(scale * Q K^T) V for each of H query heads, in f32, by multiply-adds.
//
// CTA (x, z) computes BLOCK_M rows of O for head z. Each of the G key heads serves H / G query
// heads; the heads of several batches may follow each other. The softmax is taken as the keys come
// (its maximum and sum so far are corrected by each block), so that the scores never leave the
// registers. With CAUSAL = 1 a query sees the keys up to its own place, the last query all of
// them. A row that sees no key is 0. `scale` is positive.
//
// D is the size of a head, any up to 256. Above 128, BLOCK_N = 16 fits every chip.

@autotune(
  BLOCK_M in [32, 128], BLOCK_N in [32, 16, 64], THREADS in [128, 256],
  D in [64, 32, 80, 96, 128, 256], CAUSAL in [0, 1]
)
@launch(THREADS)
@dynshared
@pipeline
kernel attention(
  Q: tensor<f32>[H, S, D], K: tensor<f32>[G, T, D], V: tensor<f32>[G, T, D],
  O: tensor<f32>[H, S, D], scale: f32
) {
  let h = ctx.block.z
  let group = h / (H / G)
  let start = ctx.block.x * BLOCK_M
  let q = Q[h, start :+ BLOCK_M, :]
  let factor = scale * 1.4426950408889634  // exp(x) is exp2(x * log2(e))
  var last = T
  var limit = full(i32(T), 1, BLOCK_M, 1)  // each row sees the keys before this one
  if CAUSAL == 1 {
    last = min(T, start + BLOCK_M + T - S)
    limit = min(limit, iota<1>(1, BLOCK_M, 1) + i32(start + T - S + 1))
  }
  var top: tile<f32>[1, BLOCK_M, 1] = -inf
  var total: tile<f32>[1, BLOCK_M, 1] = 0.0
  var acc: tile<f32>[1, BLOCK_M, D] = 0.0
  for n in range(0, last, BLOCK_N) {
    let scores = dot_t(q, K[group, n :+ BLOCK_N, :])
    let s = where(iota<2>(1, 1, BLOCK_N) < limit - i32(n), scores, -inf)
    let higher = max(top, max<over 2>(s))
    let base = where(higher == -inf, 0.0, higher)
    let p = exp2((s - base) * factor)
    let correction = exp2((top - base) * factor)  // 1 where the maximum stays
    total = total * correction + sum<over 2>(p)
    acc = acc * correction
    acc += dot(p, V[group, n :+ BLOCK_N, :])
    top = higher
  }
  O[h, start :+ BLOCK_M, :] = acc * (1.0 / where(total == 0.0, 1.0, total))
}
