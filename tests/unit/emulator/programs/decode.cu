// Four-bit numbers, packed eight to a word, to bytes by permutation and a look-up table.
extern "C" __global__ void decode(const unsigned *packed, unsigned *bytes, unsigned low,
                                  unsigned high, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned word = packed[i];
  unsigned even = word & 0x77777777, flip = (word >> 3) & 0x11111111;
  unsigned first = __byte_perm(low, high, even), second = __byte_perm(low, high, even >> 16);
  unsigned signs = __byte_perm(flip, __brev(flip), 0x3120) ^ __funnelshift_l(word, low, 5);
  bytes[3 * i] = first;
  bytes[3 * i + 1] = second;
  bytes[3 * i + 2] = signs + __popc(word) + __clz(word) + __ffs(word) + __dp4a(first, second, 7u);
}
