// RUN: passes=fly-int-swizzle-simplify
// CHECK-LABEL: gpu.func @k
// CHECK: %[[T:.*]] = arith.index_cast
// A thread id is below 256: division by 16 shifts, the remainder masks, dividing by 1 or taking a remainder that is no cut is nothing.
// CHECK: arith.shrui %[[T]], %{{.*}} : i32
// CHECK: arith.andi %[[T]], %{{.*}} : i32
// CHECK: func.call @use(%[[T]])
// A number of unknown sign stays divided.
// CHECK: arith.divsi
// Comparisons that every thread passes, or none, are constants; one that depends on the thread stays.
// CHECK: func.call @use_bit(%{{.*}}true
// CHECK: func.call @use_bit(%{{.*}}false
// CHECK: %[[C:.*]] = arith.cmpi slt, %[[T]]
// CHECK: func.call @use_bit(%[[C]])
// CHECK-LABEL: gpu.func @sums
// CHECK-SAME: %[[A:[a-z0-9]+]]: i32, %[[B:[a-z0-9]+]]: i32)
// CHECK: %[[WHOLE:.*]] = arith.addi %[[A]], %{{.*}} : i32
// CHECK: %[[REST:.*]] = arith.addi %[[A]], %[[B]] : i32
// CHECK: fly.ptr.add({{.*}}, %[[REST]]) {offset = 264 : i64}
// CHECK: fly.ptr.add({{.*}}, %[[WHOLE]]) {offset = 8 : i64}
gpu.module @kernels {
  func.func private @use(i32)
  func.func private @use_bit(i1)
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
    %c255 = arith.constant 255 : i32
    %always = arith.cmpi slt, %i, %c256 : i32
    func.call @use_bit(%always) : (i1) -> ()
    %never = arith.cmpi sge, %i, %c256 : i32
    func.call @use_bit(%never) : (i1) -> ()
    %depends = arith.cmpi slt, %i, %c255 : i32
    func.call @use_bit(%depends) : (i1) -> ()
    gpu.return
  }
  // Constants in the sum that is a buffer offset go to the pointer; those of other pointers, whose sums may be wider, stay.
  gpu.func @sums(%p: !fly.ptr<f16, global>, %n: i64, %f: i32, %a: i32, %b: i32) kernel {
    %c0 = arith.constant 0 : i16
    %c256 = arith.constant 256 : i32
    %r = fly.make_buffer_ptr(%p, %c0, %n, %f) : (!fly.ptr<f16, global>, i16, i64, i32) -> !fly.ptr<f16, #fly_rocdl.buffer_desc>
    %x = arith.addi %b, %c256 : i32
    %y = arith.addi %a, %x : i32
    %q = fly.ptr.add(%r, %y) {offset = 8 : i64} : (!fly.ptr<f16, #fly_rocdl.buffer_desc>, i32) -> !fly.ptr<f16, #fly_rocdl.buffer_desc>
    %g = fly.ptr.add(%p, %y) {offset = 8 : i64} : (!fly.ptr<f16, global>, i32) -> !fly.ptr<f16, global>
    %v = fly.ptr.load(%g) : (!fly.ptr<f16, global>) -> f16
    fly.ptr.store(%v, %q) : (f16, !fly.ptr<f16, #fly_rocdl.buffer_desc>) -> ()
    gpu.return
  }
}
