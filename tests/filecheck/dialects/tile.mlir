// RUN: phobos-opt %s | phobos-opt -f mlir | filecheck %s

func.func @tiles(%A: memref<?x?xf32>, %row: memref<64xi8>, %i: index, %x: f32, %p: i1) {
  // CHECK: %a = tile.load %A[%i, %i] : memref<?x?xf32> -> tensor<8x64xf32>
  %a = tile.load %A[%i, %i] : memref<?x?xf32> -> tensor<8x64xf32>
  // CHECK-NEXT: %b = tile.load %A[%i, %i] in_bounds [true, false] vector 4 : memref<?x?xf32> -> tensor<1x64xf32>
  %b = tile.load %A[%i, %i] in_bounds [true, false] vector 4 : memref<?x?xf32> -> tensor<1x64xf32>
  // CHECK-NEXT: %c = tile.splat %x : f32 -> tensor<8x64xf32>
  %c = tile.splat %x : f32 -> tensor<8x64xf32>
  // CHECK-NEXT: %d = tile.broadcast %b : tensor<1x64xf32> -> tensor<8x64xf32>
  %d = tile.broadcast %b : tensor<1x64xf32> -> tensor<8x64xf32>
  %less = tile.cmpf olt, %c, %d : tensor<8x64xf32>
  // CHECK: %e = tile.select %less, %c, %d : tensor<8x64xi1>, tensor<8x64xf32>
  %e = tile.select %less, %c, %d : tensor<8x64xi1>, tensor<8x64xf32>
  // CHECK-NEXT: tile.store %e, %A[%i, %i] in_bounds [false, true] vector 2 : tensor<8x64xf32>, memref<?x?xf32>
  tile.store %e, %A[%i, %i] in_bounds [false, true] vector 2 : tensor<8x64xf32>, memref<?x?xf32>
  // CHECK-NEXT: tile.assert %p, "all is well"
  tile.assert %p, "all is well"
  func.return
}

func.func @runs(%a: vector<16xi8>, %b: vector<16xi8>, %w: i32) {
  // CHECK: %r = tile.run_dot %a, %b unsigned, %w : vector<16xi8>
  %r = tile.run_dot %a, %b unsigned, %w : vector<16xi8>
  // CHECK-NEXT: %q = tile.dp4a %w unsigned, %w, %r
  %q = tile.dp4a %w unsigned, %w, %r
  func.return
}

// CHECK-LABEL: @layouts
func.func @layouts(%t: tensor<8xf32, #tile.layout<"register=[[4]] lane=[[1], [2]] warp=[] -> [8]">>) {
  // CHECK: tile.convert_layout %t : tensor<8xf32, #tile.layout<"register=[{{\[}}4]] lane=[{{\[}}1], [2]] warp=[] -> [8]">> -> tensor<8xf32, #tile.layout<"register=[{{\[}}1]] lane=[{{\[}}2], [4]] warp=[] -> [8]">>
  %u = tile.convert_layout %t : tensor<8xf32, #tile.layout<"register=[[4]] lane=[[1], [2]] warp=[] -> [8]">> -> tensor<8xf32, #tile.layout<"register=[[1]] lane=[[2], [4]] warp=[] -> [8]">>
  // CHECK: memref.alloca() : memref<8xf32, #tile.shared>
  %s = memref.alloca() : memref<8xf32, #tile.shared>
  func.return
}

// CHECK-LABEL: @elementwise
func.func @elementwise(%t: tensor<8xi8>, %r: vector<4xf32>) {
  // CHECK: %a = tile.extsi %t : tensor<8xi8> to tensor<8xi32>
  %a = tile.extsi %t : tensor<8xi8> to tensor<8xi32>
  // CHECK-NEXT: %b = tile.sitofp %a : tensor<8xi32> to tensor<8xf32>
  %b = tile.sitofp %a : tensor<8xi32> to tensor<8xf32>
  // CHECK-NEXT: %c = tile.fptoui %r : vector<4xf32> to vector<4xi8>
  %c = tile.fptoui %r : vector<4xf32> to vector<4xi8>
  // CHECK-NEXT: %d = tile.cmpi slt, %a, %a : tensor<8xi32>
  %d = tile.cmpi slt, %a, %a : tensor<8xi32>
  // CHECK-NEXT: %e = tile.cmpf une, %r, %r : vector<4xf32>
  %e = tile.cmpf une, %r, %r : vector<4xf32>
  func.return
}

