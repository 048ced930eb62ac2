// RUN: passes=fly-promote-regmem-to-vectorssa
// Two halves of an allocation are two values: each is carried by the loop that writes it.
// CHECK-LABEL: func.func @loop(
// CHECK-SAME: %[[N:.*]]: i32, %[[V:.*]]: vector<8xf32>)
// CHECK-NOT: fly.alloca
// CHECK-DAG: %[[LO:.*]] = vector.extract_strided_slice %[[V]] {offsets = [0], sizes = [4]
// CHECK-DAG: %[[HI:.*]] = vector.extract_strided_slice %[[V]] {offsets = [4], sizes = [4]
// CHECK: %[[R:.*]] = scf.for {{.*}} iter_args(%[[ACC:.*]] = %[[LO]]) -> (vector<4xf32>)
// CHECK: %[[S:.*]] = arith.addf %[[ACC]], %[[HI]]
// CHECK: scf.yield %[[S]]
// CHECK: return %[[R]]
func.func @loop(%n: i32, %v: vector<8xf32>) -> vector<4xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = fly.alloca() {elems = 8 : i64} : () -> !fly.ptr<f32, register>
  %h = fly.ptr.add(%r) {offset = 4 : i64} : (!fly.ptr<f32, register>) -> !fly.ptr<f32, register, align<16>>
  fly.ptr.store(%v, %r) : (vector<8xf32>, !fly.ptr<f32, register>) -> ()
  scf.for %i = %c0 to %n step %c1 : i32 {
    %a = fly.ptr.load(%r) : (!fly.ptr<f32, register>) -> vector<4xf32>
    %b = fly.ptr.load(%h) : (!fly.ptr<f32, register, align<16>>) -> vector<4xf32>
    %s = arith.addf %a, %b : vector<4xf32>
    fly.ptr.store(%s, %r) : (vector<4xf32>, !fly.ptr<f32, register>) -> ()
  }
  %o = fly.ptr.load(%r) : (!fly.ptr<f32, register>) -> vector<4xf32>
  return %o : vector<4xf32>
}

// A branch that writes gives a result; the other side keeps the old value.
// CHECK-LABEL: func.func @branch(
// CHECK-SAME: %[[C:.*]]: i1, %[[X:.*]]: f32, %[[Y:.*]]: f32)
// CHECK: %[[R:.*]] = scf.if %[[C]] -> (f32) {
// CHECK: scf.yield %[[Y]]
// CHECK: } else {
// CHECK: scf.yield %[[X]]
// CHECK: return %[[R]]
func.func @branch(%c: i1, %x: f32, %y: f32) -> f32 {
  %r = fly.alloca() {elems = 1 : i64} : () -> !fly.ptr<f32, register>
  fly.ptr.store(%x, %r) : (f32, !fly.ptr<f32, register>) -> ()
  scf.if %c {
    fly.ptr.store(%y, %r) : (f32, !fly.ptr<f32, register>) -> ()
  }
  %o = fly.ptr.load(%r) : (!fly.ptr<f32, register>) -> f32
  return %o : f32
}

// Values carried through both regions of a while.
// CHECK-LABEL: func.func @while(
// CHECK: scf.while (%{{.*}} = %{{.*}}, %[[A:.*]] = %{{.*}}) : (i32, f32) -> (i32, f32)
// CHECK: scf.condition(%{{.*}}) %{{.*}}, %[[A]]
func.func @while(%n: i32, %x: f32) -> f32 {
  %c1 = arith.constant 1 : i32
  %r = fly.alloca() {elems = 1 : i64} : () -> !fly.ptr<f32, register>
  fly.ptr.store(%x, %r) : (f32, !fly.ptr<f32, register>) -> ()
  %e = scf.while (%i = %n) : (i32) -> i32 {
    %c = arith.cmpi sgt, %i, %c1 : i32
    scf.condition(%c) %i : i32
  } do {
  ^bb0(%i: i32):
    %v = fly.ptr.load(%r) : (!fly.ptr<f32, register>) -> f32
    %w = arith.addf %v, %v : f32
    fly.ptr.store(%w, %r) : (f32, !fly.ptr<f32, register>) -> ()
    %j = arith.subi %i, %c1 : i32
    scf.yield %j : i32
  }
  %o = fly.ptr.load(%r) : (!fly.ptr<f32, register>) -> f32
  return %o : f32
}

// A dynamic index keeps the allocation in memory.
// CHECK-LABEL: func.func @dynamic(
// CHECK: fly.alloca
func.func @dynamic(%i: i32, %x: f32) {
  %r = fly.alloca() {elems = 8 : i64} : () -> !fly.ptr<f32, register>
  %p = fly.ptr.add(%r, %i) {offset = 0 : i64} : (!fly.ptr<f32, register>, i32) -> !fly.ptr<f32, register>
  fly.ptr.store(%x, %p) : (f32, !fly.ptr<f32, register>) -> ()
  return
}
