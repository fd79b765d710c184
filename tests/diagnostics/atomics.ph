kernel k(A: tensor<f32>[M, N], i: tensor<i32>[4], b: tensor<i8>[M], state: tensor<i32>[1],
         good: tensor<i32>[2], f: tensor<f32>[4]) {
  atomic_add(A, 0, 1.0)
  atomic_add(i, 0, 1.5)
  atomic_add(b, 0, 1)
  atomic_and(f, 0, 1.0)
  atomic_max(3, 0, 1)
  atomic_add()
  let t = A[0 :+ 4, 0 :+ 4]
  atomic_add(t, 0, 0, 1)
  let u = atomic_cas(i, 0, 1)
  let v = load_acquire(t, 0, 0)
  let w = store_release(i, 0, 1)
  grid_barrier(state)
  grid_barrier(f)
  grid_barrier()
  grid_barrier(good)
  let x = grid_barrier(good)
  store_release(i, 0)
  atomic_xor(unknown, 0, 1)
  atomic_add(i, t, 1)
}
