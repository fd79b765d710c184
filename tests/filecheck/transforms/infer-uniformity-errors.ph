// RUN: not phobos-opt %s -p ph-infer-uniformity 2>&1 | filecheck %s

// CHECK:      infer-uniformity-errors.ph:[[# @LINE + 14]]:5: error: `barrier()` needs uniform control flow, but only some threads get here
// CHECK-NEXT:  {{[0-9]+}} |     barrier()
// CHECK-NEXT:     |     ^~~~~~~~~
// CHECK-NEXT: infer-uniformity-errors.ph:[[# @LINE + 9]]:3: note: this `if` splits the threads: its condition is varying
// CHECK:      note: varying, since it is computed from a value that is
// CHECK:      infer-uniformity-errors.ph:[[# @LINE + 5]]:15: note: `ctx.lane` differs between lanes
// CHECK-NEXT:  {{[0-9]+}} |   let first = ctx.lane
// CHECK:      help: move it out

kernel divergent_barrier(x: tensor<f32>[N]) {
  let first = ctx.lane
  let other = first + 1
  if other == 1 {
    x[0] = 1.0
    barrier()
  }
}
