// RUN: phobos-opt %s -p ph-select-contraction{chip=sm_80} | filecheck %s
// RUN: phobos-compile %s --chip sm_90 -o - | filecheck %s --check-prefix PTX

// CHECK: tile.dot {{.*}} using <"mma m16n8k8 tf32x3 f32 warps 1x1">

// Three products of parts from zero, the small terms first; the sum is added as f32.
// PTX: cvt.rn.tf32.f32 [[LARGE:%r[0-9]+]], [[X:%r[0-9]+]];
// PTX: sub.rn.f32 [[REST:%r[0-9]+]], [[X]], [[LARGE]];
// PTX: cvt.rn.tf32.f32 [[SMALL:%r[0-9]+]], [[REST]];
// PTX: mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {{.*}}, {[[SMALL]], {{.*}}}, {{{.*}}}, {0f00000000
// PTX: mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {{.*}}, {[[LARGE]], {{.*}}}, {{{.*}}}, {%r
// PTX: mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {{.*}}, {[[LARGE]], {{.*}}}, {{{.*}}}, {%r
// PTX-NOT: mma
// PTX: add.rn.f32
@launch(32)
@tensorcore(tf32x3)
kernel near(A: tensor<f32>[M, K], B: tensor<f32>[K, N], C: tensor<f32>[M, N]) {
  C[0 :+ 16, 0 :+ 8] = dot(A[0 :+ 16, 0 :+ 8], B[0 :+ 8, 0 :+ 8])
}
