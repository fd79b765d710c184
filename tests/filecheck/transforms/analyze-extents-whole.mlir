// RUN: phobos-opt %s -p ph-analyze-extents | filecheck %s

// Tiles of 64 up to an end that whole tiles reach: %end is at most the extent of %x, but perhaps
// not that of %y.
"gpu.module"() ({
  "gpu.func"() <{function_type = (memref<?xf32>, memref<?xf32>, index) -> (), kernel}> ({
  ^bb0(%x: memref<?xf32>, %y: memref<?xf32>, %limit: index):
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %n = memref.dim %x, %c0 : memref<?xf32>
    %least = arith.minsi %n, %limit : index
    %positive = arith.maxsi %c0, %least : index
    %tiles = arith.divsi %positive, %c64 : index
    %end = arith.muli %tiles, %c64 : index
    scf.for %i = %c0 to %end step %c64 {
      // CHECK: tile.load %x[%i] in_bounds [true]
      %a = tile.load %x[%i] : memref<?xf32> -> tensor<64xf32>
      // CHECK: tile.load %y[%i] in_bounds [false]
      %b = tile.load %y[%i] : memref<?xf32> -> tensor<64xf32>
      // CHECK: tile.load %x[%i] in_bounds [false] {{.*}} tensor<128xf32>
      %c = tile.load %x[%i] : memref<?xf32> -> tensor<128xf32>
    }
    // From the end on nothing is known; nor with steps of half a tile, from within a tile, or to
    // the end of the tensor itself.
    // CHECK: tile.load %x[%end] in_bounds [false]
    %d = tile.load %x[%end] : memref<?xf32> -> tensor<64xf32>
    scf.for %i = %c0 to %end step %c32 {
      // CHECK: tile.load %x[%{{.*}}] in_bounds [false]
      %e = tile.load %x[%i] : memref<?xf32> -> tensor<64xf32>
    }
    scf.for %i = %c32 to %end step %c64 {
      // CHECK: tile.load %x[%{{.*}}] in_bounds [false]
      %f = tile.load %x[%i] : memref<?xf32> -> tensor<64xf32>
    }
    scf.for %i = %c0 to %n step %c64 {
      // CHECK: tile.load %x[%{{.*}}] in_bounds [false]
      %g = tile.load %x[%i] : memref<?xf32> -> tensor<64xf32>
    }
    // Some number of tiles.
    %times = arith.muli %limit, %c64 : index
    scf.for %i = %c0 to %times step %c64 {
      // CHECK: tile.load %x[%{{.*}}] in_bounds [false]
      %h = tile.load %x[%i] : memref<?xf32> -> tensor<64xf32>
    }
    "gpu.return"() : () -> ()
  }) {sym_name = "walked"} : () -> ()
}) {sym_name = "m"} : () -> ()
