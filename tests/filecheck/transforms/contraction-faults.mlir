// RUN: not phobos-opt %s -p ph-assign-layouts,ph-insert-barriers,ph-lower-to-ptx{chip=sm_90a} --split-input-file 2>&1 | filecheck %s

// What an instruction that is written by hand cannot be.
// CHECK: this product cannot be made by `wgmma m64n300k16 f16 f32 warps 4x1`: there is none of this shape and these types
"gpu.module"() <{sym_name = "m"}> ({
  "gpu.func"() <{function_type = (f16, f32) -> (), kernel}> ({
  ^bb0(%x: f16, %y: f32):
    %a = tile.splat %x : f16 -> tensor<64x32xf16>
    %b = tile.splat %x : f16 -> tensor<32x64xf16>
    %c = tile.splat %y : f32 -> tensor<64x64xf32>
    %d = tile.dot %a, %b, %c using <"wgmma m64n300k16 f16 f32 warps 4x1"> : tensor<64x32xf16>, tensor<32x64xf16>, tensor<64x64xf32> -> tensor<64x64xf32>
    "gpu.return"() : () -> ()
  }) {sym_name = "k", gpu.known_block_size = array<i32: 128, 1, 1>} : () -> ()
}) : () -> ()

// -----

// CHECK: this product cannot be made by `wgmma m64n64k8 f16 f32 warps 4x1`: there is none of this shape and these types
"gpu.module"() <{sym_name = "m"}> ({
  "gpu.func"() <{function_type = (f16, f32) -> (), kernel}> ({
  ^bb0(%x: f16, %y: f32):
    %a = tile.splat %x : f16 -> tensor<64x32xf16>
    %b = tile.splat %x : f16 -> tensor<32x64xf16>
    %c = tile.splat %y : f32 -> tensor<64x64xf32>
    %d = tile.dot %a, %b, %c using <"wgmma m64n64k8 f16 f32 warps 4x1"> : tensor<64x32xf16>, tensor<32x64xf16>, tensor<64x64xf32> -> tensor<64x64xf32>
    "gpu.return"() : () -> ()
  }) {sym_name = "k", gpu.known_block_size = array<i32: 128, 1, 1>} : () -> ()
}) : () -> ()

// -----

// CHECK: this product cannot be made by `mma m16n8k77 f16 f32 warps 2x2`: there is none of this shape and these types
"gpu.module"() <{sym_name = "m"}> ({
  "gpu.func"() <{function_type = (f16, f32) -> (), kernel}> ({
  ^bb0(%x: f16, %y: f32):
    %a = tile.splat %x : f16 -> tensor<64x32xf16>
    %b = tile.splat %x : f16 -> tensor<32x64xf16>
    %c = tile.splat %y : f32 -> tensor<64x64xf32>
    %d = tile.dot %a, %b, %c using <"mma m16n8k77 f16 f32 warps 2x2"> : tensor<64x32xf16>, tensor<32x64xf16>, tensor<64x64xf32> -> tensor<64x64xf32>
    "gpu.return"() : () -> ()
  }) {sym_name = "k", gpu.known_block_size = array<i32: 128, 1, 1>} : () -> ()
}) : () -> ()

// -----

// CHECK: this product cannot be made by `wgmma m64n64k16 bf16 f32 warps 4x1`: it takes bf16, bf16, f32 and is given f16, f16, f32
"gpu.module"() <{sym_name = "m"}> ({
  "gpu.func"() <{function_type = (f16, f32) -> (), kernel}> ({
  ^bb0(%x: f16, %y: f32):
    %a = tile.splat %x : f16 -> tensor<64x32xf16>
    %b = tile.splat %x : f16 -> tensor<32x64xf16>
    %c = tile.splat %y : f32 -> tensor<64x64xf32>
    %d = tile.dot %a, %b, %c using <"wgmma m64n64k16 bf16 f32 warps 4x1"> : tensor<64x32xf16>, tensor<32x64xf16>, tensor<64x64xf32> -> tensor<64x64xf32>
    "gpu.return"() : () -> ()
  }) {sym_name = "k", gpu.known_block_size = array<i32: 128, 1, 1>} : () -> ()
}) : () -> ()

