// RUN: passes=fly-convert-atom-call-to-ssa-form
// CHECK-LABEL: func.func @load(
// CHECK-SAME: %[[P:.*]]: !fly.ptr<f32, global>, %[[R:.*]]: !fly.ptr<f32, register>, %[[C:.*]]: i1)
// CHECK: %[[V:.*]] = fly.copy_atom_call_ssa(%{{.*}}, %[[P]])
// CHECK-SAME: -> vector<4xf32>
// CHECK: fly.ptr.store(%[[V]], %[[R]])
// A predicated call stands in a branch.
// CHECK: scf.if %[[C]] {
// CHECK: fly.ptr.load(%[[R]])
// CHECK: fly.copy_atom_call_ssa
// A register side that is not adjacent is gathered.
// CHECK: fly.ptr.load(%[[R]]) : (!fly.ptr<f32, register>) -> vector<2xf32>
// CHECK: fly.ptr.add(%[[R]]) {offset = 8 : i64}
func.func @load(%p: !fly.ptr<f32, global>, %r: !fly.ptr<f32, register>, %c: i1) {
  %a = fly.static() : () -> !fly.copy_atom<!fly.universal_copy<128>, 32>
  fly.copy_atom_call(%a, %p, %r) {operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!fly.copy_atom<!fly.universal_copy<128>, 32>, !fly.ptr<f32, global>, !fly.ptr<f32, register>) -> ()
  fly.copy_atom_call(%a, %r, %p, %c) {operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (!fly.copy_atom<!fly.universal_copy<128>, 32>, !fly.ptr<f32, register>, !fly.ptr<f32, global>, i1) -> ()
  fly.copy_atom_call(%a, %r, %p) {operandSegmentSizes = array<i32: 1, 1, 1, 0>, src_offsets = array<i64: 0, 1, 8, 9>} : (!fly.copy_atom<!fly.universal_copy<128>, 32>, !fly.ptr<f32, register>, !fly.ptr<f32, global>) -> ()
  return
}
