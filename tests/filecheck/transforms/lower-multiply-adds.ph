// RUN: phobos-compile %s --chip sm_80 --set K=64 -o - | filecheck %s --check-prefix ROLLED
// RUN: phobos-compile %s --chip sm_80 --set K=8 -o - | filecheck %s --check-prefix FLAT

// 64 results a thread: 16 steps along K are 1024 multiply-adds, and a loop takes four times that.
// ROLLED: $L_products_1:
// ROLLED: shl.b32 [[A:%r[0-9]+]], [[NUMBER:%r[0-9]+]], 4;
// ROLLED: xor.b32
// ROLLED: ld.shared.v4.b32
// ROLLED: fma.rn.f32
// ROLLED: add.s32 [[NUMBER]], [[NUMBER]], 1;
// ROLLED-NEXT: setp.lt.s32 [[LEFT:%p[0-9]+]], [[NUMBER]], 4;
// ROLLED-NEXT: @[[LEFT]] bra.uni $L_products_1;

// FLAT-NOT: L_products
// FLAT: fma.rn.f32
// FLAT-NOT: L_products
@autotune(K in [8, 64])
@launch(64)
kernel product(A: tensor<f32>[64, K], B: tensor<f32>[K, 64], C: tensor<f32>[64, 64]) {
  C[:, :] = dot(A[:, :], B[:, :])
}
