"""Small lowered modules as text, for the tests of this folder."""

ARCHS = ("gfx942", "gfx950", "gfx1250", "gfx1201", "gfx1100")
ARGUMENTS = "%p: !llvm.ptr<1>, %n: i32, %f: f32, %v: vector<4xf32>"


def module_text(body: str, *, globals_: str = "", arguments: str = ARGUMENTS, attributes: str = "") -> str:
    """Return a module whose kernel `k` has `body`; the first line of the body is line 4."""
    block = attributes or "known_block_size = array<i32: 256, 1, 1>"
    return f"""module {{ gpu.module @kernels {{
    {globals_}
    gpu.func @k({arguments}) kernel attributes {{{block}}} {{
{body}
    gpu.return
    }} }} }}"""


VECTOR_ADD = """
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @vec_add_0(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>, %c: !llvm.ptr<1>, %n: i32) kernel
        attributes {known_block_size = array<i32: 256, 1, 1>, fly.params = ["A", "B", "C", "n"]} {
      %bid = gpu.block_id x
      %tid = gpu.thread_id x
      %b32 = arith.index_cast %bid : index to i32
      %t32 = arith.index_cast %tid : index to i32
      %c256 = arith.constant 256 : i32
      %c4 = arith.constant 4 : i32
      %base = arith.muli %b32, %c256 : i32
      %i0 = arith.addi %base, %t32 : i32
      %i = arith.muli %i0, %c4 : i32
      %ok = arith.cmpi slt, %i, %n : i32
      scf.if %ok {
        %pa = llvm.getelementptr %a[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
        %pb = llvm.getelementptr %b[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
        %pc = llvm.getelementptr %c[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
        %va = llvm.load %pa {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
        %vb = llvm.load %pb {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
        %vc = arith.addf %va, %vb : vector<4xf32>
        llvm.store %vc, %pc {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
      }
      gpu.return
    }
  }
  func.func @launch(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>, %c: !llvm.ptr<1>, %n: i32) {
    %c1 = arith.constant 1 : i32
    %c256 = arith.constant 256 : i32
    gpu.launch_func @kernels::@vec_add_0 blocks in (%n, %c1, %c1) threads in (%c256, %c1, %c1) : i32
        args(%a : !llvm.ptr<1>, %b : !llvm.ptr<1>, %c : !llvm.ptr<1>, %n : i32)
    return
  }
}
"""
