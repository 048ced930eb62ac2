// RUN: passes=fly-lower-raw-memref
// ERROR: no rule for memref.dim
gpu.module @kernels {
  memref.global "private" @tile : memref<16xf32, 3>
  gpu.func @k(%i: index) kernel {
    %tile = memref.get_global @tile : memref<16xf32, 3>
    %n = memref.dim %tile, %i : memref<16xf32, 3>
    gpu.return
  }
}
