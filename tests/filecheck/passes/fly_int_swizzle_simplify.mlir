// RUN: passes=fly-int-swizzle-simplify
// CHECK-LABEL: gpu.func @k
// CHECK: %[[T:.*]] = arith.index_cast
// A thread id is below 256: division by 16 shifts, the remainder masks, dividing by 1 or taking a remainder that is no cut is nothing.
// CHECK: arith.shrui %[[T]], %{{.*}} : i32
// CHECK: arith.andi %[[T]], %{{.*}} : i32
// CHECK: func.call @use(%[[T]])
// A number of unknown sign stays divided.
// CHECK: arith.divsi
gpu.module @kernels {
  func.func private @use(i32)
  gpu.func @k(%n: i32) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c16 = arith.constant 16 : i32
    %c256 = arith.constant 256 : i32
    %t = gpu.thread_id x
    %i = arith.index_cast %t : index to i32
    %q = arith.divsi %i, %c16 : i32
    func.call @use(%q) : (i32) -> ()
    %r = arith.remsi %i, %c16 : i32
    func.call @use(%r) : (i32) -> ()
    %s = arith.remsi %i, %c256 : i32
    func.call @use(%s) : (i32) -> ()
    %u = arith.divsi %n, %c16 : i32
    func.call @use(%u) : (i32) -> ()
    gpu.return
  }
}
