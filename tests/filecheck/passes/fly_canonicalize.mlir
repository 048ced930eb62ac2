// RUN: passes=fly-canonicalize
// CHECK-LABEL: func.func @f(
// CHECK-SAME: %[[P:.*]]: !fly.ptr<f32, global>, %[[L:.*]]: !fly.layout
// CHECK-NOT: fly.get_iter
// CHECK: fly.ptrtoint(%[[P]])
// CHECK: fly.static() : () -> !fly.int_tuple<(8,1)>
func.func @f(%p: !fly.ptr<f32, global>, %l: !fly.layout<(?,8):(8,1)>) -> i64 {
  %v = fly.make_view(%p, %l) : (!fly.ptr<f32, global>, !fly.layout<(?,8):(8,1)>) -> !fly.memref<f32, global, (?,8):(8,1)>
  %i = fly.get_iter(%v) : (!fly.memref<f32, global, (?,8):(8,1)>) -> !fly.ptr<f32, global>
  %a = fly.ptrtoint(%i) : (!fly.ptr<f32, global>) -> i64
  %s = fly.get_stride(%v) : (!fly.memref<f32, global, (?,8):(8,1)>) -> !fly.int_tuple<(8,1)>
  return %a : i64
}
