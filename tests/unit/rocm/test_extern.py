"""`expr.extern.ffi` and `link_extern`: device functions from bitcode that llvmlite assembles here."""

import contextlib

import llvmlite.binding as llvm
import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.compiler.extern_link import BoundExternFunction, link_extern, register_extern_resolver
from flydsl.diag import BitcodeMissing, ExternCall, ExternUnbound, FlyError
from flydsl.expr import extern
from flydsl.expr.extern import ffi

LIBRARY = """
target triple = "amdgcn-amd-amdhsa"
@factor = addrspace(4) constant float 3.0
define float @scaled(float %x) {
  %f = load float, ptr addrspace(4) @factor
  %y = fmul float %x, %f
  ret float %y
}
define i32 @outlined(i32 %x, i32 %y) noinline {
  %r = mul i32 %x, %y
  ret i32 %r
}
define void @unused() { ret void }
"""


def assemble(path, text: str = LIBRARY) -> str:
    path.write_bytes(llvm.parse_assembly(text).as_bitcode())
    return str(path)


@pytest.fixture(autouse=True)
def settings(monkeypatch):
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx942")
    monkeypatch.setenv("FLYDSL_RUNTIME_KIND", "null")


def compiled(call, n: int = 64):
    """Compile a kernel whose body is `y[i] = call(x[i], i)`."""

    @flyc.kernel
    def extern_kernel(x: fx.Tensor, y: fx.Tensor):
        i = fx.thread_idx.x
        y[i] = call(x[i], i)

    @flyc.jit
    def launch(x: fx.Tensor, y: fx.Tensor):
        extern_kernel(x, y).launch(grid=(1,), block=(64,))

    return flyc.compile(launch, np.zeros(n, np.float32), np.zeros(n, np.float32)).artifact


def test_bitcode_is_linked_and_inlined(tmp_path):
    scaled = link_extern(ffi("scaled", ["float32"], "float32"), bitcode_path=assemble(tmp_path / "lib.bc"))
    artifact = compiled(lambda x, i: scaled(x))
    isa = artifact.codegen().isa
    assert "v_mul_f32" in isa and "0x40400000" in isa  # times 3, inlined
    assert "s_swappc" not in isa and "unused" not in isa
    assert list(artifact.codegen().kernels) == ["extern_kernel_0"]


@pytest.mark.parametrize("arch", ["gfx950", "gfx1100", "gfx1201"])
def test_other_chips(tmp_path, monkeypatch, arch):
    monkeypatch.setenv("FLYDSL_GPU_ARCH", arch)
    scaled = BoundExternFunction("scaled", ["float32"], "float32", bitcode_path=assemble(tmp_path / "lib.bc"))
    assert "v_mul_f32" in compiled(lambda x, i: scaled(x)).codegen().isa


def test_functions_that_may_not_be_inlined_are_called(tmp_path):
    outlined = link_extern(ffi("outlined", ["int32", "int32"], "int32"), bitcode_path=assemble(tmp_path / "lib.bc"))
    artifact = compiled(lambda x, i: fx.Float32(outlined(i, 7)))
    assert "s_swappc" in artifact.codegen().isa and artifact.codegen().hsaco[:4] == b"\x7fELF"


def test_what_nothing_defines_is_named(tmp_path):
    path = assemble(tmp_path / "lib.bc")
    missing = link_extern(ffi("not_there", ["float32"], "float32"), bitcode_path=path)
    with pytest.raises(LookupError, match="not_there"):
        compiled(lambda x, i: missing(x)).codegen()
    unbound = ffi("scaled", ["float32"], "float32")
    with pytest.raises(LookupError, match="scaled"):
        compiled(lambda x, i: unbound(x)).codegen()


def test_bitcode_that_cannot_be_read(tmp_path):
    path = tmp_path / "lib.bc"
    path.write_bytes(b"BC\xc0\xde not bitcode")
    broken = link_extern(ffi("scaled", ["float32"], "float32"), bitcode_path=str(path))
    with pytest.raises(FlyError, match="lib.bc"):
        compiled(lambda x, i: broken(x)).codegen()
    gone = link_extern(ffi("scaled", ["float32"], "float32"), bitcode_path=str(tmp_path / "gone.bc"))
    with pytest.raises(BitcodeMissing, match="gone.bc"):
        compiled(lambda x, i: gone(x))