// -----

// CHECK: this product cannot be made by `wgmma m64n64k16 f16 f16 warps 4x1`: it takes f16, f16, f16 and is given f16, f16, f32
"gpu.module"() <{sym_name = "m"}> ({
  "gpu.func"() <{function_type = (f16, f32) -> (), kernel}> ({
  ^bb0(%x: f16, %y: f32):
    %a = tile.splat %x : f16 -> tensor<64x32xf16>
    %b = tile.splat %x : f16 -> tensor<32x64xf16>
    %c = tile.splat %y : f32 -> tensor<64x64xf32>
    %d = tile.dot %a, %b, %c using <"wgmma m64n64k16 f16 f16 warps 4x1"> : tensor<64x32xf16>, tensor<32x64xf16>, tensor<64x64xf32> -> tensor<64x64xf32>
    "gpu.return"() : () -> ()
  }) {sym_name = "k", gpu.known_block_size = array<i32: 128, 1, 1>} : () -> ()
}) : () -> ()

// -----

// CHECK: this product cannot be made by `wgmma m64n64k16 f16 f32 warps 3x1`: the CTA has 4 warps, each axis a power of two of them
"gpu.module"() <{sym_name = "m"}> ({
  "gpu.func"() <{function_type = (f16, f32) -> (), kernel}> ({
  ^bb0(%x: f16, %y: f32):
    %a = tile.splat %x : f16 -> tensor<64x32xf16>
    %b = tile.splat %x : f16 -> tensor<32x64xf16>
    %c = tile.splat %y : f32 -> tensor<64x64xf32>
    %d = tile.dot %a, %b, %c using <"wgmma m64n64k16 f16 f32 warps 3x1"> : tensor<64x32xf16>, tensor<32x64xf16>, tensor<64x64xf32> -> tensor<64x64xf32>
    "gpu.return"() : () -> ()
  }) {sym_name = "k", gpu.known_block_size = array<i32: 128, 1, 1>} : () -> ()
}) : () -> ()

// -----

// CHECK: this product cannot be made by `wgmma m64n64k16 f16 f32 warps 1x4`: the 4 warps of a warpgroup are one below the other
"gpu.module"() <{sym_name = "m"}> ({
  "gpu.func"() <{function_type = (f16, f32) -> (), kernel}> ({
  ^bb0(%x: f16, %y: f32):
    %a = tile.splat %x : f16 -> tensor<64x32xf16>
    %b = tile.splat %x : f16 -> tensor<32x64xf16>
    %c = tile.splat %y : f32 -> tensor<64x64xf32>
    %d = tile.dot %a, %b, %c using <"wgmma m64n64k16 f16 f32 warps 1x4"> : tensor<64x32xf16>, tensor<32x64xf16>, tensor<64x64xf32> -> tensor<64x64xf32>
    "gpu.return"() : () -> ()
  }) {sym_name = "k", gpu.known_block_size = array<i32: 128, 1, 1>} : () -> ()
}) : () -> ()

// -----

// CHECK: this product cannot be made by `wgmma m64n64k16 f16 f32 warps 4x1 parts 7`: parts are those of wgmma that sums in f32, and multiples of its K
"gpu.module"() <{sym_name = "m"}> ({
  "gpu.func"() <{function_type = (f16, f32) -> (), kernel}> ({
  ^bb0(%x: f16, %y: f32):
    %a = tile.splat %x : f16 -> tensor<64x32xf16>
    %b = tile.splat %x : f16 -> tensor<32x64xf16>
    %c = tile.splat %y : f32 -> tensor<64x64xf32>
    %d = tile.dot %a, %b, %c using <"wgmma m64n64k16 f16 f32 warps 4x1 parts 7"> : tensor<64x32xf16>, tensor<32x64xf16>, tensor<64x64xf32> -> tensor<64x64xf32>
    "gpu.return"() : () -> ()
  }) {sym_name = "k", gpu.known_block_size = array<i32: 128, 1, 1>} : () -> ()
}) : () -> ()

