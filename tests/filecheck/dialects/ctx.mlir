// RUN: phobos-opt %s | phobos-opt -f mlir | filecheck %s
// RUN: phobos-opt %s --print-op-generic | filecheck %s --check-prefix GENERIC

func.func @fields() {
  // CHECK: %bx = ctx.block x
  // GENERIC: %bx = "ctx.block"() <{axis = #ctx<axis x>}> : () -> index
  %bx = ctx.block x
  // CHECK-NEXT: %nz = ctx.blocks z
  %nz = ctx.blocks z
  // CHECK-NEXT: %t = ctx.thread
  %t = ctx.thread
  // CHECK-NEXT: %n = ctx.threads
  %n = ctx.threads
  // CHECK-NEXT: %w = ctx.warp
  %w = ctx.warp
  // CHECK-NEXT: %nw = ctx.warps
  %nw = ctx.warps
  // CHECK-NEXT: %l = ctx.lane
  %l = ctx.lane
  // CHECK-NEXT: %nl = ctx.lanes
  %nl = ctx.lanes
  func.return
}
