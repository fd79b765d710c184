// RUN: phobos-opt %s -p ph-ptx-fold,ph-ptx-dead-code | filecheck %s

ptx.module @m sm_80 {
  ptx.entry @powers(x: u64, n: u32, k: s32) {
    %c8 = ptx.imm 8 : b32
    %x = ptx.param u64 0
    %n = ptx.param u32 1
    %k = ptx.param s32 2
    %q = ptx.div u32 %n, %c8
    %r = ptx.rem u32 %n, %c8
    %s = ptx.div s32 %k, %c8
    ptx.st global.v2.b32 [%x], {%q, %r}
    ptx.st global.b32 [%x + 8], %s
    ptx.ret
  }
  // CHECK-LABEL: ptx.entry @powers
  // CHECK-DAG:     [[C3:%[0-9a-z]+]] = ptx.imm 3 : b32
  // CHECK-DAG:     [[C7:%[0-9a-z]+]] = ptx.imm 7 : b32
  // CHECK-DAG:     [[C29:%[0-9a-z]+]] = ptx.imm 29 : b32
  // CHECK-DAG:     [[C31:%[0-9a-z]+]] = ptx.imm 31 : b32
  // CHECK:         [[N:%[0-9a-z]+]] = ptx.param u32 1
  // CHECK-NEXT:    [[K:%[0-9a-z]+]] = ptx.param s32 2
  // CHECK-NEXT:    [[Q:%[0-9a-z]+]] = ptx.shr u32 [[N]], [[C3]]
  // CHECK-NEXT:    [[R:%[0-9a-z]+]] = ptx.and b32 [[N]], [[C7]]
  // CHECK-NEXT:    [[SIGN:%[0-9a-z]+]] = ptx.shr s32 [[K]], [[C31]]
  // CHECK-NEXT:    [[BIAS:%[0-9a-z]+]] = ptx.shr u32 [[SIGN]], [[C29]]
  // CHECK-NEXT:    [[SUM:%[0-9a-z]+]] = ptx.add s32 [[K]], [[BIAS]]
  // CHECK-NEXT:    [[S:%[0-9a-z]+]] = ptx.shr s32 [[SUM]], [[C3]]
  // CHECK-NEXT:    ptx.st global.v2.b32 [{{.*}}], {[[Q]], [[R]]}
  // CHECK-NEXT:    ptx.st global.b32 [{{.*}} + 8], [[S]]

  // Quotient and remainder by 10 share the multiplication.
  ptx.entry @ten(x: u64, n: u32) {
    %c10 = ptx.imm 10 : b32
    %x = ptx.param u64 0
    %n = ptx.param u32 1
    %q = ptx.div u32 %n, %c10
    %r = ptx.rem u32 %n, %c10
    ptx.st global.v2.b32 [%x], {%q, %r}
    ptx.ret
  }
  // CHECK-LABEL: ptx.entry @ten
  // CHECK-DAG:     [[MAGIC:%[0-9a-z]+]] = ptx.imm 0xcccccccd : b32
  // CHECK-DAG:     [[C3:%[0-9a-z]+]] = ptx.imm 3 : b32
  // CHECK-DAG:     [[C10:%[0-9a-z]+]] = ptx.imm 10 : b32
  // CHECK:         [[N:%[0-9a-z]+]] = ptx.param u32 1
  // CHECK-NEXT:    [[HIGH:%[0-9a-z]+]] = ptx.mul hi.u32 [[N]], [[MAGIC]]
  // CHECK-NEXT:    [[Q:%[0-9a-z]+]] = ptx.shr u32 [[HIGH]], [[C3]]
  // CHECK-NEXT:    [[BACK:%[0-9a-z]+]] = ptx.mul lo.u32 [[Q]], [[C10]]
  // CHECK-NEXT:    [[R:%[0-9a-z]+]] = ptx.sub u32 [[N]], [[BACK]]
  // CHECK-NEXT:    ptx.st global.v2.b32 [{{.*}}], {[[Q]], [[R]]}
  // CHECK-NEXT:    ptx.ret
}
