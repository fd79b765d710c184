// RUN: not phobos-opt %s -p ph-infer-uniformity 2>&1 | filecheck %s

// CHECK:      infer-uniformity-errors.ph:[[# @LINE + 17]]:5: error: `barrier()` needs uniform control flow, but only some threads get here
// CHECK-NEXT:  {{[0-9]+}} |     barrier()
// CHECK-NEXT:     |     ^~~~~~~~~
// CHECK-NEXT: infer-uniformity-errors.ph:[[# @LINE + 12]]:3: note: this `if` splits the threads: its condition is varying
// CHECK-NEXT:  {{[0-9]+}} |   if other == 1 {
// CHECK-NEXT:     |   ^~~~~~~~~~~~~
// CHECK-NEXT: infer-uniformity-errors.ph:[[# @LINE + 8]]:15: note: `other` is varying: computed from a varying value
// CHECK-NEXT:  {{[0-9]+}} |   let other = first + 1
// CHECK-NEXT:     |               ^~~~~~~~~
// CHECK-NEXT: infer-uniformity-errors.ph:[[# @LINE + 4]]:15: note: `ctx.lane` differs between lanes
// CHECK:      help: move it to where all threads get, or make the condition the same in every thread

kernel divergent_barrier(x: tensor<f32>[N]) {
  let first = ctx.lane
  let other = first + 1
  if other == 1 {
    x[0] = 1.0
    barrier()
  }
}

// One statement is one error, though a load and a store are wrong.
// CHECK:      infer-uniformity-errors.ph:[[# @LINE + 5]]:5: error: a tile operation needs uniform control flow
// CHECK-NOT:  a tile operation

kernel divergent_tile(x: tensor<f32>[N], out: tensor<f32>[N]) {
  if ctx.warp == 0 {
    out[0 :+ 64] = x[0 :+ 64]
  }
}

// CHECK:      infer-uniformity-errors.ph:[[# @LINE + 8]]:10: error: a collective over `ctx.lane` needs at least warp-uniform control flow, but only some lanes of a warp get here
// CHECK:      note: this `for` splits the threads: its bounds are varying
// CHECK:      note: `ctx.lane` differs between lanes
// CHECK:      help: let every thread go round equally often

kernel fold_in_a_lane_loop(x: tensor<f32>[N], out: tensor<f32>[N]) {
  var t = 0.0
  for i in range(ctx.lane, N, ctx.lanes) {
    t += sum<over ctx.lane>(x[i])
  }
  out[ctx.thread] = t
}
