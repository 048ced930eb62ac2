// RUN: passes=convert-fly-to-rocdl arch=gfx950
// A float atomic in global memory may use the instruction.
// CHECK-LABEL: func.func @atomics(
// CHECK: llvm.atomicrmw fadd %{{.*}}, %{{.*}} syncscope("agent") monotonic {alignment = 4 : i64, rocdl.no_fine_grained_memory, rocdl.no_remote_memory}
// CHECK: llvm.atomicrmw umax %{{.*}}, %{{.*}} monotonic {alignment = 4 : i64} : !llvm.ptr<3>, i32
func.func @atomics(%g: !llvm.ptr<1>, %s: !llvm.ptr<3>, %x: f32, %i: i32) {
  %p = fly.from_llvm_ptr(%g) : (!llvm.ptr<1>) -> !fly.ptr<f32, global>
  %q = fly.from_llvm_ptr(%s) : (!llvm.ptr<3>) -> !fly.ptr<i32, shared>
  %a = fly.static() : () -> !fly.copy_atom<!fly.universal_atomic<add, f32, "agent">, 32>
  fly.copy_atom_call_ssa(%a, %x, %p) {operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!fly.copy_atom<!fly.universal_atomic<add, f32, "agent">, 32>, f32, !fly.ptr<f32, global>) -> ()
  %b = fly.static() : () -> !fly.copy_atom<!fly.universal_atomic<max, ui32>, 32>
  fly.copy_atom_call_ssa(%b, %i, %q) {operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!fly.copy_atom<!fly.universal_atomic<max, ui32>, 32>, i32, !fly.ptr<i32, shared>) -> ()
  return
}

// CHECK-LABEL: func.func @buffer_atomic(
// CHECK: rocdl.raw.ptr.buffer.atomic.fadd %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, 0 : vector<2xbf16>
func.func @buffer_atomic(%g: !llvm.ptr<1>, %x: vector<2xbf16>) {
  %c0 = arith.constant 0 : i16
  %n = arith.constant 4096 : i64
  %f = arith.constant 159744 : i32
  %p = fly.from_llvm_ptr(%g) : (!llvm.ptr<1>) -> !fly.ptr<bf16, global>
  %b = fly.make_buffer_ptr(%p, %c0, %n, %f) : (!fly.ptr<bf16, global>, i16, i64, i32) -> !fly.ptr<bf16, #fly_rocdl.buffer_desc>
  %a = fly.static() : () -> !fly.copy_atom<!fly_rocdl.cdna3.buffer_atomic<add, vector<2xbf16>>, 16>
  fly.copy_atom_call_ssa(%a, %x, %b) {operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!fly.copy_atom<!fly_rocdl.cdna3.buffer_atomic<add, vector<2xbf16>>, 16>, vector<2xbf16>, !fly.ptr<bf16, #fly_rocdl.buffer_desc>) -> ()
  return
}

// CHECK-LABEL: func.func @asynchronous(
// CHECK: rocdl.global.load.async.lds %{{.*}}, %{{.*}}, 16, 0, 0
func.func @asynchronous(%g: !llvm.ptr<1>, %s: !llvm.ptr<3>) {
  %p = fly.from_llvm_ptr(%g) : (!llvm.ptr<1>) -> !fly.ptr<f32, global>
  %q = fly.from_llvm_ptr(%s) : (!llvm.ptr<3>) -> !fly.ptr<f32, shared>
  %a = fly.static() : () -> !fly.copy_atom<!fly_rocdl.cdna4.global_load_async_lds<128>, 32>
  fly.copy_atom_call_ssa(%a, %p, %q) {operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!fly.copy_atom<!fly_rocdl.cdna4.global_load_async_lds<128>, 32>, !fly.ptr<f32, global>, !fly.ptr<f32, shared>) -> ()
  return
}

// CHECK-LABEL: func.func @transposing(
// CHECK: %[[R:.*]] = rocdl.ds.read.tr16.b64 %{{.*}} : <3> -> vector<4xi16>
// CHECK: llvm.bitcast %[[R]] : vector<4xi16> to vector<4xf16>
func.func @transposing(%s: !llvm.ptr<3>) -> vector<4xf16> {
  %q = fly.from_llvm_ptr(%s) : (!llvm.ptr<3>) -> !fly.ptr<f16, shared>
  %a = fly.static() : () -> !fly.copy_atom<!fly_rocdl.cdna4.lds_read_trans<trans = 16b, 64>, 16>
  %v = fly.copy_atom_call_ssa(%a, %q) {operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (!fly.copy_atom<!fly_rocdl.cdna4.lds_read_trans<trans = 16b, 64>, 16>, !fly.ptr<f16, shared>) -> vector<4xf16>
  return %v : vector<4xf16>
}
