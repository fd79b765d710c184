// RUN: phobos-opt %s -p ph-swizzle-blocks | filecheck %s

// CHECK: [[X:%.*]] = ctx.block x
// CHECK: [[Y:%.*]] = ctx.block y
// CHECK: [[COLUMNS:%.*]] = ctx.blocks x
// CHECK: [[ROWS:%.*]] = ctx.blocks y
// CHECK: [[BAND:%.*]] = arith.constant 8 : index
// CHECK: [[BEFORE:%.*]] = arith.muli [[Y]], [[COLUMNS]]
// CHECK: [[LINEAR:%.*]] = arith.addi [[X]], [[BEFORE]]
// CHECK: [[SIZE:%.*]] = arith.muli [[ROWS]], [[BAND]]
// CHECK: [[NUMBER:%.*]] = arith.divui [[LINEAR]], [[SIZE]]
// CHECK: [[FIRST:%.*]] = arith.muli [[NUMBER]], [[BAND]]
// CHECK: [[INSIDE:%.*]] = arith.remui [[LINEAR]], [[SIZE]]
// CHECK: [[LEFT:%.*]] = arith.subi [[COLUMNS]], [[FIRST]]
// CHECK: [[WIDTH:%.*]] = arith.minui [[LEFT]], [[BAND]]
// CHECK: [[COLUMN:%.*]] = arith.remui [[INSIDE]], [[WIDTH]]
// CHECK: [[NEW_X:%.*]] = arith.addi [[FIRST]], [[COLUMN]]
// CHECK: [[NEW_Y:%.*]] = arith.divui [[INSIDE]], [[WIDTH]]
// CHECK-NOT: ctx.block {{[xy]}}
// CHECK: memref.store {{.*}}[[[NEW_Y]], [[NEW_X]]]
@swizzle
kernel both(C: tensor<f32>[M, N]) {
  C[ctx.block.y, ctx.block.x] = 1.0
}

// One axis alone has nothing to gain.
// CHECK: ctx.block x
// CHECK-NOT: arith.divui
@swizzle
kernel one(C: tensor<f32>[M, N]) {
  C[0, ctx.block.x] = 1.0
}
