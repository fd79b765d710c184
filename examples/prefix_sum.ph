// prefix_sum: O[i] is the sum of X[0] to X[i], by all CTAs of a grid together.
//
// Teaches: a barrier of the whole grid. Each CTA adds up a share of X and leaves the sum in `parts`;
// `grid_barrier` makes all wait until every sum is there; then each adds those of the CTAs before it
// and scans its share. `@persistent` says that all CTAs must run at once, without which they would
// wait forever; the launcher then takes as many as the GPU holds.
//
// Launch at most B CTAs along x; `state` is zero before the first launch.
@persistent
@autotune(BLOCK in [1024, 4096])
kernel prefix_sum(X: tensor<f32>[N], O: tensor<f32>[N], parts: tensor<f32>[B],
                  state: tensor<i32>[2]) {
  let share = (N + BLOCK * ctx.blocks.x - 1) / (BLOCK * ctx.blocks.x) * BLOCK
  let first = ctx.block.x * share
  let last = min(first + share, N)
  var total: tile<f32>[1] = 0
  for i in range(first, last, BLOCK) {
    total += sum<over 0>(X[i :+ BLOCK])
  }
  parts[ctx.block.x :+ 1] = total
  grid_barrier(state)
  var before: f32 = 0
  for b in range(0, ctx.block.x) {
    before += parts[b]
  }
  var carry = full(before, 1)
  for i in range(first, last, BLOCK) {
    let x = X[i :+ BLOCK]
    O[i :+ BLOCK] = scan<over 0>(x) + carry
    carry += sum<over 0>(x)
  }
}
