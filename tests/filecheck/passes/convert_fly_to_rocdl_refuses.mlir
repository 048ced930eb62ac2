// RUN: passes=convert-fly-to-rocdl arch=gfx1100
// An instruction that the chip lacks is refused with those it has.
// ERROR: gfx1100
func.func @mfma(%a: vector<4xf16>, %c: vector<4xf32>) -> vector<4xf32> {
  %m = fly.static() : () -> !fly.mma_atom<!fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32>>
  %d = fly.mma_atom_call_ssa(%m, %a, %a, %c) : (!fly.mma_atom<!fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32>>, vector<4xf16>, vector<4xf16>, vector<4xf32>) -> vector<4xf32>
  return %d : vector<4xf32>
}
