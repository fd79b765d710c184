// RUN: not phobos-opt %s --split-input-file 2>&1 | filecheck %s
// RUN: phobos-opt %s --split-input-file --parsing-diagnostics --verify-diagnostics \
// RUN:   | filecheck %s

// CHECK: opt-reports-errors.mlir:[[# @LINE + 4]]:{{[0-9]+}}: error: operation tile.lode is not registered
// CHECK: {{ +}}^~~~~~~~~
// CHECK-NOT: Traceback
func.func @unknown_operation() {
  tile.lode
  func.return
}

// -----

// CHECK: error: `arith.addi` is not valid: {{.*}}
// CHECK: note: the operation is: %y = arith.addi %x, %x : i64
func.func @wrong_result(%x: i32) {
  %y = "arith.addi"(%x, %x) : (i32, i32) -> i64
  func.return
}

// -----

// CHECK: k.ph:3:7: error: `arith.addi` is not valid: {{.*}}
// CHECK-NOT: note: the operation is
func.func @wrong_result_with_location(%x: i32) {
  %y = "arith.addi"(%x, %x) : (i32, i32) -> i64 loc("k.ph":3:7)
  func.return
}
