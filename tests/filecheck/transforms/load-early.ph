// RUN: phobos-opt %s -p ph-bind-constants,ph-canonicalize,cse,ph-analyze-extents,ph-assign-layouts,ph-load-early | filecheck %s

// 64 of a thread's 168 registers hold x, then 64 g, but b would be 64 more.
// CHECK:      tile.load %X
// CHECK-NEXT: tile.load %G
// CHECK:      tile.reduce
// CHECK-NOT:  tile.load
// CHECK:      tile.reduce
// CHECK:      tile.load %B
// CHECK:      sym_name = "one_fits"
@launch(128, 3)
kernel one_fits(X: tensor<f32>[8192], G: tensor<f32>[8192], B: tensor<f32>[8192],
                Y: tensor<f32>[8192]) {
  let x = X[:]
  let centred = x - sum<over 0>(x)
  let scaled = centred * sum<over 0>(centred * centred)
  Y[:] = scaled * G[:] + B[:]
}

// One half of the registers each.
// CHECK:      tile.load %X
// CHECK-NEXT: tile.load %G
// CHECK-NEXT: tile.load %B
// CHECK:      tile.reduce
// CHECK:      sym_name = "both_fit"
@launch(256, 2)
kernel both_fit(X: tensor<f32>[8192], G: tensor<f32>[8192], B: tensor<f32>[8192],
                Y: tensor<f32>[8192]) {
  let x = X[:]
  let centred = x - sum<over 0>(x)
  let scaled = centred * sum<over 0>(centred * centred)
  Y[:] = scaled * G[:] + B[:]
}

// What may have been written by then is loaded where it stands, and so is all of a kernel that does
// not say how many registers a thread has.
// CHECK:      tile.reduce
// CHECK:      tile.store
// CHECK:      tile.load %Y
// CHECK:      sym_name = "written"
@launch(256, 2)
kernel written(X: tensor<f32>[1024], Y: tensor<f32>[1024]) {
  let total = sum<over 0>(X[:])
  Y[0 :+ 1] = total
  Y[:] = Y[:] * total
}

// CHECK:      tile.reduce
// CHECK:      tile.load %Y
// CHECK:      sym_name = "unbounded"
@launch(256)
kernel unbounded(X: tensor<f32>[1024], Y: tensor<f32>[1024]) {
  let total = sum<over 0>(X[:])
  Y[:] = Y[:] * total
}
