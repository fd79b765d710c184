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
  // With launch bounds it is the number of CTAs.
  // CHECK: ptx.entry @bounded(p: u32) maxntid 1024 minnctapersm 2
  ptx.entry @bounded(p: u32) maxntid 1024 attributes {phobos.threads = 1024 : i64} {
    ptx.ret
  }
}
