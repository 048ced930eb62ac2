// RUN: passes=fly-layout-lowering
// CHECK-LABEL: func.func @offset(
// CHECK-SAME: %[[P:.*]]: !fly.ptr<f16, global>, %[[I:.*]]: i32, %[[S:.*]]: i64)
// The coordinate (i, 3) of strides (s, 2): i * s dynamic, 3 * 2 static.
// CHECK: %[[W:.*]] = arith.extsi %[[I]] : i32 to i64
// CHECK: %[[M:.*]] = arith.muli %[[W]], %[[S]] : i64
// CHECK: %[[O:.*]] = arith.addi %[[M]], %{{.*}} : i64
// CHECK: %[[Q:.*]] = fly.ptr.add(%[[P]], %[[O]])
// CHECK: %[[X:.*]] = fly.ptr.load(%[[Q]]) : (!fly.ptr<f16, global>) -> f16
// CHECK: return %[[X]]
func.func @offset(%p: !fly.ptr<f16, global>, %i: i32, %s: i64) -> f16 {
  %shape = fly.static() : () -> !fly.int_tuple<(4,8)>
  %stride = fly.make_int_tuple(%s) {operandSegmentSizes = array<i32: 0, 1>} : (i64) -> !fly.int_tuple<(?{i64},2)>
  %l = fly.make_layout(%shape, %stride) : (!fly.int_tuple<(4,8)>, !fly.int_tuple<(?{i64},2)>) -> !fly.layout<(4,8):(?{i64},2)>
  %v = fly.make_view(%p, %l) : (!fly.ptr<f16, global>, !fly.layout<(4,8):(?{i64},2)>) -> !fly.memref<f16, global, (4,8):(?{i64},2)>
  %c = fly.make_int_tuple(%i) {operandSegmentSizes = array<i32: 1, 0>} : (i32) -> !fly.int_tuple<(?,3)>
  %x = fly.memref.load(%v, %c) : (!fly.memref<f16, global, (4,8):(?{i64},2)>, !fly.int_tuple<(?,3)>) -> f16
  return %x : f16
}

// A copy becomes one call per atom; static offsets are added where they are used.
// CHECK-LABEL: func.func @copy(
// CHECK: %[[R:.*]] = fly.alloca() {elems = 8 : i64} : () -> !fly.ptr<f32, register>
// CHECK: fly.copy_atom_call(%{{.*}}, %[[P:.*]], %[[R]])
// CHECK: %[[P1:.*]] = fly.ptr.add(%[[P]]) {offset = 64 : i64}
// CHECK: %[[R1:.*]] = fly.ptr.add(%[[R]]) {offset = 4 : i64}
// CHECK: fly.copy_atom_call(%{{.*}}, %[[P1]], %[[R1]])
// CHECK-NOT: fly.copy_atom_call
func.func @copy(%p: !fly.ptr<f32, global>) {
  %l = fly.static() : () -> !fly.layout<(4,2):(1,64)>
  %v = fly.make_view(%p, %l) : (!fly.ptr<f32, global>, !fly.layout<(4,2):(1,64)>) -> !fly.memref<f32, global, (4,2):(1,64)>
  %r = fly.alloca() : () -> !fly.memref<f32, register, (4,2):(1,4)>
  %a = fly.static() : () -> !fly.copy_atom<!fly.universal_copy<128>, 32>
  fly.copy(%a, %v, %r) {operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!fly.copy_atom<!fly.universal_copy<128>, 32>, !fly.memref<f32, global, (4,2):(1,64)>, !fly.memref<f32, register, (4,2):(1,4)>) -> ()
  return
}

// The steps of a gemm in the given order; the first visit of a cell reads c, later ones d.
// CHECK-LABEL: func.func @gemm(
// CHECK: %[[D:.*]] = fly.alloca() {elems = 4
// CHECK: %[[C:.*]] = fly.alloca() {elems = 4
// CHECK: fly.mma_atom_call(%{{.*}}, %[[D]], %{{.*}}, %{{.*}}, %[[C]])
// CHECK: fly.mma_atom_call(%{{.*}}, %[[D]], %{{.*}}, %{{.*}}, %[[D]])
func.func @gemm() {
  %a = fly.alloca() : () -> !fly.memref<f16, register, (4,1,2):(1,0,4)>
  %d = fly.alloca() : () -> !fly.memref<f32, register, (4,1,1):(1,0,0)>
  %c = fly.alloca() : () -> !fly.memref<f32, register, (4,1,1):(1,0,0)>
  %m = fly.static() : () -> !fly.mma_atom<!fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32>>
  fly.gemm(%m, %d, %a, %a, %c) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0>, order = array<i64: 0, 0, 0, 0, 0, 1>} : (!fly.mma_atom<!fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32>>, !fly.memref<f32, register, (4,1,1):(1,0,0)>, !fly.memref<f16, register, (4,1,2):(1,0,4)>, !fly.memref<f16, register, (4,1,2):(1,0,4)>, !fly.memref<f32, register, (4,1,1):(1,0,0)>) -> ()
  return
}
