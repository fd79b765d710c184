// C = A * B with 16 x 16 tiles in shared memory, any extents.
extern "C" __global__ void matmul(const float *a, const float *b, float *c, int m, int n, int k) {
  __shared__ float left[16][17], right[16][17];
  int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0;
  for (int start = 0; start < k; start += 16) {
    int inner = start + threadIdx.x, outer = start + threadIdx.y;
    left[threadIdx.y][threadIdx.x] = row < m && inner < k ? a[row * k + inner] : 0;
    right[threadIdx.y][threadIdx.x] = outer < k && column < n ? b[outer * n + column] : 0;
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum += left[threadIdx.y][i] * right[i][threadIdx.x];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}
