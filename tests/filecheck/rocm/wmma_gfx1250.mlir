// ISA: gfx1250
// WMMA with a modifier, whose intrinsic MLIR knows with another signature than LLVM 22.1, and a TDM load.

// GFX1250-LABEL: {{^}}k:
// GFX1250-DAG:   v_wmma_f32_16x16x32_f16 {{.*}} matrix_a_reuse
// GFX1250-DAG:   tensor_load_to_lds
module { gpu.module @kernels {
  gpu.func @k(%p: !llvm.ptr<1>, %a: vector<16xf16>, %c: vector<8xf32>, %g: vector<4xi32>, %h: vector<8xi32>) kernel {
    %r = "rocdl.wmma.f32.16x16x32.f16"(%a, %a, %c) {reuseA = true} : (vector<16xf16>, vector<16xf16>, vector<8xf32>) -> vector<8xf32>
    "rocdl.tensor.load.to.lds"(%g, %h, %g, %g, %h) : (vector<4xi32>, vector<8xi32>, vector<4xi32>, vector<4xi32>, vector<8xi32>) -> ()
    llvm.store %r, %p : vector<8xf32>, !llvm.ptr<1>
    gpu.return
  }
} }
