// RUN: phobos-opt %s -p ph-analyze-extents,ph-unroll-loops | filecheck %s

"gpu.module"() ({
  "gpu.func"() <{function_type = (memref<?xf32>, index) -> (), kernel}> ({
  ^bb0(%x: memref<?xf32>, %n: index):
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    %f0 = arith.constant 0.0 : f32
    %lane = ctx.lane
    %size = memref.dim %x, %c0 : memref<?xf32>
    // Four bytes an iteration: eight iterations at a time, then what is left.
    // CHECK:      %[[BACK:.*]] = arith.constant 224 : index
    // CHECK-NEXT: %[[LAST:.*]] = arith.subi %size, %[[BACK]] : index
    // CHECK-NEXT: %[[STEP:.*]] = arith.constant 256 : index
    // CHECK-NEXT: %[[G:.*]], %[[NEXT:.*]] = scf.for %k = %lane to %[[LAST]] step %[[STEP]] iter_args(%{{.*}} = %f0, %{{.*}} = %lane)
    // CHECK-NEXT:   %[[V0:.*]] = memref.load %x[%k]
    // CHECK-NEXT:   %[[C1:.*]] = arith.constant 32 : index
    // CHECK-NEXT:   %[[K1:.*]] = arith.addi %k, %[[C1]] : index
    // CHECK-NEXT:   %[[V1:.*]] = memref.load %x[%[[K1]]]
    // CHECK:        arith.constant 224 : index
    // CHECK-NEXT:   arith.addi
    // CHECK-NEXT:   memref.load
    // CHECK-NEXT:   %[[A0:.*]] = arith.addf %{{.*}}, %[[V0]] : f32
    // CHECK-NEXT:   %[[A1:.*]] = arith.addf %[[A0]], %[[V1]] : f32
    // CHECK:        %[[AFTER:.*]] = arith.addi %k, %[[STEP]] : index
    // CHECK-NEXT:   scf.yield %{{.*}}, %[[AFTER]] : f32, index
    // CHECK:      %[[WRAPPED:.*]] = arith.cmpi slt, %[[NEXT]], %lane : index
    // CHECK-NEXT: %[[START:.*]] = arith.select %[[WRAPPED]], %size, %[[NEXT]] : index
    // CHECK-NEXT: scf.for %{{.*}} = %[[START]] to %size step %c32 iter_args(%{{.*}} = %[[G]])
    %sum = scf.for %k = %lane to %size step %c32 iter_args(%acc = %f0) -> (f32) {
      %v = memref.load %x[%k] : memref<?xf32>
      %next = arith.addf %acc, %v : f32
      scf.yield %next : f32
    }

    // Sixteen bytes an iteration: four of them; bounds that groups of four divide leave no rest.
    // CHECK:      scf.for %{{.*}} = %c0 to %c1024 step %{{.*}} {
    // CHECK-COUNT-4: vector.load
    // CHECK-NOT:  vector.load
    // CHECK:      }
    %c1024 = arith.constant 1024 : index
    %c4 = arith.constant 4 : index
    scf.for %k = %c0 to %c1024 step %c4 {
      %v = vector.load %x[%k] : memref<?xf32>, vector<4xf32>
    }

    // Tiles: a thread's share of 16 bytes, eight times, would be 128; four times is enough.
    // CHECK:      scf.for %{{.*}} = %c0 to %c1024 step
    // CHECK-COUNT-4: tile.load
    // CHECK-NOT:  tile.load
    // CHECK-COUNT-4: arith.addf
    // CHECK:      scf.yield
    %zero = arith.constant dense<0.0> : tensor<128xf32>
    %tiles = scf.for %k = %c0 to %c1024 step %c32 iter_args(%t = %zero) -> (tensor<128xf32>) {
      %v = tile.load %x[%k] : memref<?xf32> -> tensor<128xf32>
      %next = arith.addf %t, %v : tensor<128xf32>
      scf.yield %next : tensor<128xf32>
    }

    // A loop that writes keeps the order of its accesses, so it stays as it is.
    // CHECK:      scf.for %k2 = %c0 to %size step %c32 {
    // CHECK-NEXT:   memref.load
    // CHECK-NEXT:   memref.store
    // CHECK-NEXT: }
    scf.for %k2 = %c0 to %size step %c32 {
      %v = memref.load %x[%k2] : memref<?xf32>
      memref.store %v, %x[%k2] : memref<?xf32>
    }

    // `for<unroll>`: three iterations and no loop.
    // CHECK-COUNT-3: memref.store %f0
    // CHECK-NOT: memref.store %f0
    %c3 = arith.constant 3 : index
    %c1 = arith.constant 1 : index
    scf.for %k = %c0 to %c3 step %c1 {
      memref.store %f0, %x[%k] : memref<?xf32>
    } {phobos.unroll = -1 : i32}

    // `for<unroll 2>` by a step that is known at run time only: the bound saturates.
    // CHECK:      %[[B:.*]] = arith.muli %n, %{{.*}} : index
    // CHECK:      arith.maxsi
    // CHECK:      %[[FITS:.*]] = arith.cmpi sle, %n, %{{.*}} : index
    // CHECK:      arith.select %[[FITS]]
    // CHECK:      %[[TWO:.*]] = arith.muli %n, %{{.*}} : index
    // CHECK:      scf.for %{{.*}} = %c0 to %{{.*}} step %[[TWO]] iter_args
    // CHECK-COUNT-2: memref.store
    // CHECK:      scf.for %{{.*}} to %size step %n {
    scf.for %k = %c0 to %size step %n {
      memref.store %f0, %x[%k] : memref<?xf32>
    } {phobos.unroll = 2 : i32}
    "gpu.return"() : () -> ()
  }) {sym_name = "loops", "gpu.known_block_size" = array<i32: 32, 1, 1>} : () -> ()
}) {sym_name = "m"} : () -> ()
