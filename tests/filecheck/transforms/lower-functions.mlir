// RUN: phobos-opt %s --split-input-file -p ph-lower-to-ptx,ph-ptx-canonicalize | filecheck %s

"gpu.module"() ({
  // CHECK-LABEL: @exponential
  "gpu.func"() <{function_type = (memref<4xf32>, f32) -> (), kernel}> ({
  ^bb0(%out: memref<4xf32>, %x: f32):
    // Equal elements are computed once.
    // CHECK:     %[[X:.*]] = ptx.param f32
    // CHECK:     %[[C:.*]] = ptx.fma rn.sat.f32 %[[X]]
    // CHECK:     %[[K:.*]] = ptx.fma rn.f32 %[[C]]
    // CHECK:     %[[N:.*]] = ptx.sub rn.f32 %{{.*}}, %[[K]]
    // CHECK:     %[[R:.*]] = ptx.fma rn.f32 %[[X]], %{{.*}}, %[[N]]
    // CHECK:     %[[S:.*]] = ptx.fma rn.f32 %[[X]], %{{.*}}, %[[R]]
    // CHECK-DAG: %[[P:.*]] = ptx.shl b32 %[[K]]
    // CHECK-DAG: %[[E:.*]] = ptx.ex2 approx.ftz.f32 %[[S]]
    // CHECK:     %[[Y:.*]] = ptx.mul rn.f32 %[[E]], %[[P]]
    // CHECK-NOT: ptx.ex2
    // CHECK:     ptx.st global.b32 [%{{.*}}], %[[Y]]
    // CHECK:     ptx.st global.b32 [%{{.*}} + 12], %[[Y]]
    %zero = arith.constant 0 : index
    %run = vector.broadcast %x : f32 to vector<4xf32>
    %y = math.exp %run : vector<4xf32>
    vector.store %y, %out[%zero] : memref<4xf32>, vector<4xf32>
    "gpu.return"() : () -> ()
  }) {sym_name = "exponential", "gpu.known_block_size" = array<i32: 32, 1, 1>} : () -> ()
}) {sym_name = "m"} : () -> ()

// -----

"gpu.module"() ({
  // CHECK-LABEL: @fast_exponential
  "gpu.func"() <{function_type = (memref<4xf32>, f32) -> (), kernel}> ({
  ^bb0(%out: memref<4xf32>, %x: f32):
    // CHECK:      %[[M:.*]] = ptx.mul rn.ftz.f32 %
    // CHECK-NEXT: ptx.ex2 approx.ftz.f32 %[[M]]
    %zero = arith.constant 0 : index
    %y = math.exp %x : f32
    memref.store %y, %out[%zero] : memref<4xf32>
    "gpu.return"() : () -> ()
  }) {sym_name = "fast_exponential", "gpu.known_block_size" = array<i32: 32, 1, 1>,
      phobos.fast_math} : () -> ()
}) {sym_name = "m"} : () -> ()

// -----

"gpu.module"() ({
  // CHECK-LABEL: @sine
  "gpu.func"() <{function_type = (memref<4xf32>) -> (), kernel}> ({
  ^bb0(%out: memref<4xf32>):
    // All elements of an op share one branch to the reduction of large arguments.
    // CHECK:      %{{[0-9]+}}, %[[P:.*]] = ptx.setp leu.f32
    // CHECK:      %{{[0-9]+}}, %[[Q:.*]] = ptx.setp leu.f32
    // CHECK:      %[[ANY:.*]] = ptx.or pred %[[P]], %[[Q]]
    // CHECK-NEXT: ptx.cond_bra %[[ANY]], ^large, ^reduced({{.*}} : b32, b32, b32, b32)
    // CHECK:      ^large
    // CHECK-COUNT-2: ptx.mad wide.u32
    // CHECK:      ptx.bra ^reduced
    // CHECK:      ^reduced
    // CHECK-NOT:  ptx.cond_bra
    %zero = arith.constant 0 : index
    %run = vector.load %out[%zero] : memref<4xf32>, vector<2xf32>
    %y = math.sin %run : vector<2xf32>
    vector.store %y, %out[%zero] : memref<4xf32>, vector<2xf32>
    "gpu.return"() : () -> ()
  }) {sym_name = "sine", "gpu.known_block_size" = array<i32: 32, 1, 1>} : () -> ()
}) {sym_name = "m"} : () -> ()

// -----

"gpu.module"() ({
  // CHECK-LABEL: @remainder
  "gpu.func"() <{function_type = (memref<4xf32>) -> (), kernel}> ({
  ^bb0(%out: memref<4xf32>):
    // All elements of an op share one loop, which ends when each is below its divisor.
    // CHECK:         ptx.bra ^remainder(%{{.*}}, %{{.*}} : b32, b32)
    // CHECK:         ^remainder(%[[A:[0-9]+]]: {{.*}}):
    // CHECK:         %[[Q:.*]] = ptx.div rz.f32 %[[A]],
    // CHECK-NEXT:    %[[T:.*]] = ptx.cvt rzi.f32.f32 %[[Q]]
    // CHECK-NEXT:    %[[N:.*]] = ptx.neg f32 %[[T]]
    // CHECK-NEXT:    ptx.fma rn.f32 %[[N]], %{{.*}}, %[[A]]
    // CHECK:         %[[MORE:.*]] = ptx.or pred
    // CHECK-NEXT:    ptx.cond_bra %[[MORE]], ^remainder(%{{.*}}, %{{.*}} : b32, b32), ^reduced
    %zero = arith.constant 0 : index
    %x = vector.load %out[%zero] : memref<4xf32>, vector<2xf32>
    %two = arith.constant 2 : index
    %y = vector.load %out[%two] : memref<4xf32>, vector<2xf32>
    %r = tile.remf %x, %y : vector<2xf32>
    vector.store %r, %out[%zero] : memref<4xf32>, vector<2xf32>
    "gpu.return"() : () -> ()
  }) {sym_name = "remainder", "gpu.known_block_size" = array<i32: 32, 1, 1>} : () -> ()
}) {sym_name = "m"} : () -> ()
