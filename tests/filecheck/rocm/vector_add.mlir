// ISA: gfx942 gfx950 gfx1250 gfx1201 gfx1100
// A guarded 16-byte vector add: one wide load per operand, one wide store, nothing spilled.

// CHECK-LABEL: {{^}}vec_add:
// GFX942:      s_cbranch_execz
// GFX942-DAG:  global_load_dwordx4
// GFX942-DAG:  global_load_dwordx4
// GFX942:      v_pk_add_f32
// GFX942:      v_pk_add_f32
// GFX942:      global_store_dwordx4
// GFX950:      global_load_dwordx4
// GFX950:      global_load_dwordx4
// GFX950:      v_pk_add_f32
// GFX950:      global_store_dwordx4
// GFX1250:     global_load_b128
// GFX1250:     global_load_b128
// GFX1250:     global_store_b128
// GFX1201:     global_load_b128
// GFX1201:     global_load_b128
// GFX1201:     global_store_b128
// GFX1100:     global_load_b128
// GFX1100:     global_load_b128
// GFX1100:     v_dual_add_f32
// GFX1100:     global_store_b128
// CHECK:       s_endpgm
// CHECK-NOT:   scratch_
// CHECK:       .amdhsa_private_segment_fixed_size 0
module { gpu.module @kernels {
  gpu.func @vec_add(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>, %c: !llvm.ptr<1>, %n: i32) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>} {
    %bid = gpu.block_id x
    %tid = gpu.thread_id x
    %b32 = arith.index_cast %bid : index to i32
    %t32 = arith.index_cast %tid : index to i32
    %c256 = arith.constant 256 : i32
    %base = arith.muli %b32, %c256 : i32
    %i = arith.addi %base, %t32 : i32
    %ok = arith.cmpi slt, %i, %n : i32
    scf.if %ok {
      %pa = llvm.getelementptr %a[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, vector<4xf32>
      %pb = llvm.getelementptr %b[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, vector<4xf32>
      %pc = llvm.getelementptr %c[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, vector<4xf32>
      %va = llvm.load %pa {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
      %vb = llvm.load %pb {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
      %vc = arith.addf %va, %vb : vector<4xf32>
      llvm.store %vc, %pc {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
    }
    gpu.return
  }
} }
