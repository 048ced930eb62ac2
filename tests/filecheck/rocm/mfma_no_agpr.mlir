// ISA: gfx942 gfx950
// The accumulator of an MFMA loop stays in VGPRs: no copies through AGPRs in the slim pipeline.

// CHECK-LABEL: {{^}}k:
// CHECK:       v_mfma_f32_16x16x16_f16 v[
// CHECK-NOT:   v_accvgpr
// CHECK:       s_endpgm
// CHECK:       .agpr_count:     0
module { gpu.module @kernels {
  gpu.func @k(%p: !llvm.ptr<1>, %n: i32) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %acc = arith.constant dense<0.0> : vector<4xf32>
    %t = gpu.thread_id x
    %t32 = arith.index_cast %t : index to i32
    %q = llvm.getelementptr %p[%t32] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, vector<4xf32>
    %r = scf.for %i = %zero to %n step %one iter_args(%s = %acc) -> vector<4xf32> : i32 {
      %a = llvm.getelementptr %q[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, vector<4xf16>
      %x = llvm.load %a {alignment = 8 : i64} : !llvm.ptr<1> -> vector<4xf16>
      %m = rocdl.mfma.f32.16x16x16f16 %x, %x, %s, 0, 0, none : (vector<4xf16>, vector<4xf16>, vector<4xf32>) -> vector<4xf32>
      scf.yield %m : vector<4xf32>
    }
    llvm.store %r, %q {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
    gpu.return
  }
} }
