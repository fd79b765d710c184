// RUN: phobos-opt %s -p ph-infer-uniformity | filecheck %s

"gpu.module"() ({
  "gpu.func"() <{function_type = (memref<?xf32>, index) -> (), kernel}> ({
  ^bb0(%x: memref<?xf32>, %n: index):
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    %zero = arith.constant 0.0 : f32

    // Sources.
    // CHECK: %block = ctx.block x{{$}}
    %block = ctx.block x
    // CHECK: %warp = ctx.warp {ctx.uniformity = "warp-uniform"}
    %warp = ctx.warp
    // CHECK: %lane = ctx.lane {ctx.uniformity = "varying"}
    %lane = ctx.lane

    // An op differs as far as its operands; a read as far as its subscripts.
    // CHECK: %a = arith.addi %block, %warp {ctx.uniformity = "warp-uniform"} : index
    %a = arith.addi %block, %warp : index
    // CHECK: %b = arith.addi %a, %lane {ctx.uniformity = "varying"} : index
    %b = arith.addi %a, %lane : index
    // CHECK: %same = memref.load %x[%block] : memref<?xf32>
    %same = memref.load %x[%block] : memref<?xf32>
    // CHECK: %own = memref.load %x[%b] {ctx.uniformity = "varying"} : memref<?xf32>
    %own = memref.load %x[%b] : memref<?xf32>

    // A value assigned under a condition takes in its variation, one that is not does not.
    %first = arith.cmpi eq, %lane, %c0 : index
    // CHECK: scf.if %first
    %p, %q = scf.if %first -> (f32, f32) {
      scf.yield %same, %zero : f32, f32
    } else {
      scf.yield %zero, %zero : f32, f32
    }
    // CHECK: %q2 = arith.addf %q, %q : f32
    %q2 = arith.addf %q, %q : f32

    // A loop whose trip count differs makes what it carries differ.
    // CHECK: scf.for
    %sum = scf.for %k = %lane to %n step %c32 iter_args(%acc = %zero) -> (f32) {
      // CHECK: arith.addf %acc, %zero {ctx.uniformity = "varying"} : f32
      %next = arith.addf %acc, %zero : f32
      scf.yield %next : f32
    }

    // A fold over the warp agrees within the warp, one over the CTA everywhere.
    // CHECK: %w = collective.reduce add over lane %sum {ctx.uniformity = "warp-uniform"} : f32 -> f32
    %w = collective.reduce add over lane %sum : f32 -> f32
    // CHECK: %t = collective.reduce add over thread %sum : f32 -> f32
    %t = collective.reduce add over thread %sum : f32 -> f32
    "gpu.return"() : () -> ()
  }) {sym_name = "k", "gpu.known_block_size" = array<i32: 256, 1, 1>} : () -> ()
}) {sym_name = "m"} : () -> ()
