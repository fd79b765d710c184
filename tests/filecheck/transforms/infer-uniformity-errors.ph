// RUN: not phobos-opt %s -p ph-infer-uniformity 2>&1 | filecheck %s

// CHECK:      infer-uniformity-errors.ph:[[# @LINE + 12]]:5: error: `barrier()` needs uniform control flow, but only some threads get here
// CHECK-NEXT: [[# @LINE + 11]] |     barrier()
// CHECK-NEXT: ^~~~~~~~~
// CHECK-NEXT: infer-uniformity-errors.ph:[[# @LINE + 8]]:{{[0-9]+}}: note: this `if` splits the threads: its condition is varying
// CHECK:      infer-uniformity-errors.ph:[[# @LINE + 5]]:13: note: `ctx.lane` differs between lanes
// CHECK-NEXT: let first = ctx.lane
// CHECK:      help: move it out

kernel divergent_barrier(x: tensor<f32>[N]) {
  let first = ctx.lane
  let other = first + 1
  if other == 1 {
    x[0] = 1.0
    barrier()
  }
}
