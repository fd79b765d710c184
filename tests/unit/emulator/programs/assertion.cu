// Asserts that no element is negative, in a switch over the kind of each element.
#include <cassert>

extern "C" __global__ void assertion(const int *x, int *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int v = x[i];
  assert(v >= 0);
  switch (v % 6) {
    case 0: y[i] = v / 6; break;
    case 1: y[i] = v * 3 + 1; break;
    case 2: y[i] = v ^ 0x55; break;
    case 3: y[i] = -v; break;
    case 4: y[i] = v << 2; break;
    default: y[i] = i; break;
  }
}
