// RUN: phobos-opt %s -p ph-analyze-extents,ph-warn-masked-folds | filecheck %s

// The pass says what it has to say beside the IR, which stays as it is.
kernel k(X: tensor<f32>[N], Y: tensor<f32>[1]) {
  // CHECK: tile.load %X[%{{.*}}] in_bounds [false] vector 4
  // CHECK-NEXT: tile.reduce max
  Y[:] = max<over 0>(X[0 :+ 64])
}
