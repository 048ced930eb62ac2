// RUN: passes=fly-lower-raw-memref
// A memref in LDS becomes a global of bytes with its alignment; elements below a byte have one each, as getelementptr counts them.
// CHECK-LABEL: gpu.module @kernels
// CHECK-NOT: memref.
// CHECK: llvm.mlir.global internal @tile() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<1024 x i8>
// CHECK: llvm.mlir.global internal @flags() {addr_space = 3 : i32} : !llvm.array<9 x i8>
// CHECK-LABEL: gpu.func @k
// CHECK-SAME: %[[I:[a-z0-9]+]]: index, %[[J:[a-z0-9]+]]: index, %[[X:[a-z0-9]+]]: f32
// CHECK: %[[TILE:.*]] = llvm.mlir.addressof @tile : !llvm.ptr<3>
// A store at (i, j) of 16 x 16: i * 16 + j.
// CHECK: %[[I32:.*]] = arith.index_cast %[[I]] : index to i32
// CHECK: %[[J32:.*]] = arith.index_cast %[[J]] : index to i32
// CHECK: %[[ROW:.*]] = arith.muli %[[I32]], %{{.*}}16{{.*}} : i32
// CHECK: %[[AT:.*]] = arith.addi %[[ROW]], %[[J32]] : i32
// CHECK: %[[P:.*]] = llvm.getelementptr %[[TILE]][%[[AT]]] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
// CHECK: llvm.store %[[X]], %[[P]] {alignment = 4 : i64} : f32, !llvm.ptr<3>
// A view starts at a number of bytes; its own elements are f16, and a vector is aligned as one of them.
// CHECK: %[[S:.*]] = arith.index_cast %{{.*}} : index to i32
// CHECK: %[[VIEW:.*]] = llvm.getelementptr %{{.*}}[%[[S]]] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
// CHECK: %[[Q:.*]] = llvm.getelementptr %[[VIEW]][%{{.*}}] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f16
// CHECK: %[[V:.*]] = llvm.load %[[Q]] {alignment = 2 : i64} : !llvm.ptr<3> -> vector<4xf16>
// CHECK: llvm.store %[[V]], %{{.*}} {alignment = 2 : i64} : vector<4xf16>, !llvm.ptr<3>
// A cast is the same pointer; a memref without dimensions is its pointer; loops are entered.
// CHECK: scf.for
// CHECK: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<3> -> f32
// CHECK: %[[FLAG:.*]] = llvm.mlir.addressof @flag : !llvm.ptr<3>
// CHECK: llvm.load %[[FLAG]] {alignment = 4 : i64} : !llvm.ptr<3> -> f32
// CHECK: %[[A:.*]] = llvm.ptrtoint %[[TILE]] : !llvm.ptr<3> to i64
// CHECK: %[[ADDRESS:.*]] = arith.index_cast %[[A]] : i64 to index
// CHECK: func.call @use(%[[ADDRESS]])
// CHECK: gpu.return
gpu.module @kernels {
  memref.global "private" @tile : memref<16x16xf32, 3> {alignment = 128 : i64}
  memref.global "private" @flags : memref<9xi1, 3>
  func.func private @use(index)
  gpu.func @k(%i: index, %j: index, %x: f32) kernel {
    %tile = memref.get_global @tile : memref<16x16xf32, 3>
    memref.store %x, %tile[%i, %j] : memref<16x16xf32, 3>
    %bytes = memref.get_global @bytes : memref<1024xi8, 3>
    %view = memref.view %bytes[%i][] : memref<1024xi8, 3> to memref<64xf16, 3>
    %v = vector.load %view[%j] : memref<64xf16, 3>, vector<4xf16>
    vector.store %v, %view[%i] : memref<64xf16, 3>, vector<4xf16>
    %same = memref.cast %tile : memref<16x16xf32, 3> to memref<16x16xf32, 3>
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    scf.for %k = %c0 to %c4 step %c4 {
      %y = memref.load %same[%k, %k] : memref<16x16xf32, 3>
      memref.store %y, %tile[%j, %k] : memref<16x16xf32, 3>
    }
    %flag = memref.get_global @flag : memref<f32, 3>
    %z = memref.load %flag[] : memref<f32, 3>
    %address = memref.extract_aligned_pointer_as_index %tile : memref<16x16xf32, 3> -> index
    func.call @use(%address) : (index) -> ()
    gpu.return
  }
  memref.global "private" @flag : memref<f32, 3>
  memref.global "private" @bytes : memref<1024xi8, 3>
}
