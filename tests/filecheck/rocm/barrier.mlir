// ISA: gfx942 gfx1250 gfx1201 gfx1100
// A workgroup barrier waits for LDS writes and is one instruction before gfx12, a signal and a wait from there on.

// CHECK-LABEL: {{^}}k:
// GFX942:      ds_write_b32
// GFX942:      s_waitcnt lgkmcnt(0)
// GFX942:      s_barrier
// GFX942:      ds_read_b32
// GFX1100:     ds_store_b32
// GFX1100:     s_waitcnt lgkmcnt(0)
// GFX1100:     s_barrier
// GFX1100:     ds_load_b32
// GFX1201:     ds_store_b32
// GFX1201:     s_wait_dscnt 0x0
// GFX1201:     s_barrier_signal -1
// GFX1201:     s_barrier_wait -1
// GFX1201:     ds_load_b32
// GFX1250:     s_barrier_signal -1
// GFX1250:     s_barrier_wait -1
// CHECK:       .amdhsa_group_segment_fixed_size 1024
module { gpu.module @kernels {
  llvm.mlir.global internal @lds() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<1024 x i8>
  gpu.func @k(%p: !llvm.ptr<1>, %f: f32) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %t = gpu.thread_id x
    %t32 = arith.index_cast %t : index to i32
    %a = llvm.mlir.addressof @lds : !llvm.ptr<3>
    %q = llvm.getelementptr %a[%t32] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    llvm.store %f, %q : f32, !llvm.ptr<3>
    gpu.barrier
    %c = arith.constant 255 : i32
    %o = arith.subi %c, %t32 : i32
    %r = llvm.getelementptr %a[%o] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    %x = llvm.load %r : !llvm.ptr<3> -> f32
    %d = llvm.getelementptr %p[%t32] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    llvm.store %x, %d : f32, !llvm.ptr<1>
    gpu.return
  }
} }
