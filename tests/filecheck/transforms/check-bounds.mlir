// RUN: phobos-opt %s -p ph-check-bounds | filecheck %s

"gpu.module"() ({
  "gpu.func"() <{function_type = (memref<?xf32>, index) -> (), kernel}> ({
  ^bb0(%x: memref<?xf32>, %i: index):
    // CHECK:      %[[N:.*]] = memref.dim %x
    // CHECK-NEXT: %[[OK:.*]] = arith.cmpi ult, %i, %[[N]] : index
    // CHECK-NEXT: tile.assert %[[OK]], "index 0 of x is inside its extent"
    // CHECK-NEXT: %v = memref.load %x[%i]
    %v = memref.load %x[%i] : memref<?xf32>
    // A run is checked at both ends.
    // CHECK: tile.assert %{{.*}}, "index 0 of x is inside its extent"
    // CHECK: %[[LAST:.*]] = arith.addi %i, %{{.*}} : index
    // CHECK: arith.cmpi ult, %[[LAST]]
    // CHECK-NEXT: tile.assert %{{.*}}, "the run ends inside x"
    // CHECK-NEXT: vector.load
    %r = vector.load %x[%i] : memref<?xf32>, vector<4xf32>
    "gpu.return"() : () -> ()
  }) {sym_name = "k"} : () -> ()
}) {sym_name = "m"} : () -> ()
