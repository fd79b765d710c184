// RUN: phobos-opt %s -p ph-select-contraction | filecheck %s

"gpu.module"() ({
  "gpu.func"() <{function_type = (vector<16xi8>, vector<16xi8>) -> (), kernel}> ({
  ^bb0(%a: vector<16xi8>, %b: vector<16xi8>):
    // CHECK-NOT: arith.muli
    // CHECK: %s = tile.run_dot %a, %b unsigned, %{{.*}} : vector<16xi8>
    %a32 = tile.extsi %a : vector<16xi8> to vector<16xi32>
    %b32 = tile.extui %b : vector<16xi8> to vector<16xi32>
    %p = arith.muli %a32, %b32 : vector<16xi32>
    %s = "vector.reduction"(%p) <{kind = #vector.kind<add>}> : (vector<16xi32>) -> i32
    "gpu.return"() : () -> ()
  }) {sym_name = "bytes"} : () -> ()

  // Halves, and six bytes, stay as they are.
  "gpu.func"() <{function_type = (vector<4xi16>, vector<6xi8>) -> (), kernel}> ({
  ^bb0(%a: vector<4xi16>, %b: vector<6xi8>):
    // CHECK-NOT: tile.run_dot
    %a32 = tile.extsi %a : vector<4xi16> to vector<4xi32>
    %p = arith.muli %a32, %a32 : vector<4xi32>
    %s = "vector.reduction"(%p) <{kind = #vector.kind<add>}> : (vector<4xi32>) -> i32
    %b32 = tile.extsi %b : vector<6xi8> to vector<6xi32>
    %q = arith.muli %b32, %b32 : vector<6xi32>
    %t = "vector.reduction"(%q) <{kind = #vector.kind<add>}> : (vector<6xi32>) -> i32
    "gpu.return"() : () -> ()
  }) {sym_name = "others"} : () -> ()
}) {sym_name = "m"} : () -> ()
