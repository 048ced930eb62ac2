"""Ahead-of-time use: caches and files with code for several chips, launched without the compiler."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.compiler.jit_function import JitFunction
from flydsl.diag import FlyError
from flydsl.runtime import exported

ARCHS = ("gfx942", "gfx950", "gfx1201")
X = np.arange(1000, dtype=np.float32)


@flyc.kernel
def scale_kernel(a: fx.Tensor, b: fx.Tensor, f: fx.Float32, n: fx.Int32, c: fx.Constexpr[int]):
    i = fx.block_idx.x * 256 + fx.thread_idx.x
    if i < n:
        b[i] = a[i] * f + c


@flyc.jit
def scale(
    a: fx.Tensor, b: fx.Tensor, f: fx.Float32, n: fx.Int32, c: fx.Constexpr[int], stream: fx.Stream = fx.Stream(None)
):
    if n > 0:
        scale_kernel(a, b, f, n, c).launch(grid=((n + 255) // 256,), block=(256, 1, 1), stream=stream)


@pytest.fixture
def file(tmp_path):
    """The function, exported for three chips."""
    return flyc.export(tmp_path / "scale.flyc", scale, X, X, 1.0, 5, 3, archs=ARCHS)


def test_exported_function_computes(file) -> None:
    run = exported.load(file)
    assert run.archs == ARCHS and [p["name"] for p in run.parameters] == ["a", "b", "f", "n", "stream"]
    for n in (1000, 77, 0):
        x, y = X[:n].copy(), np.zeros(n, np.float32)
        run(x, y, 2.0, n, None)
        np.testing.assert_array_equal(y, x * 2 + 3)


BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch_mlir", "llvmlite", "torch", "ziglang"):
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, Blocked())
import numpy as np
from flydsl.runtime import exported
x, y = np.arange(300, dtype=np.float32), np.zeros(300, np.float32)
exported.load(sys.argv[1])(x, y, 2.0, 300, None)
assert (y == x * 2 + 3).all()
try:
    import flydsl.compiler
except ImportError:
    print("ran without MLIR and LLVM")
"""


def test_neither_mlir_nor_llvm_is_needed(file) -> None:
    out = subprocess.run([sys.executable, "-c", BLOCKED, str(file)], capture_output=True, text=True)
    assert out.stdout.strip() == "ran without MLIR and LLVM", out.stderr


def test_code_is_chosen_by_the_chip(file, monkeypatch) -> None:
    run = exported.load(file)
    codes = {arch: run.code(arch).code_object() for arch in ARCHS}
    assert len({code for code, _ in codes.values()}) == 3
    assert codes["gfx1201"][1]["scale_kernel_0"].wave_size == 32
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx1100")
    with pytest.raises(FlyError, match="has no code for gfx1100"):
        run(X, X.copy(), 1.0, 1000, None)


def test_wrong_arguments_are_refused(file) -> None:
    run = exported.load(file)
    good = [X, X.copy(), 1.0, 1000, None]
    for position, value in (
        (0, X.astype(np.float64)),
        (0, X.reshape(10, 100)),
        (1, "text"),
        (2, "x"),
        (3, 1.5),
        (3, 2**40),
        (0, X[::2]),
    ):
        with pytest.raises(FlyError, match="cannot take this"):
            run(*good[:position], value, *good[position + 1 :])
    with pytest.raises(FlyError, match="takes 5 arguments, got 4"):
        run(*good[:-1])


def test_numbers_and_streams_are_taken_as_the_jit_function_takes_them(file) -> None:
    run, out = exported.load(file), np.zeros_like(X)
    for f, n in ((np.float32(2.0), np.int64(1000)), (2, 1000.0), (np.float64(2.0), np.uint16(1000))):
        out[:] = 0
        run(X, out, f, n, None)
        np.testing.assert_array_equal(out, X * 2 + 3)
    for stream in (True, 1.0, object(), np.zeros(1, np.int64)):
        with pytest.raises(FlyError, match="is no stream"):
            run(X, out, 2.0, 1000, stream)


@flyc.kernel
def small_kernel(out: fx.Tensor, a: fx.Float8E5M2, b: fx.Float8E4M3FN, c: fx.BFloat16, d: fx.Float16):
    out[fx.thread_idx.x] = fx.Float32(a) + fx.Float32(b) + fx.Float32(c) + fx.Float32(d)


@flyc.jit
def small(out: fx.Tensor, a: fx.Float8E5M2, b: fx.Float8E4M3FN, c: fx.BFloat16, d: fx.Float16):
    small_kernel(out, a, b, c, d).launch(grid=(1,), block=(64, 1, 1))


