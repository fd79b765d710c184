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
