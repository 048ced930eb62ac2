// RUN: passes=fly-lower-small-floats arch=gfx950
// Eight bits: one byte each; the chip's own conversions.
// CHECK-LABEL: func.func @decode(
// CHECK-SAME: %[[A:.*]]: vector<4xi8>
// CHECK: %[[W:.*]] = vector.bitcast %[[A]] : vector<4xi8> to vector<1xi32>
// CHECK: %[[S:.*]] = vector.extract %[[W]][0]
// CHECK: rocdl.cvt.pk.f32.fp8 %[[S]][false]
// CHECK: rocdl.cvt.pk.f32.fp8 %[[S]][true]
func.func @decode(%a: vector<4xf8E4M3FN>) -> vector<4xf32> {
  %x = arith.extf %a : vector<4xf8E4M3FN> to vector<4xf32>
  return %x : vector<4xf32>
}

// Another format than the chip's: integer code, no instruction.
// CHECK-LABEL: func.func @foreign(
// CHECK-NOT: rocdl
// CHECK: arith.extui %{{.*}} : i8 to i32
func.func @foreign(%a: f8E4M3FNUZ) -> f32 {
  %x = arith.extf %a : f8E4M3FNUZ to f32
  return %x : f32
}

// Four bits: packed; slices of whole bytes stay slices.
// CHECK-LABEL: func.func @packed(
// CHECK-SAME: %[[A:.*]]: vector<16xi8>
// CHECK: vector.extract_strided_slice %[[A]] {offsets = [4], sizes = [4], strides = [1]} : vector<16xi8> to vector<4xi8>
func.func @packed(%a: vector<32xf4E2M1FN>) -> vector<8xf4E2M1FN> {
  %x = vector.extract_strided_slice %a {offsets = [8], sizes = [8], strides = [1]} : vector<32xf4E2M1FN> to vector<8xf4E2M1FN>
  return %x : vector<8xf4E2M1FN>
}

// Arithmetic is done in f32.
// CHECK-LABEL: func.func @sum(
// CHECK: arith.addf %{{.*}} : f32
// CHECK: rocdl.cvt.pk.bf8.f32
func.func @sum(%a: f8E5M2) -> f8E5M2 {
  %x = arith.addf %a, %a : f8E5M2
  return %x : f8E5M2
}
