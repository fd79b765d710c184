// RUN: phobos-opt %s -p ph-analyze-extents,ph-select-contraction{chip=sm_75},ph-assign-layouts,ph-expand-exchanges,ph-pipeline-loops{chip=sm_75},ph-prefetch-fragments | filecheck %s

// Both tiles are carried whole, in 64 registers of a thread, so that there are two stages. Loads go
// on past the end, where they find nothing: their place is two steps further, whatever is there.
// CHECK: scf.for
// CHECK-NEXT: tile.stage
// CHECK-NEXT: tile.stage
// The fragments of the next step, some moves, and the products of this one, between which the moves
// are done.
// CHECK: tile.load %{{.*}} -> tensor<128x8xf16
// CHECK-NEXT: tile.load %{{.*}} -> tensor<8x128xf16
// CHECK: [[TWO:%[0-9]+]] = arith.addi [[STEP:%[0-9]+]], [[STEP]] {phobos.between_products}
// CHECK-NEXT: [[PLACE:%[0-9]+]] = arith.addi %k, [[TWO]] {phobos.between_products}
// CHECK: tile.store %{{.*}} ordered {phobos.between_products}
// CHECK-NEXT: tile.load %A[%row, [[PLACE]]] {{.*}} {phobos.part, phobos.between_products}
// CHECK: [[ROW:%[0-9]+]] = arith.addi %row, %{{[0-9]+}} {phobos.between_products}
// CHECK-NEXT: tile.load %A{{\[}}[[ROW]], [[PLACE]]] {{.*}} {phobos.part, phobos.between_products}
// CHECK: tile.dot
// CHECK-NOT: between_products
// CHECK: tile.load %{{.*}} -> tensor<128x8xf16
// CHECK-NEXT: tile.load %{{.*}} -> tensor<8x128xf16
// CHECK-NEXT: tile.store %{{.*}} ordered {phobos.between_products}
// The last products of an iteration are behind its barrier and the next one's first fragments.
// CHECK: tile.next_stage
// CHECK-NOT: between_products
// CHECK: tile.load %{{.*}} -> tensor<128x8xf16
// CHECK-NEXT: tile.load %{{.*}} -> tensor<8x128xf16
// CHECK-NEXT: tile.dot
// CHECK-NEXT: scf.yield
// CHECK-NOT: tile.dot
@launch(128)
@dynshared
@pipeline
kernel product(A: tensor<f16>[M, 1000], B: tensor<f16>[1000, 264], C: tensor<f32>[M, 264]) {
  let row = ctx.block.x * 128
  let column = ctx.block.y * 128
  var acc: tile<f32>[128, 128] = 0.0
  for k in range(0, 1000, 64) {
    acc += dot(A[row :+ 128, k :+ 64], B[k :+ 64, column :+ 128])
  }
  C[row :+ 128, column :+ 128] = acc
}
