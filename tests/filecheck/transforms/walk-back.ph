// RUN: phobos-opt %s -p ph-canonicalize,cse,ph-walk-back | filecheck %s

// The second loop starts where the first one ended.
// CHECK:      scf.for [[K:%.*]] = [[ZERO:%.*]] to [[N:%.*]] step [[STEP:%.*]] iter_args
// CHECK-NEXT:   tile.load %X[%r, [[K]]]
// CHECK:      [[LENGTH:%.*]] = arith.subi [[N]], [[ZERO]]
// CHECK:      [[AHEAD:%.*]] = arith.subi [[LENGTH]],
// CHECK:      [[BEYOND:%.*]] = arith.remui [[AHEAD]], [[STEP]]
// CHECK:      [[WHOLE:%.*]] = arith.subi [[AHEAD]], [[BEYOND]]
// CHECK:      [[LAST:%.*]] = arith.addi [[ZERO]], [[WHOLE]]
// CHECK:      [[SUM:%.*]] = arith.addi [[LAST]], [[ZERO]]
// CHECK:      scf.for [[K2:%.*]] = [[ZERO]] to [[N]] step [[STEP]] {
// CHECK-NEXT:   [[BACK:%.*]] = arith.subi [[SUM]], [[K2]]
// CHECK-NEXT:   tile.load %X[%r, [[BACK]]]
// CHECK:        tile.store {{.*}}, %Y[%r, [[BACK]]]
// CHECK:      sym_name = "row"
kernel row(X: tensor<f32>[M, N], Y: tensor<f32>[M, N]) {
  let r = ctx.block.x
  var total = full(0.0, 1, 256)
  for k in range(0, N, 256) { total += X[r, k :+ 256] }
  let scale = 1 / sum<over 1>(total)
  for k in range(0, N, 256) { Y[r, k :+ 256] = X[r, k :+ 256] * scale }
}

// What is written just where it is read may be written in any order.
// CHECK:      iter_args
// CHECK:      scf.for [[K3:%.*]] = {{.*}} {
// CHECK-NEXT:   [[BACK3:%.*]] = arith.subi {{.*}}, [[K3]]
// CHECK-NEXT:   tile.load %X[%r, [[BACK3]]]
// CHECK:        tile.store {{.*}}, %X[%r, [[BACK3]]]
// CHECK:      sym_name = "in_place"
kernel in_place(X: tensor<f32>[M, N]) {
  let r = ctx.block.x
  var total = full(0.0, 1, 256)
  for k in range(0, N, 256) { total += X[r, k :+ 256] }
  let scale = 1 / sum<over 1>(total)
  for k in range(0, N, 256) { X[r, k :+ 256] = X[r, k :+ 256] * scale }
}

// Not what an earlier iteration has written, nor what the next one overwrites;
// CHECK-NOT:  arith.subi
// CHECK:      sym_name = "next_one"
kernel next_one(X: tensor<f32>[M, N]) {
  let r = ctx.block.x
  var total = full(0.0, 1, 256)
  for k in range(0, N, 256) { total += X[r, k :+ 256] }
  for k in range(0, N, 256) { X[r, k + 256 :+ 256] = X[r, k :+ 256] + total }
}

// CHECK-NOT:  arith.subi
// CHECK:      sym_name = "overwritten"
kernel overwritten(X: tensor<f32>[M, N], Y: tensor<f32>[M, N]) {
  let r = ctx.block.x
  var total = full(0.0, 1, 256)
  for k in range(0, N, 128) { total += X[r, k :+ 256] }
  for k in range(0, N, 128) { Y[r, k :+ 256] = X[r, k :+ 256] + total }
}

// nor a loop that carries a value, that nothing was read before, or whose tensor is another.
// CHECK-NOT:  arith.subi
// CHECK:      sym_name = "carried"
kernel carried(X: tensor<f32>[M, N], Y: tensor<f32>[M, N]) {
  let r = ctx.block.x
  var total = full(0.0, 1, 256)
  for k in range(0, N, 256) { total += X[r, k :+ 256] }
  for k in range(0, N, 256) {
    total += X[r, k :+ 256]
    Y[r, k :+ 256] = total
  }
}

// CHECK-NOT:  arith.subi
// CHECK:      sym_name = "once"
kernel once(X: tensor<f32>[M, N], Y: tensor<f32>[M, N]) {
  let r = ctx.block.x
  for k in range(0, N, 256) { Y[r, k :+ 256] = X[r, k :+ 256] + X[r, 0 :+ 256] }
}

// CHECK-NOT:  arith.subi
// CHECK:      sym_name = "another"
kernel another(X: tensor<f32>[M, N], Y: tensor<f32>[M, N], Z: tensor<f32>[M, N]) {
  let r = ctx.block.x
  var total = full(0.0, 1, 256)
  for k in range(0, N, 256) { total += X[r, k :+ 256] }
  for k in range(0, N, 256) { Y[r, k :+ 256] = Z[r, k :+ 256] + total }
}
