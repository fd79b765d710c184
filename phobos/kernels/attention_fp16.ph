// Attention, forward: O = softmax(scale * Q K^T) V for each of H query heads, in f16 on tensor cores.
//
// CTA (x, z) computes BLOCK_M rows of O for head z. Each of the G key heads serves H / G query
// heads; the heads of several batches may follow each other. The softmax is taken as the keys come
// (its maximum and sum so far are corrected by each block), so that the scores never leave the
// registers. With CAUSAL = 1 a query sees the keys up to its own place, the last query all of
// them. A row that sees no key is 0. `scale` is positive.
//
// D is the size of a head, any up to 256. Above 128, BLOCK_N = 16 and THREADS = 256 fit every chip.
// CTAS are to run on a multiprocessor at one time at least, which limits the registers of a thread.

@autotune(
  BLOCK_M in [64, 128], BLOCK_N in [64, 32, 128], THREADS in [128, 256],
  D in [64, 32, 80, 96, 128, 256], CAUSAL in [0, 1],
  CTAS in [1, 2, 3]
)
@require(CTAS * THREADS <= 384)
@launch(THREADS, CTAS)
@grid(x = ceildiv(S, BLOCK_M), z = H)
@dynshared
@pipeline
kernel attention(
  Q: tensor<f16>[H, S, D], K: tensor<f16>[G, T, D], V: tensor<f16>[G, T, D],
  O: tensor<f16>[H, S, D], scale: f32
) {
  let h = ctx.block.z
  let group = h / (H / G)
  var block = ctx.block.x
  if CAUSAL == 1 {
    block = ctx.blocks.x - 1 - block  // rows that see the most keys first
  }
  let start = block * BLOCK_M
  let q = Q[h, start :+ BLOCK_M, :]
  let factor = scale * 1.4426950408889634  // exp(x) is exp2(x * log2(e))
  let keys = min(T, extent(V, 1))  // which are the same
  var first_limit = keys  // the first row sees the keys before this one, the last row those
  var last_limit = keys   // before this one, and each row those before its `limit`
  var limit = full(i32(keys), 1, BLOCK_M, 1)
  if CAUSAL == 1 {
    first_limit = min(keys, start + keys - S + 1)
    last_limit = min(keys, start + keys - S + BLOCK_M)
    limit = min(limit, iota<1>(1, BLOCK_M, 1) + i32(start + keys - S + 1))
  }
  var top: tile<f32>[1, BLOCK_M, 1] = -inf
  var total: tile<f32>[1, BLOCK_M, 1] = 0.0
  var acc: tile<f32>[1, BLOCK_M, D] = 0.0

  // Blocks of keys that all rows see.
  let edge = max(0, first_limit) / BLOCK_N * BLOCK_N
  for n in range(0, edge, BLOCK_N) {
    let s = dot_t(q, K[group, n :+ BLOCK_N, :])
    let higher = max(top, max<over 2>(s))
    let p = exp2(s * factor - higher * factor)
    let correction = exp2((top - higher) * factor)
    total = total * correction + sum<over 2>(p)
    acc = acc * correction
    acc += dot(f16(p), V[group, n :+ BLOCK_N, :])
    top = higher
  }

  // Blocks with keys that some rows do not see.
  for n in range(edge, last_limit, BLOCK_N) {
    let scores = dot_t(q, K[group, n :+ BLOCK_N, :])
    let s = where(iota<2>(1, 1, BLOCK_N) < limit - i32(n), scores, -inf)
    let higher = max(top, max<over 2>(s))
    let base = where(higher == -inf, 0.0, higher)
    let p = exp2(s * factor - base * factor)
    let correction = exp2((top - base) * factor)  // 1 where the maximum stays
    total = total * correction + sum<over 2>(p)
    acc = acc * correction
    acc += dot(f16(p), V[group, n :+ BLOCK_N, :])
    top = higher
  }
  O[h, start :+ BLOCK_M, :] = f16(acc * (1.0 / where(total == 0.0, 1.0, total)))
}
