// attention: O = softmax(scale * Q @ K^T) @ V in f32, a tile of queries a CTA.
//
// Teaches: a softmax that is never whole. Keys are walked BLOCK_K at a time; `top` is the largest
// score so far, `total` the sum of the exponentials and `acc` their product with V, and when a
// larger score turns up both are scaled down. Keys past S get the score -inf, which counts nothing.
//
// Launch ceildiv(L, BLOCK_Q) CTAs along x.
@autotune(BLOCK_Q in [16, 64], BLOCK_K in [16, 64], D in [32, 128])
@launch(128)
kernel attention(Q: tensor<f32>[L, D], K: tensor<f32>[S, D], V: tensor<f32>[S, D],
                 O: tensor<f32>[L, D], scale: f32) {
  let i = ctx.block.x * BLOCK_Q
  let q = Q[i :+ BLOCK_Q, :] * scale
  var top = full(-inf, BLOCK_Q, 1)
  var total = full(0.0, BLOCK_Q, 1)
  var acc = full(0.0, BLOCK_Q, D)
  for j in range(0, S, BLOCK_K) {
    let exists = iota<1>(1, BLOCK_K) < i32(S - j)
    let scores = where(exists, dot_t(q, K[j :+ BLOCK_K, :]), -inf)
    let higher = max(top, max<over 1>(scores))
    let weights = exp(scores - higher)
    let shrink = exp(top - higher)
    total = total * shrink + sum<over 1>(weights)
    acc = acc * shrink + dot(weights, V[j :+ BLOCK_K, :])
    top = higher
  }
  O[i :+ BLOCK_Q, :] = acc / total
}