// -----

// CHECK: this product cannot be made by `mma m16n8k16 f16 f32 warps 2x2 parts 16`: parts are those of wgmma that sums in f32, and multiples of its K
"gpu.module"() <{sym_name = "m"}> ({
  "gpu.func"() <{function_type = (f16, f32) -> (), kernel}> ({
  ^bb0(%x: f16, %y: f32):
    %a = tile.splat %x : f16 -> tensor<64x32xf16>
    %b = tile.splat %x : f16 -> tensor<32x64xf16>
    %c = tile.splat %y : f32 -> tensor<64x64xf32>
    %d = tile.dot %a, %b, %c using <"mma m16n8k16 f16 f32 warps 2x2 parts 16"> : tensor<64x32xf16>, tensor<32x64xf16>, tensor<64x64xf32> -> tensor<64x64xf32>
    "gpu.return"() : () -> ()
  }) {sym_name = "k", gpu.known_block_size = array<i32: 128, 1, 1>} : () -> ()
}) : () -> ()

// -----

// CHECK: this product cannot be made by `wgmma m64n64k16 f16 f32 warps 4x1 turned`: only products of tf32 by wgmma are turned
"gpu.module"() <{sym_name = "m"}> ({
  "gpu.func"() <{function_type = (f16, f32) -> (), kernel}> ({
  ^bb0(%x: f16, %y: f32):
    %a = tile.splat %x : f16 -> tensor<64x32xf16>
    %b = tile.splat %x : f16 -> tensor<32x64xf16>
    %c = tile.splat %y : f32 -> tensor<64x64xf32>
    %d = tile.dot %a, %b, %c using <"wgmma m64n64k16 f16 f32 warps 4x1 turned"> : tensor<64x32xf16>, tensor<32x64xf16>, tensor<64x64xf32> -> tensor<64x64xf32>
    "gpu.return"() : () -> ()
  }) {sym_name = "k", gpu.known_block_size = array<i32: 128, 1, 1>} : () -> ()
}) : () -> ()

// -----

// CHECK: this product cannot be made by `mma m16n8k8 tf32 f32 warps 4x1 turned`: only products of tf32 by wgmma are turned
"gpu.module"() <{sym_name = "m"}> ({
  "gpu.func"() <{function_type = (f32, f32) -> (), kernel}> ({
  ^bb0(%x: f32, %y: f32):
    %a = tile.splat %x : f32 -> tensor<64x32xf32>
    %b = tile.splat %x : f32 -> tensor<32x64xf32>
    %c = tile.splat %y : f32 -> tensor<64x64xf32>
    %d = tile.dot %a, %b, %c using <"mma m16n8k8 tf32 f32 warps 4x1 turned"> : tensor<64x32xf32>, tensor<32x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
    "gpu.return"() : () -> ()
  }) {sym_name = "k", gpu.known_block_size = array<i32: 128, 1, 1>} : () -> ()
}) : () -> ()

// -----

// CHECK: this product cannot be made by `wgmma m64n64k8 tf32 f32 warps 4x1 parts 16 turned`: parts are those of wgmma that sums in f32, and multiples of its K
"gpu.module"() <{sym_name = "m"}> ({
  "gpu.func"() <{function_type = (f32, f32) -> (), kernel}> ({
  ^bb0(%x: f32, %y: f32):
    %a = tile.splat %x : f32 -> tensor<64x32xf32>
    %b = tile.splat %x : f32 -> tensor<32x64xf32>
    %c = tile.splat %y : f32 -> tensor<64x64xf32>
    %d = tile.dot %a, %b, %c using <"wgmma m64n64k8 tf32 f32 warps 4x1 parts 16 turned"> : tensor<64x32xf32>, tensor<32x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
    "gpu.return"() : () -> ()
  }) {sym_name = "k", gpu.known_block_size = array<i32: 128, 1, 1>} : () -> ()
}) : () -> ()
