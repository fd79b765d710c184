// RUN: phobos-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: `count` of i1 gives i32, not i1
func.func @count_gives_i32(%p: i1) {
  %c = collective.reduce count over lane %p : i1 -> i1
  func.return
}

// -----

// CHECK: `any` folds i1, not i32
func.func @any_takes_booleans(%i: i32) {
  %c = collective.reduce any over lane %i : i32 -> i32
  func.return
}

// -----

// CHECK: `umax` folds integers, not f32
func.func @umax_takes_integers(%x: f32) {
  %c = collective.reduce umax over lane %x : f32 -> f32
  func.return
}

// -----

// CHECK: a collective folds scalars, not vector<4xf32>
func.func @no_runs(%x: vector<4xf32>) {
  %c = collective.reduce add over lane %x : vector<4xf32> -> vector<4xf32>
  func.return
}

// -----

// CHECK: collective.atomic: no `and` of f32
func.func @bits(%x: f32, %i: index, %t: memref<?xf32>) {
  %a = collective.atomic and %x, %t[%i] : f32, memref<?xf32>
  func.return
}

// -----

// CHECK: collective.atomic: no atomic update of i8
func.func @narrow(%x: i8, %i: index, %t: memref<?xi8>) {
  %a = collective.atomic add %x, %t[%i] : i8, memref<?xi8>
  func.return
}

// -----

// CHECK: collective.load_acquire: 2 subscripts expected, got 1
func.func @rank(%i: index, %t: memref<?x?xf32>) {
  %a = collective.load_acquire %t[%i] : memref<?x?xf32> -> f32
  func.return
}

// -----

// CHECK: collective.grid_barrier: its state is one axis of i32, not memref<2xf32>
func.func @state(%t: memref<2xf32>) {
  collective.grid_barrier %t : memref<2xf32>
  func.return
}
