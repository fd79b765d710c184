// RUN: phobos-opt %s -p ph-bind-constants,ph-analyze-extents,ph-mask-slices | filecheck %s

// Launch extents are multiples of 4 unless phobos.extent_multiple says otherwise.
"gpu.module"() ({
  "gpu.func"() <{function_type = (memref<?xf32>, memref<?x?xf16>, index) -> (), kernel}> ({
  ^bb0(%x: memref<?xf32>, %y: memref<?x?xf16>, %n: index):
    %c64 = arith.constant 64 : index
    %c6 = arith.constant 6 : index
    %b = ctx.block x
    %base = arith.muli %b, %c64 : index
    // 16 bytes: the start and the extent are multiples of 4.
    // CHECK: tile.load %x[%base] in_bounds [false] vector 4 : memref<?xf32> -> tensor<64xf32>
    %a = tile.load %x[%base] : memref<?xf32> -> tensor<64xf32>
    // Rows of 4 halves are 8 bytes apart.
    // CHECK: tile.load %y[%b, %base] in_bounds [false, false] vector 4 : memref<?x?xf16>
    %c = tile.load %y[%b, %base] : memref<?x?xf16> -> tensor<1x64xf16>
    // A start that is only even.
    %odd = arith.muli %b, %c6 : index
    // CHECK: tile.load %x[%odd] in_bounds [false] vector 2 : memref<?xf32> -> tensor<64xf32>
    %d = tile.load %x[%odd] : memref<?xf32> -> tensor<64xf32>
    // An unknown start, and a length that is no multiple of 4.
    // CHECK: tile.load %x[%n] in_bounds [false] vector 1 : memref<?xf32> -> tensor<64xf32>
    %e = tile.load %x[%n] : memref<?xf32> -> tensor<64xf32>
    // CHECK: tile.load %x[%base] in_bounds [false] vector 2 : memref<?xf32> -> tensor<6xf32>
    %f = tile.load %x[%base] : memref<?xf32> -> tensor<6xf32>
    "gpu.return"() : () -> ()
  }) {sym_name = "masked"} : () -> ()

  "gpu.func"() <{function_type = (memref<256xi8>) -> (), kernel}> ({
  ^bb0(%x: memref<256xi8>):
    %c0 = arith.constant 0 : index
    %c192 = arith.constant 192 : index
    %c64 = arith.constant 64 : index
    %w = ctx.warp
    // CHECK: tile.load %x[%c192] in_bounds [true] vector 16 : memref<256xi8> -> tensor<64xi8>
    %a = tile.load %x[%c192] : memref<256xi8> -> tensor<64xi8>
    // CHECK: tile.load %x[%c192] in_bounds [false] vector 16 : memref<256xi8> -> tensor<128xi8>
    %b = tile.load %x[%c192] : memref<256xi8> -> tensor<128xi8>
    // A run of the thread's own: 16 bytes from a multiple of 16.
    scf.for %k = %c0 to %c192 step %c64 {
      // CHECK: vector.load %x[%k] {tile.vector = 16 : i64} : memref<256xi8>, vector<16xi8>
      %r = vector.load %x[%k] : memref<256xi8>, vector<16xi8>
    }
    "gpu.return"() : () -> ()
  }) {sym_name = "static"} : () -> ()

  // A coordinate below a multiple of 4: its group of 4 has the same answer. Equality has not.
  // CHECK: %[[COORDINATE:.*]] = tile.iota [0] : tensor<64xi32>
  // CHECK: %[[GROUP:.*]] = tile.iota [0] within 4 : tensor<64xi32>
  // CHECK-NEXT: tile.cmpi ult, %[[GROUP]], %limit : tensor<64xi32>
  // CHECK: tile.cmpi eq, %[[COORDINATE]], %limit : tensor<64xi32>
  // CHECK: tile.cmpi ult, %[[COORDINATE]], %odd : tensor<64xi32>
  "gpu.func"() <{function_type = (memref<?xf32>) -> (), kernel}> ({
  ^bb0(%x: memref<?xf32>):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : index
    %n = memref.dim %x, %c0 : memref<?xf32>
    %least = arith.minsi %n, %c64 : index
    %least32 = arith.index_cast %least : index to i32
    %limit = tile.splat %least32 : i32 -> tensor<64xi32>
    %more = arith.addi %least32, %c1 : i32
    %odd = tile.splat %more : i32 -> tensor<64xi32>
    %i = tile.iota [0] : tensor<64xi32>
    %below = tile.cmpi ult, %i, %limit : tensor<64xi32>
    %equal = tile.cmpi eq, %i, %limit : tensor<64xi32>
    %other = tile.cmpi ult, %i, %odd : tensor<64xi32>
    "gpu.return"() : () -> ()
  }) {sym_name = "coordinates"} : () -> ()

  // The promise of @aligned drops the mask and is checked at entry.
  // CHECK: (%x: memref<?xf32>):
  // CHECK: %[[N:.*]] = memref.dim %x
  // CHECK-NEXT: %[[R:.*]] = arith.remsi %[[N]], %{{.*}} : index
  // CHECK-NEXT: %[[OK:.*]] = arith.cmpi eq, %[[R]], %{{.*}} : index
  // CHECK-NEXT: tile.assert %[[OK]], "N is a multiple of 64"
  // CHECK: tile.load %x[%base] in_bounds [true] vector 4
  "gpu.func"() <{function_type = (memref<?xf32>) -> (), kernel}> ({
  ^bb0(%x: memref<?xf32>):
    %c64 = arith.constant 64 : index
    %b = ctx.block x
    %base = arith.muli %b, %c64 : index
    %a = tile.load %x[%base] : memref<?xf32> -> tensor<64xf32>
    "gpu.return"() : () -> ()
  }) {sym_name = "promised", phobos.aligned = {N = 64 : index},
      arg_attrs = [{phobos.name = "x", phobos.dims = ["N"]}]} : () -> ()
}) {sym_name = "m"} : () -> ()
