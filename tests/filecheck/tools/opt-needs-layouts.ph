// RUN: not phobos-opt %s -p ph-lower-to-ptx 2>&1 | filecheck %s

// CHECK: opt-needs-layouts.ph:[[# @LINE + 4]]:16: error: a tile needs a layout: run ph-assign-layouts first
// CHECK-NOT: internal error

kernel twice(x: tensor<f32>[N]) {
  x[0 :+ 64] = 2.0 * x[0 :+ 64]
}
