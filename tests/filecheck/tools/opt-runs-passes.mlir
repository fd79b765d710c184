// RUN: phobos-opt %s -p canonicalize | filecheck %s
// RUN: phobos-opt %s -p canonicalize,cse --print-between-passes 2>&1 \
// RUN:   | filecheck %s --check-prefix STEPS
// RUN: phobos-opt %s -p canonicalize,cse --print-after cse -o %t 2>&1 \
// RUN:   | filecheck %s --check-prefix AFTER
// RUN: phobos-opt -f mlir %t | filecheck %s

func.func @add_zero(%x: i32) -> i32 {
  %zero = arith.constant 0 : i32
  %sum = arith.addi %x, %zero : i32
  func.return %sum : i32
}

// CHECK:      func.func @add_zero(%x: i32) -> i32 {
// CHECK-NEXT:   func.return %x : i32
// CHECK-NEXT: }

// The last pass's result is on stdout and not shown twice.
// STEPS:     // IR after ph-canonicalize:
// STEPS:     func.return %x
// STEPS-NOT: // IR after cse:

// AFTER-NOT: // IR after ph-canonicalize:
// AFTER:     // IR after cse:
