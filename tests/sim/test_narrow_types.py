"""Int4 scalars, constant vectors of narrow types, and slices of shaped vectors, in the simulator against NumPy or bit patterns written out."""

import linecache

import ml_dtypes
import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.utils import env

INT4 = {  # n is 3 when the kernel runs
    "fx.Int4(n + 6)": -7,
    "fx.Int4(n) + fx.Int4(7)": -6,
    "fx.Int4(n) * fx.Int4(n)": -7,
    "fx.Int4(n - 5) // fx.Int4(2)": -1,
    "fx.Int4(n - 5) >> 1": -1,
    "-fx.Int4(n)": -3,
    "fx.Int4(n) < fx.Int4(-2)": 0,
    "fx.Float32(fx.Int4(n - 5))": -2,
    "fx.Int4(fx.Float32(n))": 3,
    "fx.Int4(n > 1)": 1,
    "fx.Boolean(fx.Int4(n - 3))": 0,
    "(n < 5).select(fx.Int4(n), fx.Int4(2))": 3,
    "fx.Int32x4([n, -1, 9, 4]).to(fx.Int4).to(fx.Int32).reduce('add')": -1,
    "(fx.Int32x4([n, -1, 9, 4]).to(fx.Int4) + fx.Int4(1)).to(fx.Int32).reduce('add')": 3,
    "fx.Int32x4([n, -1, 9, 4]).to(fx.Int4)[2]": -7,
    "fx.Vector.filled(4, fx.Int4(n), fx.Int4).reduce('max')": 3,
    "fx.Int32x8([n, 1, 2, 3, 4, 5, 6, 7]).to(fx.Int4).bitcast(fx.Int32)[0]": 0x76543213,
    "fx.Vector.from_elements([fx.Int4(1), fx.Int4(2), fx.Int4(-1), fx.Int4(4)]).bitcast(fx.Int16)[0]": 0x4F21,
}
SLICES = {
    "fx.Int32x4([n, 4, 2, 7]).reshape((2, 2))[None, 1].reduce('add')": 4 + 7,
    "fx.Int32x4([n, 4, 2, 7]).reshape((2, 2))[1, None].reduce('add')": 2 + 7,
    "fx.Int32x8([n, 1, 2, 7, 4, 5, 6, 8]).reshape((2, 2, 2))[1, None, 0].reduce('add')": 4 + 6,
    "fx.Int32x8([n, 1, 2, 7, 4, 5, 6, 8]).reshape((2, 2, 2))[None, 1, None].reduce('add')": 2 + 7 + 6 + 8,
    "fx.Int32x8([n, 1, 2, 7, 4, 5, 6, 8]).reshape((2, (2, 2)))[None, (0, 1)].reduce('add')": 1 + 5,
}
VALUES = [1.0, -2.0, 0.5, 3.0]
DTYPES = {
    fx.Float16: np.float16,
    fx.BFloat16: ml_dtypes.bfloat16,
    fx.Float8E4M3FN: ml_dtypes.float8_e4m3fn,
    fx.Float8E5M2: ml_dtypes.float8_e5m2,
    fx.Float8E4M3FNUZ: ml_dtypes.float8_e4m3fnuz,
    fx.Float8E5M2FNUZ: ml_dtypes.float8_e5m2fnuz,
}


def value_of(text: str, **names) -> int:
    """Return what the kernel `out[0] = Int32(text)` stores, with n = 3."""
    source = f"def body(out: fx.Tensor, n: fx.Int32):\n    out[0] = fx.Int32({text})\n"
    file = f"<narrow types {text}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    scope = {"fx": fx, **names}
    exec(compile(source, file, "exec"), scope)
    kernel = flyc.kernel(scope["body"])

    @flyc.jit
    def launch(out: fx.Tensor, n: fx.Int32):
        kernel(out, n).launch(grid=(1, 1, 1), block=(1, 1, 1))

    out = np.zeros(1, np.int32)
    with env.override(ARCH="gfx942", FLYDSL_RUNTIME_ENABLE_CACHE="0"):
        launch(out, 3)
    return int(out[0])


@pytest.mark.parametrize("text", INT4)
def test_int4(text):
    assert value_of(text) == INT4[text]


@pytest.mark.parametrize("text", SLICES)
def test_slices_of_shaped_vectors(text):
    assert value_of(text) == SLICES[text]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.__name__)
def test_constant_vectors(dtype):
    """A vector of static elements, made directly and folded from Float32, has NumPy's bits."""
    expected = np.array(VALUES, DTYPES[dtype]).view(np.int32)
    for i, word in enumerate(expected.tolist()):
        assert value_of(f"fx.Vector.from_elements({VALUES}, dtype=dtype).bitcast(fx.Int32)[{i}]", dtype=dtype) == word
        assert value_of(f"fx.Float32x4({VALUES}).to(dtype).bitcast(fx.Int32)[{i}]", dtype=dtype) == word


def test_constant_nibbles():
    e2m1 = {1.0: 2, -2.0: 12, 0.5: 1, 3.0: 5}
    packed = sum(e2m1[v] << 4 * i for i, v in enumerate(VALUES))
    assert value_of(f"fx.Vector.from_elements({VALUES}, dtype=fx.Float4E2M1FN).bitcast(fx.Int16)[0]") == packed
