// RUN: phobos-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// CHECK: tile.load: 2 subscripts expected, got 1
func.func @subscripts(%A: memref<?x?xf32>, %i: index) {
  %a = tile.load %A[%i] : memref<?x?xf32> -> tensor<8x64xf32>
  func.return
}

// -----

// CHECK: tile.load: the tile has 1 axes, the tensor 2
func.func @rank(%A: memref<?x?xf32>, %i: index) {
  %a = tile.load %A[%i, %i] : memref<?x?xf32> -> tensor<64xf32>
  func.return
}

// -----

// CHECK: tile.store: the tensor holds f32, the tile f16
func.func @element(%A: memref<?xf32>, %t: tensor<64xf16>, %i: index) {
  tile.store %t, %A[%i] : tensor<64xf16>, memref<?xf32>
  func.return
}

// -----

// CHECK: tile.load: a tile's extents are constants of at least 1
func.func @dynamic(%A: memref<?xf32>, %i: index) {
  %a = tile.load %A[%i] : memref<?xf32> -> tensor<?xf32>
  func.return
}

// -----

// CHECK: tile.load: in_bounds names 2 axes of 1
func.func @bounds(%A: memref<?xf32>, %i: index) {
  %a = tile.load %A[%i] in_bounds [true, true] : memref<?xf32> -> tensor<4xf32>
  func.return
}

// -----

// CHECK: tile.broadcast: axis 0 has extent 2, which is neither 1 nor 8
func.func @broadcast(%t: tensor<2x64xf32>) {
  %a = tile.broadcast %t : tensor<2x64xf32> -> tensor<8x64xf32>
  func.return
}

// -----

// CHECK: tile.splat of f32 into elements of f16
func.func @splat(%x: f32) {
  %a = tile.splat %x : f32 -> tensor<8xf16>
  func.return
}

// -----

// CHECK: tile.select of tensor<8xf32> by tensor<4xi1>: an i1 of its shape expected
func.func @select(%c: tensor<4xi1>, %t: tensor<8xf32>) {
  %a = tile.select %c, %t, %t : tensor<4xi1>, tensor<8xf32>
  func.return
}

// -----

// CHECK: tile.run_dot takes a multiple of 4 bytes, got vector<6xi8>
func.func @run_dot(%a: vector<6xi8>, %c: i32) {
  %r = tile.run_dot %a, %a, %c : vector<6xi8>
  func.return
}

// -----

// CHECK: not a layout
func.func @layout(%t: tensor<8xf32, #tile.layout<"register=[[3">>) {
  func.return
}

// -----

// CHECK: tile.extsi makes integers wider: i8 to i8
func.func @extsi(%t: tensor<8xi8>) {
  %a = tile.extsi %t : tensor<8xi8> to tensor<8xi8>
  func.return
}

// -----

// CHECK: tile.sitofp keeps the shape of a tile or run: tensor<8xi8> to tensor<4xf32>
func.func @cast_shape(%t: tensor<8xi8>) {
  %a = tile.sitofp %t : tensor<8xi8> to tensor<4xf32>
  func.return
}

// -----

// CHECK: `less` is no predicate; expected eq, ne, slt
func.func @predicate(%t: tensor<8xi8>) {
  %a = tile.cmpi less, %t, %t : tensor<8xi8>
  func.return
}

// -----

// CHECK: tile.load: elements of f32 are filled with i32
func.func @fill(%A: memref<?xf32>, %i: index) {
  %a = tile.load %A[%i] fill 0 : i32 : memref<?xf32> -> tensor<8xf32>
  func.return
}

// -----

// CHECK: tile.reshape of (3, 5) to (15,) is not linear in bits
func.func @reshape(%t: tensor<3x5xf32>) {
  %a = tile.reshape %t : tensor<3x5xf32> -> tensor<15xf32>
  func.return
}

// -----

// CHECK: tile.reshape of (4, 4) does not give (8,)
func.func @reshape_count(%t: tensor<4x4xf32>) {
  %a = tile.reshape %t : tensor<4x4xf32> -> tensor<8xf32>
  func.return
}

// -----

// CHECK: tile.gather: subscripts are i32 or i64, not i8
func.func @gather(%A: memref<?xf32>, %r: tensor<8xi8>) {
  %a = tile.gather %A[%r] : memref<?xf32>, tensor<8xi8> -> tensor<8xf32>
  func.return
}

// -----

// CHECK: tile.scatter: a subscript is an index or a tile of the shape of tensor<8x4xf32>, not tensor<8x1xi32>
func.func @scatter(%t: tensor<8x4xf32>, %A: memref<?x?xf32>, %r: tensor<8x1xi32>, %i: index) {
  tile.scatter %t, %A[%r, %i] : tensor<8x4xf32>, memref<?x?xf32>, tensor<8x1xi32>, index
  func.return
}

// -----

// CHECK: tile.scan goes along one axis of the tile, not [0, 1]
func.func @scan(%t: tensor<8x4xf32>) {
  %a = tile.scan add %t over [0, 1] : tensor<8x4xf32>
  func.return
}

// -----

// CHECK: tile.scan has no `add` of i1
func.func @scan_flags(%t: tensor<8x4xi1>) {
  %a = tile.scan add %t over [0] : tensor<8x4xi1>
  func.return
}

// -----

// CHECK: tile.bitcast keeps the width: i16 to f32
func.func @bitcast(%t: tensor<8xi16>) {
  %a = tile.bitcast %t : tensor<8xi16> to tensor<8xf32>
  func.return
}

// -----

// CHECK: tile.byteperm moves bits of integers, not of i64
func.func @byteperm(%i: i64) {
  %a = tile.byteperm %i, %i, %i : i64
  func.return
}

// -----

// CHECK: tile.view of memref<3x5xf32, #tile.shared> does not give memref<16xf32, #tile.shared>
func.func @view(%b: memref<3x5xf32, #tile.shared>) {
  %v = tile.view %b : memref<3x5xf32, #tile.shared> -> memref<16xf32, #tile.shared>
  func.return
}

// -----

// CHECK: tile.round_tf32 is of f32, not of tensor<8xf16>
func.func @round_tf32(%t: tensor<8xf16>) {
  %a = tile.round_tf32 %t : tensor<8xf16>
  func.return
}

// -----

// CHECK: tile.remf is of floats, not of i32
func.func @remainder(%i: i32) {
  %a = tile.remf %i, %i : i32
  func.return
}
