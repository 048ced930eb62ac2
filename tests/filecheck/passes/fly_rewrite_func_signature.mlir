// RUN: passes=fly-rewrite-func-signature
// CHECK-LABEL: gpu.func @k(
// CHECK-SAME: %[[A:.*]]: !llvm.ptr<1>, %[[S0:.*]]: i32, %[[S1:.*]]: i32, %[[D0:.*]]: i64, %[[N:.*]]: i32)
// CHECK-SAME: fly.params = ["A", "A.shape[0]", "A.shape[1]", "A.stride[0]", "n"]
// CHECK: %[[P:.*]] = fly.from_llvm_ptr(%[[A]]) : (!llvm.ptr<1>) -> !fly.ptr<f32, global>
// CHECK: fly.make_int_tuple(%[[S0]], %[[S1]])
// CHECK-SAME: -> !fly.int_tuple<(?,?)>
// CHECK: fly.make_int_tuple(%[[D0]])
// CHECK-SAME: -> !fly.int_tuple<(?{i64},1)>
// CHECK: fly.make_view(%[[P]],
// CHECK-LABEL: func.func @launch
// CHECK: %[[IT:.*]] = fly.get_iter
// CHECK: %[[RAW:.*]] = fly.to_llvm_ptr(%[[IT]])
// CHECK: gpu.launch_func @kernels::@k
// CHECK-SAME: args(%[[RAW]] : !llvm.ptr<1>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k(%a: !fly.memref<f32, global, (?,?):(?{i64},1)>, %n: i32) kernel attributes {fly.params = ["A", "n"]} {
      %s = fly.get_shape(%a) : (!fly.memref<f32, global, (?,?):(?{i64},1)>) -> !fly.int_tuple<(?,?)>
      gpu.return
    }
  }
  func.func @launch(%a: !fly.memref<f32, global, (?,?):(?{i64},1)>, %n: i32) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @kernels::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%a : !fly.memref<f32, global, (?,?):(?{i64},1)>, %n : i32)
    return
  }
}
