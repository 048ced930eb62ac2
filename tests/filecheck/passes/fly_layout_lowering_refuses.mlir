// RUN: passes=fly-layout-lowering
// ERROR: is not flat
func.func @f(%l: !fly.layout<(?,8):(8,1)>) {
  return
}
