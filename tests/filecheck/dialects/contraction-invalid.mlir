// RUN: phobos-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// CHECK: tile.dot: (64, 32) x (16, 48) does not give (64, 48)
func.func @depth(%a: tensor<64x32xf16>, %b: tensor<16x48xf16>, %c: tensor<64x48xf32>) {
  %d = tile.dot %a, %b, %c : tensor<64x32xf16>, tensor<16x48xf16>, tensor<64x48xf32> -> tensor<64x48xf32>
  func.return
}

// -----

// CHECK: tile.dot of bf16 sums in f32, not bf16
func.func @accumulator(%a: tensor<64x32xbf16>, %b: tensor<32x48xbf16>, %c: tensor<64x48xbf16>) {
  %d = tile.dot %a, %b, %c : tensor<64x32xbf16>, tensor<32x48xbf16>, tensor<64x48xbf16> -> tensor<64x48xbf16>
  func.return
}

// -----

// CHECK: tile.dot of f16 sums in f32 or f16, not f64
func.func @accumulators(%a: tensor<64x32xf16>, %b: tensor<32x48xf16>, %c: tensor<64x48xf64>) {
  %d = tile.dot %a, %b, %c : tensor<64x32xf16>, tensor<32x48xf16>, tensor<64x48xf64> -> tensor<64x48xf64>
  func.return
}

// -----

// CHECK: tile.dot: only bytes can be unsigned, not f16
func.func @unsigned(%a: tensor<64x32xf16>, %b: tensor<32x48xf16>, %c: tensor<64x48xf32>) {
  %d = tile.dot %a unsigned, %b, %c : tensor<64x32xf16>, tensor<32x48xf16>, tensor<64x48xf32> -> tensor<64x48xf32>
  func.return
}

// -----

// CHECK: `f8` is no operand of a contraction
func.func @operand(%a: tensor<64x32xf16>, %b: tensor<32x48xf16>, %c: tensor<64x48xf32>) {
  %d = tile.dot %a, %b, %c using <"mma m16n8k16 f8 f32 warps 2x4"> : tensor<64x32xf16>, tensor<32x48xf16>, tensor<64x48xf32> -> tensor<64x48xf32>
  func.return
}

// -----

// CHECK: tile.dot does not multiply f16 by f32
func.func @mixed(%a: tensor<64x32xf16>, %b: tensor<32x48xf32>, %c: tensor<64x48xf32>) {
  %d = tile.dot %a, %b, %c : tensor<64x32xf16>, tensor<32x48xf32>, tensor<64x48xf32> -> tensor<64x48xf32>
  func.return
}

// -----

// CHECK: expected text like "mma m16n8k16 f16 f32 warps 2x4"
func.func @instruction(%a: tensor<64x32xf16>, %b: tensor<32x48xf16>, %c: tensor<64x48xf32>) {
  %d = tile.dot %a, %b, %c using <"wgmma"> : tensor<64x32xf16>, tensor<32x48xf16>, tensor<64x48xf32> -> tensor<64x48xf32>
  func.return
}

// -----

// CHECK: tile.reduce: axes are different, ascending numbers below 2, got [1, 1]
func.func @axes(%t: tensor<8x64xf32>) {
  %m = tile.reduce max %t over [1, 1] : tensor<8x64xf32> -> tensor<8x1xf32>
  func.return
}

// -----

// CHECK: tile.reduce: axis 1 becomes 1
func.func @extent(%t: tensor<8x64xf32>) {
  %m = tile.reduce max %t over [1] : tensor<8x64xf32> -> tensor<8x2xf32>
  func.return
}

// -----

// CHECK: tile.transpose of (8, 64) does not give (8, 64)
func.func @transpose(%t: tensor<8x64xf32>) {
  %u = tile.transpose %t : tensor<8x64xf32> -> tensor<8x64xf32>
  func.return
}

// -----

// CHECK: tile.dot: (2, 64, 32) x (3, 32, 48) does not give (2, 64, 48)
func.func @stacks(%a: tensor<2x64x32xf16>, %b: tensor<3x32x48xf16>, %c: tensor<2x64x48xf32>) {
  %d = tile.dot %a, %b, %c : tensor<2x64x32xf16>, tensor<3x32x48xf16>, tensor<2x64x48xf32> -> tensor<2x64x48xf32>
  func.return
}
