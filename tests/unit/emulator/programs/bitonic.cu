// Sorts 1024 keys in place with 512 threads: every exchange divergent, a barrier a step.
extern "C" __global__ void bitonic(int *keys) {
  __shared__ int s[1024];
  int t = threadIdx.x;
  s[t] = keys[t];
  s[t + 512] = keys[t + 512];
  for (int size = 2; size <= 1024; size *= 2)
    for (int stride = size / 2; stride; stride /= 2) {
      __syncthreads();
      int low = 2 * t - (t & (stride - 1)), high = low + stride;
      bool up = (low & size) == 0;
      if ((s[low] > s[high]) == up) {
        int swap = s[low];
        s[low] = s[high];
        s[high] = swap;
      }
    }
  __syncthreads();
  keys[t] = s[t];
  keys[t + 512] = s[t + 512];
}
