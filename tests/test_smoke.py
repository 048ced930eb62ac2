"""Run first: trace, lower, simulate, emit a code object. Under a minute."""

import subprocess
import sys

import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx


@flyc.kernel
def scale(src: fx.Tensor, dst: fx.Tensor, factor: fx.Float32, n: fx.Int32):
    i = fx.block_idx.x * 256 + fx.thread_idx.x
    if i < n:
        dst[i] = src[i] * factor


@flyc.jit
def run(src: fx.Tensor, dst: fx.Tensor, factor: fx.Float32, n: fx.Int32):
    scale(src, dst, factor, n).launch(grid=((n + 255) // 256,), block=(256, 1, 1))


def test_simulates() -> None:
    x, y = np.arange(1000, dtype=np.float32), np.full(1000, np.nan, np.float32)
    run(x, y, 2.5, 1000)
    np.testing.assert_array_equal(y, x * np.float32(2.5))


def test_emits_code_for_every_chip(arch) -> None:
    x = np.zeros(1000, np.float32)
    artifact = run.artifact_for(run.wrap_arguments((x, x, 2.5, 1000), {}))
    code = artifact.codegen(("isa", "hsaco"))
    assert code.hsaco[:4] == b"\x7fELF"
    assert "s_endpgm" in code.isa


def test_second_call_compiles_nothing() -> None:
    x = np.zeros(64, np.float32)
    run(x, x, 1.0, 64)
    before = run.cache_info()
    run(np.zeros(640, np.float32), x, 2.0, 64)
    after = run.cache_info()
    assert (after.misses, after.hits) == (before.misses, before.hits + 1)


def test_torch_tensors(torch) -> None:
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        x, y = torch.arange(100).to(dtype), torch.zeros(100, dtype=dtype)
        copy(x, y)
        assert torch.equal(x, y)


@flyc.kernel
def copy_kernel(src: fx.Tensor, dst: fx.Tensor):
    i = fx.thread_idx.x
    dst[i] = src[i]


@flyc.jit
def copy(src: fx.Tensor, dst: fx.Tensor):
    copy_kernel(src, dst).launch(grid=(1,), block=(100, 1, 1))


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "bfloat16"])
def test_small_floats(name) -> None:
    import ml_dtypes

    x = np.arange(100).astype(getattr(ml_dtypes, name))
    y = np.zeros_like(x)
    copy(x, y)
    assert x.tobytes() == y.tobytes()


def test_import_brings_no_torch_and_no_llvm() -> None:
    code = "import flydsl.compiler, flydsl.expr, sys; print(sorted({'torch', 'llvmlite'} & sys.modules.keys()))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_ops_do_not_import_dialect_modules() -> None:
    """A compile builds ops by name: the generated classes of upstream dialects stay unimported (ir/bindings.py says why)."""
    code = (
        "import numpy as np, sys\nsys.path.insert(0, 'tests')\nfrom test_smoke import run\n"
        "x = np.zeros(8, np.float32)\nrun.artifact_for(run.wrap_arguments((x, x, 1.0, 8), {}))\n"
        "print([m for m in sys.modules if m.startswith('torch_mlir.dialects') and m.endswith('ops_gen') and 'irdl' not in m])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip().splitlines()[-1] == "[]"
