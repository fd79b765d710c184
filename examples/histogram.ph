// histogram: H[v] grows by the number of elements of X that are v.
//
// Teaches: atomic updates, and a tile that threads write element by element. Each CTA counts in a
// tile of its own, which the compiler keeps in shared memory, where updates by many threads are
// cheap, and adds it to H once. `barrier()` is the author's here: it orders the updates of single
// elements before other threads read them.
//
// Launch any number of CTAs along x; H is not cleared.
@launch(256)
@grid(x = ceildiv(N, 4096))
kernel histogram(X: tensor<u8>[N], H: tensor<i32>[256]) {
  var own: tile<i32>[256] = 0
  for i in range(ctx.block.x * ctx.threads + ctx.thread, N, ctx.blocks.x * ctx.threads) {
    atomic_add(own, X[i], 1)
  }
  barrier()
  atomic_add(H, ctx.thread, own[ctx.thread])
}