// CHECK-LABEL: @shapes
func.func @shapes(%A: memref<?x?xf32>, %i: index, %rows: tensor<8x64xi32>) {
  // CHECK: %a = tile.load %A[%i, %i] fill 0xff800000 : f32 in_bounds [true, false] vector 4 : memref<?x?xf32> -> tensor<8x64xf32>
  %a = tile.load %A[%i, %i] fill 0xff800000 : f32 in_bounds [true, false] vector 4 : memref<?x?xf32> -> tensor<8x64xf32>
  // CHECK-NEXT: %b = tile.reshape %a : tensor<8x64xf32> -> tensor<16x32xf32>
  %b = tile.reshape %a : tensor<8x64xf32> -> tensor<16x32xf32>
  // CHECK-NEXT: %c = tile.gather %A[%rows, %i] in_bounds [false, true] vector 2 : memref<?x?xf32>, tensor<8x64xi32>, index -> tensor<8x64xf32>
  %c = tile.gather %A[%rows, %i] in_bounds [false, true] vector 2 : memref<?x?xf32>, tensor<8x64xi32>, index -> tensor<8x64xf32>
  // CHECK-NEXT: tile.scatter %c, %A[%rows, %i] : tensor<8x64xf32>, memref<?x?xf32>, tensor<8x64xi32>, index
  tile.scatter %c, %A[%rows, %i] : tensor<8x64xf32>, memref<?x?xf32>, tensor<8x64xi32>, index
  // CHECK-NEXT: %d = tile.scan add %c over [1] : tensor<8x64xf32>
  %d = tile.scan add %c over [1] : tensor<8x64xf32>
  // CHECK-NEXT: %e = tile.partial_scan max %c over [0] : tensor<8x64xf32>
  %e = tile.partial_scan max %c over [0] : tensor<8x64xf32>
  %t = tile.reduce add %c over [1] : tensor<8x64xf32> -> tensor<8x1xf32>
  // CHECK: %f = tile.merge_scan add %t, %d over [1] : tensor<8x1xf32>, tensor<8x64xf32>
  %f = tile.merge_scan add %t, %d over [1] : tensor<8x1xf32>, tensor<8x64xf32>
  func.return
}

// CHECK-LABEL: @bits
func.func @bits(%i: i32, %t: tensor<8xi16>, %r: vector<4xf32>) {
  // CHECK: %a = tile.brev %t : tensor<8xi16>
  %a = tile.brev %t : tensor<8xi16>
  // CHECK-NEXT: %b = tile.byteperm %i, %i, %i : i32
  %b = tile.byteperm %i, %i, %i : i32
  // CHECK-NEXT: %c = tile.bitcast %t : tensor<8xi16> to tensor<8xf16>
  %c = tile.bitcast %t : tensor<8xi16> to tensor<8xf16>
  // CHECK-NEXT: %d = tile.bitcast %r : vector<4xf32> to vector<4xi32>
  %d = tile.bitcast %r : vector<4xf32> to vector<4xi32>
  // CHECK-NEXT: %e = tile.remf %r, %r : vector<4xf32>
  %e = tile.remf %r, %r : vector<4xf32>
  func.return
}

// CHECK-LABEL: @debugging
func.func @debugging(%i: i32, %x: f64, %p: i1) {
  // CHECK: tile.print "i = %d, x = %g", %i, %x : i32, f64
  tile.print "i = %d, x = %g", %i, %x : i32, f64
  // CHECK-NEXT: tile.print "here"
  tile.print "here"
  // CHECK-NEXT: tile.require %p, "all is well"
  tile.require %p, "all is well"
  func.return
}

// CHECK-LABEL: @views
func.func @views(%b: memref<3x5xf32, #tile.shared>) {
  // CHECK: tile.view %b : memref<3x5xf32, #tile.shared> -> memref<15xf32, #tile.shared>
  %v = tile.view %b : memref<3x5xf32, #tile.shared> -> memref<15xf32, #tile.shared>
  func.return
}