@pytest.mark.parametrize("path", ["/x/with space.bc", "/x/a,b.bc", "/x/a}.bc", "/x/a'b.bc"])
def test_paths_that_link_options_cannot_hold(path):
    with pytest.raises(ValueError, match="bitcode_path"):
        link_extern(ffi("f", [], "void"), bitcode_path=path)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: ffi("f", ["half"], "void"), TypeError),
        (lambda: ffi("f", [], "pointer"), TypeError),
        (lambda: ffi("f", [], "void", bitcode_path="/x.bc"), TypeError),
        (lambda: ffi("not a symbol", [], "void"), ValueError),
    ],
)
def test_declarations_that_make_no_sense(make, error):
    with pytest.raises(error):
        make()


def test_calls_are_checked(tmp_path):
    scaled = link_extern(ffi("scaled", ["float32"], "float32"), bitcode_path=assemble(tmp_path / "lib.bc"))
    for call, problem in [
        (lambda x, i: scaled(x, x), "takes 1 arguments and got 2"),
        (lambda x, i: scaled(i), "argument 0 is Int32, not float32"),
        (lambda x, i: scaled("a"), "argument 0 is a str"),
    ]:
        with pytest.raises(ExternCall, match=problem):
            compiled(call)
    with pytest.raises(ExternUnbound, match="outside of a kernel"):
        ffi("f", [], "void")()


def test_resolvers_bind_symbols(tmp_path):
    path = assemble(tmp_path / "lib.bc")
    plain = ffi("scaled", ["float32"], "float32")
    resolver = register_extern_resolver(lambda f: link_extern(f, bitcode_path=path) if f.symbol == "scaled" else None)
    try:
        assert "v_mul_f32" in compiled(lambda x, i: plain(x)).codegen().isa
    finally:
        extern._resolvers.remove(resolver)


def test_changed_bitcode_is_another_specialisation(tmp_path, monkeypatch):
    monkeypatch.setenv("FLYDSL_RUNTIME_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "lib.bc"

    def isa(factor: float) -> str:
        assemble(path, LIBRARY.replace("3.0", str(factor)))
        scaled = link_extern(ffi("scaled", ["float32"], "float32"), bitcode_path=str(path))
        return compiled(lambda x, i: scaled(x)).codegen().isa

    assert "0x40400000" in isa(3.0) and "0x40e00000" in isa(7.0)


def test_module_initialisers_run_once_per_module_and_stay_off_the_disk(tmp_path, monkeypatch):
    from flydsl.runtime import rocm
    from flydsl.targets.rocm import hip

    monkeypatch.setenv("FLYDSL_RUNTIME_CACHE_DIR", str(tmp_path / "cache"))
    seen = []
    scaled = link_extern(
        ffi("scaled", ["float32"], "float32"), bitcode_path=assemble(tmp_path / "lib.bc"), module_init_fn=seen.append
    )
    artifact = compiled(lambda x, i: scaled(x))
    handles = iter([11, 12])
    monkeypatch.setattr(hip, "load_module", lambda code: next(handles))
    monkeypatch.setattr(hip, "get_function", lambda module, name: 5)
    monkeypatch.setattr(rocm, "chip_of", lambda device: artifact.arch)
    loaded = rocm.RocmLoaded(artifact)
    for device in (0, 1, 0, 1):
        loaded.function(device, "extern_kernel_0")
    assert seen == [11, 12]
    with contextlib.suppress(FileNotFoundError):
        assert not list((tmp_path / "cache").rglob("*.flydsl"))


def test_the_simulator_says_that_it_cannot(tmp_path, monkeypatch):
    monkeypatch.setenv("FLYDSL_RUNTIME_KIND", "sim")
    scaled = link_extern(ffi("scaled", ["float32"], "float32"), bitcode_path=assemble(tmp_path / "lib.bc"))

    @flyc.kernel
    def sim_kernel(x: fx.Tensor):
        x[0] = scaled(x[0])

    @flyc.jit
    def launch(x: fx.Tensor):
        sim_kernel(x).launch(grid=(1,), block=(64,))

    with pytest.raises(FlyError, match="scaled"):
        launch(np.zeros(64, np.float32))
