// RUN: passes=convert-fly-to-rocdl
// CHECK-LABEL: func.func @pointers(
// CHECK-SAME: %[[P:.*]]: !llvm.ptr<1>, %[[I:.*]]: i32
// CHECK: %[[Q:.*]] = llvm.getelementptr %[[P]][%[[I]]] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f16
// CHECK: %[[Q4:.*]] = llvm.getelementptr %[[Q]][4] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f16
// CHECK: llvm.load %[[Q4]] {alignment = 2 : i64} : !llvm.ptr<1> -> f16
func.func @pointers(%raw: !llvm.ptr<1>, %i: i32) -> f16 {
  %p = fly.from_llvm_ptr(%raw) : (!llvm.ptr<1>) -> !fly.ptr<f16, global>
  %q = fly.ptr.add(%p, %i) {offset = 4 : i64} : (!fly.ptr<f16, global>, i32) -> !fly.ptr<f16, global>
  %x = fly.ptr.load(%q) : (!fly.ptr<f16, global>) -> f16
  return %x : f16
}

// A buffer copy: offset and soffset in bytes, the cache bits as they are.
// CHECK-LABEL: func.func @buffer(
// CHECK: %[[RS:.*]] = rocdl.make.buffer.rsrc
// CHECK: %[[S:.*]] = arith.muli
// CHECK: %[[V:.*]] = arith.muli
// CHECK: %[[D:.*]] = rocdl.raw.ptr.buffer.load %[[RS]], %[[V]], %[[S]], 2 : vector<4xi32>
// CHECK: llvm.bitcast %[[D]] : vector<4xi32> to vector<8xf16>
func.func @buffer(%raw: !llvm.ptr<1>, %i: i32, %s: i32) -> vector<8xf16> {
  %c0 = arith.constant 0 : i16
  %n = arith.constant 4096 : i64
  %f = arith.constant 159744 : i32
  %p = fly.from_llvm_ptr(%raw) : (!llvm.ptr<1>) -> !fly.ptr<f16, global>
  %b = fly.make_buffer_ptr(%p, %c0, %n, %f) : (!fly.ptr<f16, global>, i16, i64, i32) -> !fly.ptr<f16, #fly_rocdl.buffer_desc>
  %q = fly.ptr.add(%b, %i) {offset = 0 : i64} : (!fly.ptr<f16, #fly_rocdl.buffer_desc>, i32) -> !fly.ptr<f16, #fly_rocdl.buffer_desc>
  %a = fly.static() : () -> !fly.copy_atom<!fly_rocdl.cdna3.buffer_copy<128, cache = 2>, 16>
  %a2 = fly.atom.set_value(%a, %s) {field = "soffset"} : (!fly.copy_atom<!fly_rocdl.cdna3.buffer_copy<128, cache = 2>, 16>, i32) -> !fly.copy_atom<!fly_rocdl.cdna3.buffer_copy<128, cache = 2>, 16>
  %v = fly.copy_atom_call_ssa(%a2, %q) {operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (!fly.copy_atom<!fly_rocdl.cdna3.buffer_copy<128, cache = 2>, 16>, !fly.ptr<f16, #fly_rocdl.buffer_desc>) -> vector<8xf16>
  return %v : vector<8xf16>
}

// A byte swizzle is applied to the address of the access, after all offsets.
// CHECK-LABEL: func.func @swizzled(
// CHECK: %[[A:.*]] = llvm.ptrtoint %{{.*}} : !llvm.ptr<3> to i32
// CHECK: %[[M:.*]] = arith.andi %[[A]], %{{.*}} : i32
// CHECK: %[[S:.*]] = arith.shrui %[[M]], %{{.*}} : i32
// CHECK: %[[X:.*]] = arith.xori %[[A]], %[[S]] : i32
// CHECK: llvm.inttoptr %[[X]] : i32 to !llvm.ptr<3>
func.func @swizzled(%raw: !llvm.ptr<3>) -> f16 {
  %p = fly.from_llvm_ptr(%raw) : (!llvm.ptr<3>) -> !fly.ptr<f16, shared, S<3,3,3>>
  %x = fly.ptr.load(%p) : (!fly.ptr<f16, shared, S<3,3,3>>) -> f16
  return %x : f16
}

// CHECK-LABEL: func.func @mfma(
// CHECK: rocdl.mfma.f32.16x16x16bf16.1k
// CHECK-SAME: (vector<4xi16>, vector<4xi16>, vector<4xf32>) -> vector<4xf32>
func.func @mfma(%a: vector<4xbf16>, %c: vector<4xf32>) -> vector<4xf32> {
  %m = fly.static() : () -> !fly.mma_atom<!fly_rocdl.cdna3.mfma<16x16x16, (bf16, bf16) -> f32>>
  %d = fly.mma_atom_call_ssa(%m, %a, %a, %c) : (!fly.mma_atom<!fly_rocdl.cdna3.mfma<16x16x16, (bf16, bf16) -> f32>>, vector<4xbf16>, vector<4xbf16>, vector<4xf32>) -> vector<4xf32>
  return %d : vector<4xf32>
}

// Bools lie in memory as bytes.
// CHECK-LABEL: func.func @bools(
// CHECK: %[[B:.*]] = llvm.load %{{.*}} {alignment = 1 : i64} : !llvm.ptr<1> -> i8
// CHECK: arith.cmpi ne, %[[B]]
func.func @bools(%raw: !llvm.ptr<1>) -> i1 {
  %p = fly.from_llvm_ptr(%raw) : (!llvm.ptr<1>) -> !fly.ptr<i1, global>
  %x = fly.ptr.load(%p) : (!fly.ptr<i1, global>) -> i1
  return %x : i1
}
