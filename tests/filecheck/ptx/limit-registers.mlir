// RUN: phobos-opt %s -p ph-ptx-limit-registers | filecheck %s

ptx.module @m sm_80 {
  // Few values: as many CTAs of 256 threads as a multiprocessor takes.
  // CHECK: ptx.entry @small(p: u32) maxnreg 32
  ptx.entry @small(p: u32) attributes {phobos.threads = 256 : i64} {
    ptx.ret
  }
  // Who says it himself, and who does not say for how many threads, is left alone.
  // CHECK: ptx.entry @given(p: u32) maxnreg 40
  ptx.entry @given(p: u32) maxnreg 40 attributes {phobos.threads = 256 : i64} {
    ptx.ret
  }
  // CHECK: ptx.entry @unknown(p: u32) {
  ptx.entry @unknown(p: u32) {
    ptx.ret
  }
  // Products fill the registers anyway; those of a warpgroup, too.
  // CHECK: ptx.entry @product(p: u64) {{attributes|[{]}}
  ptx.entry @product(p: u64) attributes {phobos.threads = 128 : i64} {
    %x = ptx.param u64 0
    %a = ptx.imm 0 : b32
    %b, %c = ptx.wgmma.mma_async sync.aligned.m64n8k16.f16.f16.f16 {%a, %a}, %x, %x, 0, 1, 1, 0, 0
    ptx.ret
  }
  // With launch bounds it is the number of CTAs.
  // CHECK: ptx.entry @bounded(p: u32) maxntid 1024 minnctapersm 2
  ptx.entry @bounded(p: u32) maxntid 1024 attributes {phobos.threads = 1024 : i64} {
    ptx.ret
  }
}
