// RUN: phobos-opt %s -p ph-canonicalize --print-debuginfo | filecheck %s

// A constant moves to the right, and the product still knows where it was written.

// CHECK-LABEL: func.func @product
// CHECK: %p = arith.muli %x, %c : i32 loc("a.ph":3:7)
func.func @product(%x : i32) -> i32 {
  %c = arith.constant 8 : i32 loc("a.ph":2:3)
  %p = arith.muli %c, %x : i32 loc("a.ph":3:7)
  func.return %p : i32 loc("a.ph":4:3)
}
