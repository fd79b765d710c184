// Running sums over rows through a ring of three shared stages filled by asynchronous copies.
#include <cuda_pipeline.h>

extern "C" __global__ void pipeline(const float4 *x, float4 *y, int rows) {
  __shared__ float4 stage[3][128];
  int t = threadIdx.x;
  float4 sum = {0, 0, 0, 0};
  for (int i = 0; i < 2; ++i) {
    if (i < rows) __pipeline_memcpy_async(&stage[i][t], &x[i * 128 + t], 16);
    __pipeline_commit();
  }
  for (int i = 0; i < rows; ++i) {
    if (i + 2 < rows)
      __pipeline_memcpy_async(&stage[(i + 2) % 3][t], &x[(i + 2) * 128 + t], 16);
    __pipeline_commit();
    __pipeline_wait_prior(2);
    __syncthreads();
    float4 v = stage[i % 3][t ^ 1];
    sum.x += v.x; sum.y += v.y; sum.z += v.z; sum.w += v.w;
    y[i * 128 + t] = sum;
    __syncthreads();
  }
}
