// RUN: phobos-opt %s -p ph-bind-constants,ph-analyze-extents,ph-mask-slices | filecheck %s

"gpu.module"() ({
  "gpu.func"() <{function_type = (memref<?x?xf16>, memref<?xf32>, index) -> (), kernel}> ({
  ^bb0(%x: memref<?x?xf16>, %y: memref<?xf32>, %n: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant dense<0.0> : tensor<1x64xf16>
    %size = memref.dim %x, %c1 : memref<?x?xf16>
    // Whole tiles first: as long as 64 elements from %k on are inside.
    // CHECK:      %size = memref.dim %x, %c1
    // CHECK:      %[[EXTENT:.*]] = memref.dim %x, %{{.*}} : memref<?x?xf16>
    // CHECK-NEXT: %[[BACK:.*]] = arith.constant 63 : index
    // CHECK-NEXT: %[[LAST:.*]] = arith.subi %[[EXTENT]], %[[BACK]] : index
    // CHECK-NEXT: %[[BOUND:.*]] = arith.minsi %size, %[[LAST]] : index
    // CHECK-NEXT: %[[SUM:.*]], %[[NEXT:.*]] = scf.for %k = %c0 to %[[BOUND]] step %c64 iter_args(%{{.*}} = %zero, %{{.*}} = %c0)
    // CHECK-NEXT:   tile.load %x[%n, %k] in_bounds [false, true] vector 4
    // CHECK:        %[[AFTER:.*]] = arith.addi %k, %c64 : index
    // CHECK-NEXT:   scf.yield %{{.*}}, %[[AFTER]]
    // CHECK:      %[[WRAPPED:.*]] = arith.cmpi slt, %[[NEXT]], %c0 : index
    // CHECK-NEXT: %[[START:.*]] = arith.select %[[WRAPPED]], %size, %[[NEXT]] : index
    // CHECK-NEXT: scf.for %{{.*}} = %[[START]] to %size step %c64 iter_args(%{{.*}} = %[[SUM]])
    // CHECK-NEXT:   tile.load %x[%n, %{{.*}}] in_bounds [false, false] vector 4
    // CHECK:      } {phobos.unroll = 1 : i32}
    %sum = scf.for %k = %c0 to %size step %c64 iter_args(%t = %zero) -> (tensor<1x64xf16>) {
      %a = tile.load %x[%n, %k] : memref<?x?xf16> -> tensor<1x64xf16>
      %b = arith.addf %t, %a : tensor<1x64xf16>
      scf.yield %b : tensor<1x64xf16>
    }

    // Every tensor bounds its slices itself, and a slice may be ahead of the counter. What starts
    // below 0 is done with masks.
    // CHECK:      memref.dim %y
    // CHECK-NEXT: arith.constant 71 : index
    // CHECK:      memref.dim %x
    // CHECK-NEXT: arith.constant 63 : index
    // CHECK:      %[[MIN:.*]] = arith.minsi
    // CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0 : index
    // CHECK-NEXT: %[[INSIDE:.*]] = arith.cmpi sge, %n, %[[ZERO]] : index
    // CHECK-NEXT: %[[TO:.*]] = arith.select %[[INSIDE]], %[[MIN]], %n : index
    // CHECK-NEXT: scf.for %{{.*}} = %n to %[[TO]] step %c64
    // CHECK:        tile.load %y[%{{.*}}] in_bounds [true] vector 1
    // CHECK-NEXT:   tile.load %y[%c8] in_bounds [false] vector 4
    // CHECK-NEXT:   tile.load %x[%n, %{{.*}}] in_bounds [false, true]
    scf.for %k = %n to %size step %c64 {
      %ahead = arith.addi %k, %c8 : index
      %a = tile.load %y[%ahead] : memref<?xf32> -> tensor<64xf32>
      %b = tile.load %y[%c8] : memref<?xf32> -> tensor<64xf32>
      %c = tile.load %x[%n, %k] : memref<?x?xf16> -> tensor<1x64xf16>
    }

    // Nothing to gain: no slice moves with the counter.
    // CHECK:      scf.for %k2 = %c0 to %size step %c64 {
    // CHECK-NEXT:   tile.load %y[%c8]
    // CHECK-NEXT: }
    // CHECK-NEXT: "gpu.return"
    scf.for %k2 = %c0 to %size step %c64 {
      %a = tile.load %y[%c8] : memref<?xf32> -> tensor<64xf32>
    }
    "gpu.return"() : () -> ()
  }) {sym_name = "walk"} : () -> ()
}) {sym_name = "m"} : () -> ()
