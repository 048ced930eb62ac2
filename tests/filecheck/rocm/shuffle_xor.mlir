// ISA: gfx942 gfx950 gfx1250 gfx1201 gfx1100
// Exchanges with a lane at a constant distance stay in the vector ALU where the chip can; none computes an address.

// CHECK-LABEL: {{^}}k:
// CHECK-NOT:   ds_bpermute
// GFX942-DAG:  v_add_f32_dpp {{.*}} quad_perm:[1,0,3,2]
// GFX942-DAG:  v_add_f32_dpp {{.*}} quad_perm:[2,3,0,1]
// GFX942-DAG:  ds_swizzle_b32 {{.*}} offset:swizzle(SWAP,4)
// GFX942-DAG:  v_add_f32_dpp {{.*}} row_ror:8
// GFX942-DAG:  ds_swizzle_b32 {{.*}} offset:swizzle(SWAP,16)
// GFX950-DAG:  v_add_f32_dpp {{.*}} quad_perm:[1,0,3,2]
// GFX950-DAG:  v_add_f32_dpp {{.*}} row_ror:8
// GFX1250-DAG: v_add_f32_dpp {{.*}} row_xmask:1
// GFX1250-DAG: v_permlanex16_b32
// GFX1201-DAG: v_add_f32_dpp {{.*}} row_xmask:1
// GFX1201-DAG: v_add_f32_dpp {{.*}} row_xmask:2
// GFX1201-DAG: v_add_f32_dpp {{.*}} row_xmask:4
// GFX1201-DAG: v_add_f32_dpp {{.*}} row_xmask:8
// GFX1201-DAG: v_permlanex16_b32
// GFX1100-DAG: v_add_f32_dpp {{.*}} row_xmask:1
// GFX1100-DAG: v_permlanex16_b32
module { gpu.module @kernels {
  gpu.func @k(%p: !llvm.ptr<1>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %w = arith.constant 32 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c4 = arith.constant 4 : i32
    %c8 = arith.constant 8 : i32
    %c16 = arith.constant 16 : i32
    %t = gpu.thread_id x
    %t32 = arith.index_cast %t : index to i32
    %q = llvm.getelementptr %p[%t32] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %a = llvm.load %q : !llvm.ptr<1> -> f32
    %b1, %v1 = gpu.shuffle xor %a, %c1, %w : f32
    %s1 = arith.addf %a, %b1 : f32
    %b2, %v2 = gpu.shuffle xor %s1, %c2, %w : f32
    %s2 = arith.addf %s1, %b2 : f32
    %b4, %v4 = gpu.shuffle xor %s2, %c4, %w : f32
    %s4 = arith.addf %s2, %b4 : f32
    %b8, %v8 = gpu.shuffle xor %s4, %c8, %w : f32
    %s8 = arith.addf %s4, %b8 : f32
    %b16, %v16 = gpu.shuffle xor %s8, %c16, %w : f32
    %s16 = arith.addf %s8, %b16 : f32
    llvm.store %s16, %q : f32, !llvm.ptr<1>
    gpu.return
  }
} }