def test_small_floats(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx950")  # OCP formats
    out = np.zeros(64, np.float32)
    run = exported.load(flyc.export(tmp_path / "small.flyc", small, out, 0.0, 0.0, 0.0, 0.0))
    for given, rounded in (((3.0, -0.4375, 2.5, 0.5),) * 2, ((1.1, 1.1, 1.1, 1.1), (1.0, 1.125, 1.1015625, 1.099609375))):
        run(out, *given)
        assert (out == np.float32(sum(rounded))).all()


@flyc.kernel
def first_kernel(out: fx.Tensor):
    out[fx.thread_idx.x, 0] = 1.0


@flyc.jit
def first(out: fx.Tensor):
    first_kernel(out).launch(grid=(1,), block=(4, 1, 1))


def test_promises_hold_for_exported_functions(tmp_path) -> None:
    memory = np.zeros(2048, np.float32)
    at = (-memory.ctypes.data // 4) % 16  # 64-byte alignment
    view = lambda start, shape, strides: np.lib.stride_tricks.as_strided(memory[at + start :], shape, [4 * s for s in strides])
    declared = flyc.from_dlpack(view(0, (4, 64), (64, 1)), assumed_align=16, use_32bit_stride=True)
    declared.mark_layout_dynamic(leading_dim=1, divisibility=16).mark_shape_dynamic(1, 32)
    run = exported.load(flyc.export(tmp_path / "first.flyc", first, declared))
    for good in (view(0, (4, 64), (64, 1)), view(4, (7, 96), (112, 1)), view(0, (4, 32), (16, 1))):
        memory[:] = 0
        run(good)
        assert (good[:4, 0] == 1).all()
    for bad, text in (
        (view(1, (4, 64), (64, 1)), "`out`: its address .* is not a multiple of assumed_align=16"),
        (view(0, (4, 48), (64, 1)), "`out`: extent 1 is 48, not a multiple of divisibility=32"),
        (view(0, (4, 64), (72, 1)), "`out`: stride 0 is 72, not a multiple of divisibility=16"),
        (view(0, (1, 64), (2**31, 1)), "`out`: its strides .* do not fit use_32bit_stride"),
    ):
        with pytest.raises(FlyError, match=text):
            run(bad)


def test_damaged_file(file) -> None:
    data = file.read_bytes()
    for bad in (b"", data[:-1], data[:100] + b"x" + data[101:], b"\x80\x04K\x01."):
        file.write_bytes(bad)
        with pytest.raises(FlyError, match="is no usable export"):
            exported.load(file)


def test_materialise_launches_nothing(monkeypatch) -> None:
    from flydsl.runtime import kinds

    monkeypatch.setattr(kinds, "current_runtime", lambda: pytest.fail("a runtime was asked for"))
    artifacts = flyc.materialise(JitFunction(scale.func), X, X, 1.0, 5, 3, archs=ARCHS)
    for arch, artifact in artifacts.items():
        code, kernels = artifact.code_object()
        assert code[:4] == b"\x7fELF" and artifact.arch == arch and "s_endpgm" in artifact.isa
        assert [a.size for a in kernels["scale_kernel_0"].explicit_args] == [8, 4, 8, 4, 4, 4]


SCRIPT = """
import sys
sys.path.insert(0, {folder!r})
import numpy as np
import aot_kernels
x, y = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
aot_kernels.run(x, y)
print(aot_kernels.run._misses, float(y[3]))
"""
KERNELS = """
import flydsl.compiler as flyc
import flydsl.expr as fx

@flyc.kernel
def kernel(a: fx.Tensor, b: fx.Tensor):
    b[fx.thread_idx.x] = a[fx.thread_idx.x] * 5.0

@flyc.jit
def run(a: fx.Tensor, b: fx.Tensor):
    kernel(a, b).launch(grid=(1,), block=(100, 1, 1))
"""


def unchanged_sources() -> str:
    from flydsl.compiler import disk

    return disk._sources_digest(disk.os.path.dirname(flyc.__path__[0]))


def test_compile_only_fills_the_cache_for_run_only(tmp_path, monkeypatch) -> None:
    """Compiled for two chips with ARCH, used where the chip is detected and compiling is forbidden."""
    (tmp_path / "aot_kernels.py").write_text(textwrap.dedent(KERNELS))
    code = SCRIPT.format(folder=str(tmp_path))
    monkeypatch.setenv("FLYDSL_RUNTIME_CACHE_DIR", str(tmp_path / "cache"))

    def script(**variables) -> subprocess.CompletedProcess:
        with monkeypatch.context() as m:
            for name, value in variables.items():
                m.setenv(name, value)
            return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    before = unchanged_sources()
    for arch in ("gfx942", "gfx950"):
        out = script(COMPILE_ONLY="1", ARCH=arch)
        assert out.stdout.strip() == "1 0.0", out.stderr
    for variables in ({}, {"FLYDSL_GPU_ARCH": "gfx950"}):
        out = script(FLYDSL_RUNTIME_RUN_ONLY="1", **variables)
        if unchanged_sources() != before:
            pytest.skip("somebody edited the package while this test ran, which invalidates its cache")
        assert out.stdout.strip() == "0 15.0", out.stderr
    out = script(FLYDSL_RUNTIME_RUN_ONLY="1", FLYDSL_GPU_ARCH="gfx1100")
    assert "FLYDSL_RUNTIME_RUN_ONLY: `run` is not in the disk cache" in out.stderr
    assert "it differs from" in out.stderr and "target: arch" in out.stderr
