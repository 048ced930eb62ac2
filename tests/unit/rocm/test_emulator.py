"""Code objects executed instruction by instruction, without a GPU. A developer command, not part of the normal run:

    FLYDSL_EMULATOR=<folder with emu_run.py> TINYGRAD_REPO=... CC=clang-19 LLVM_PATH=... pytest -m emulator tests/unit/rocm/test_emulator.py
"""

import os
import sys

import numpy as np
import pytest
from lowered_text import VECTOR_ADD, module_text

from flydsl import arch as chips
from flydsl.targets.rocm import compile_lowered, printf

pytestmark = [
    pytest.mark.emulator,
    pytest.mark.skipif("FLYDSL_EMULATOR" not in os.environ, reason="FLYDSL_EMULATOR names no emulator"),
]
ARCHS = ("gfx942", "gfx950", "gfx1100", "gfx1201")
INDEX = """%t = gpu.thread_id x
    %i = arith.index_cast %t : index to i32
    %q = llvm.getelementptr %a[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %o = llvm.getelementptr %out[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %x = llvm.load %q : !llvm.ptr<1> -> f32"""


def run(text, arch, kernel, args, grid=(1, 1, 1), block=(64, 1, 1), tmp_path=None):
    sys.path.insert(0, os.environ["FLYDSL_EMULATOR"])
    from emu_run import run_hsaco

    artifact = compile_lowered(text, arch)
    path = tmp_path / f"{kernel}.hsaco"
    path.write_bytes(artifact.hsaco)
    run_hsaco(str(path), kernel, arch, grid=grid, block=block, args=args)
    return artifact


def elementwise(body, x, arch, tmp_path):
    text = module_text(f"{INDEX}\n{body}\nllvm.store %r, %o : f32, !llvm.ptr<1>", arguments="%a: !llvm.ptr<1>, %out: !llvm.ptr<1>")
    out = np.zeros_like(x)
    run(text, arch, "k", [x, out], block=(len(x), 1, 1), tmp_path=tmp_path)
    return out


@pytest.mark.parametrize("arch", ARCHS)
def test_vector_add(arch, tmp_path):
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, 2048)).astype(np.float32)
    c = np.full(2048, np.nan, np.float32)
    run(VECTOR_ADD, arch, "vec_add_0", [a, b, c, np.int32(1500)], grid=(2, 1, 1), block=(256, 1, 1), tmp_path=tmp_path)
    np.testing.assert_array_equal(c[:1500], (a + b)[:1500])
    assert np.isnan(c[1500:]).all()


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("distance", [*range(1, 32), 32])
def test_xor_shuffle(arch, distance, tmp_path):
    wave = chips.get(arch).wave_size
    if distance >= wave:
        pytest.skip("beyond the wave")
    x = np.arange(256, dtype=np.float32) + 0.5
    body = f"""%d = arith.constant {distance} : i32
    %w = arith.constant {wave} : i32
    %r, %v = gpu.shuffle xor %x, %d, %w : f32"""
    np.testing.assert_array_equal(elementwise(body, x, arch, tmp_path), x[np.arange(256) ^ distance])


# the emulator's own v_sqrt_f32 and v_rsq_f32 are up to 10 ulp off on their own, where the ISA manual says 1 ulp, so it
# cannot judge what is built on them; tests/unit/rocm/test_math_expansion.py does
COARSE = {"sqrt": 50.0, "rsqrt": 50.0}


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(
    "name", ["exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sin", "cos", "tan", "tanh", "erf", "erfc", "expm1", "cbrt", "atan"]
)
def test_math(arch, name, tmp_path):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(2)
    x = np.concatenate([rng.uniform(-8, 8, 96), rng.uniform(-1e-3, 1e-3, 32), rng.uniform(-1e7, 1e7, 64), np.exp(rng.uniform(-80, 80, 64))])
    x = x.astype(np.float32)
    wide = torch.from_numpy(x.astype(np.float64))
    exact = torch.sign(wide) * torch.abs(wide) ** (1 / 3) if name == "cbrt" else getattr(torch, name)(wide)
    exact = exact.numpy()
    try:
        result = elementwise(f"%r = math.{name} %x : f32", x, arch, tmp_path)
    except Exception as error:
        if "v_div_fixup_f64" in str(error) and "Failed to compile" in str(error):
            pytest.skip("the emulator cannot compile its own v_div_fixup_f64")
        raise
    with np.errstate(all="ignore"):
        rounded = exact.astype(np.float32)
        error = np.abs(result.astype(np.float64) - exact) / np.spacing(np.maximum(np.abs(rounded), np.float32(2.0**-126))).astype(np.float64)
    same = (result == rounded) | (np.isnan(result) & np.isnan(rounded))
    worst = np.nanmax(np.where(same, 0, error))
    assert worst <= COARSE.get(name, 2.01), f"{name} on {arch}: {worst} ulp"


@pytest.mark.parametrize("arch", ARCHS)
def test_printf(arch, tmp_path):
    body = """%t = gpu.thread_id x
    %i = arith.index_cast %t : index to i32
    %x = arith.sitofp %i : i32 to f32
    %c = arith.constant 5 : i32
    %s = arith.cmpi slt, %i, %c : i32
    scf.if %s { gpu.printf "lane %d: %.1f\\n", %i, %x : i32, f32 }"""
    buffer = np.frombuffer(printf.new_buffer(4096), np.uint8).copy()
    text = module_text(body, arguments="%n: i32")
    artifact = run(text, arch, "k", [np.int32(0), buffer], block=(64, 1, 1), tmp_path=tmp_path)
    texts, dropped = printf.decode(buffer.tobytes(), artifact.kernels["k"].printf_formats)
    assert sorted(texts) == [f"lane {i}: {i:.1f}\n" for i in range(5)] and dropped == 0


@pytest.mark.parametrize("arch", ARCHS)
def test_grid_and_block_size(arch, tmp_path):
    body = """%g = gpu.grid_dim x
    %b = gpu.block_dim x
    %h = gpu.grid_dim y
    %gi = arith.index_cast %g : index to i32
    %bi = arith.index_cast %b : index to i32
    %hi = arith.index_cast %h : index to i32
    llvm.store %gi, %out : i32, !llvm.ptr<1>
    %o1 = llvm.getelementptr %out[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    llvm.store %bi, %o1 : i32, !llvm.ptr<1>
    %o2 = llvm.getelementptr %out[2] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    llvm.store %hi, %o2 : i32, !llvm.ptr<1>"""
    out = np.zeros(4, np.int32)
    text = module_text(body, arguments="%out: !llvm.ptr<1>", attributes="fly.x = 0 : i32")
    run(text, arch, "k", [out], grid=(3, 2, 1), block=(64, 1, 1), tmp_path=tmp_path)
    assert out.tolist() == [3, 64, 2, 0]
