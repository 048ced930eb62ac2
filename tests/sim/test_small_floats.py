"""Conversions of 8-, 6- and 4-bit floats in kernels: every code decoded, every f16 number encoded, against ml_dtypes."""

import ml_dtypes
import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.utils import env

NAMES = {
    "Float8E4M3FN": "float8_e4m3fn",
    "Float8E5M2": "float8_e5m2",
    "Float8E4M3FNUZ": "float8_e4m3fnuz",
    "Float8E5M2FNUZ": "float8_e5m2fnuz",
    "Float8E4M3B11FNUZ": "float8_e4m3b11fnuz",
    "Float8E4M3": "float8_e4m3",
    "Float8E8M0FNU": "float8_e8m0fnu",
    "Float6E2M3FN": "float6_e2m3fn",
    "Float6E3M2FN": "float6_e3m2fn",
    "Float4E2M1FN": "float4_e2m1fn",
}
CHIPS = ("gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250")
PER_THREAD = 8


@flyc.kernel
def decode_kernel(codes: fx.Tensor, values: fx.Tensor, name: fx.Constexpr[str]):
    dtype = getattr(fx, name)
    first = (fx.block_idx.x * 64 + fx.thread_idx.x) * PER_THREAD
    n_bytes = PER_THREAD * dtype.width // 8
    at = fx.add_offset(codes.iter, (fx.block_idx.x * 64 + fx.thread_idx.x) * n_bytes)
    raw = fx.make_view(at, fx.make_layout(n_bytes, 1)).load()
    out = fx.make_view(fx.add_offset(values.iter, first), fx.make_layout(PER_THREAD, 1))
    out.store(raw.bitcast(dtype).to(fx.Float32))


@flyc.kernel
def encode_kernel(values: fx.Tensor, codes: fx.Tensor, name: fx.Constexpr[str]):
    dtype = getattr(fx, name)
    first = (fx.block_idx.x * 64 + fx.thread_idx.x) * PER_THREAD
    n_bytes = PER_THREAD * dtype.width // 8
    raw = fx.make_view(fx.add_offset(values.iter, first), fx.make_layout(PER_THREAD, 1)).load()
    at = fx.add_offset(codes.iter, (fx.block_idx.x * 64 + fx.thread_idx.x) * n_bytes)
    fx.make_view(at, fx.make_layout(n_bytes, 1)).store(raw.to(dtype).bitcast(fx.Uint8))


@flyc.jit
def decode(codes: fx.Tensor, values: fx.Tensor, blocks: fx.Int32, name: fx.Constexpr[str]):
    decode_kernel(codes, values, name).launch(grid=(blocks, 1, 1), block=(64, 1, 1))


@flyc.jit
def encode(values: fx.Tensor, codes: fx.Tensor, blocks: fx.Int32, name: fx.Constexpr[str]):
    encode_kernel(values, codes, name).launch(grid=(blocks, 1, 1), block=(64, 1, 1))


def pack(codes: np.ndarray, bits: int) -> np.ndarray:
    """Pack codes, the first in the lowest bits."""
    as_bits = (codes[:, None] >> np.arange(bits)) & 1
    return np.packbits(as_bits.reshape(-1).astype(np.uint8), bitorder="little")


def unpack(packed: np.ndarray, bits: int) -> np.ndarray:
    as_bits = np.unpackbits(packed, bitorder="little").reshape(-1, bits)
    return (as_bits << np.arange(bits)).sum(axis=1).astype(np.uint8)


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("name", NAMES)
def test_every_code_decodes(name, arch):
    dtype, numpy_type = getattr(fx, name), getattr(ml_dtypes, NAMES[name])
    codes = np.tile(np.arange(1 << dtype.width), 512 >> min(dtype.width, 8)).astype(np.uint8)[:512]
    values = np.zeros(512, np.float32)
    with env.override(ARCH=arch, FLYDSL_GPU_ARCH=arch):
        decode(pack(codes, dtype.width), values, 1, name)
    np.testing.assert_array_equal(values, codes.view(numpy_type).astype(np.float32))


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("name", NAMES)
def test_numbers_encode(name, arch):
    dtype, numpy_type = getattr(fx, name), getattr(ml_dtypes, NAMES[name])
    values = np.arange(1 << 16).astype(np.uint16).view(np.float16).astype(np.float32)
    if dtype.width < 8:  # formats without NaN: what a NaN becomes is not defined
        values = np.where(np.isnan(values), 1, values)
    if dtype is fx.Float8E8M0FNU:
        values = np.where(values == 0, 1, np.abs(values))
    packed = np.zeros(len(values) * dtype.width // 8, np.uint8)
    with env.override(ARCH=arch, FLYDSL_GPU_ARCH=arch):
        encode(values, packed, len(values) // 512, name)
    got = unpack(packed, dtype.width).view(numpy_type)
    with np.errstate(all="ignore"):
        expected = values.astype(numpy_type)
    np.testing.assert_array_equal(got.astype(np.float32), expected.astype(np.float32))
    zeros = expected.astype(np.float32) == 0
    np.testing.assert_array_equal(
        np.signbit(got.astype(np.float32)[zeros]), np.signbit(expected.astype(np.float32)[zeros])
    )


@flyc.kernel
def elements_kernel(a: fx.Tensor, wide: fx.Tensor, back: fx.Tensor):
    i = fx.thread_idx.x
    wide[i] = a[i].to(fx.Float32)
    back[i] = wide[i].to(a.dtype)


@flyc.jit
def elements(a: fx.Tensor, wide: fx.Tensor, back: fx.Tensor):
    elements_kernel(a, wide, back).launch(grid=(1, 1, 1), block=(256, 1, 1))


IN_ARRAYS = [name for name in NAMES if getattr(fx, name).width == 8]


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("name", IN_ARRAYS)
def test_elements_of_arrays(name, arch):
    """Each code of an array of the type is loaded, converted and stored again."""
    a = np.arange(256, dtype=np.uint8).view(getattr(ml_dtypes, NAMES[name]))
    wide, back = np.zeros(256, np.float32), np.zeros_like(a)
    with env.override(ARCH=arch, FLYDSL_GPU_ARCH=arch):
        elements(a, wide, back)
        isa = elements.artifact_for(elements.wrap_arguments((a, wide, back), {})).codegen(("isa",)).isa
    np.testing.assert_array_equal(wide, a.astype(np.float32))
    number = ~np.isnan(wide)
    np.testing.assert_array_equal(back.view(np.uint8)[number], a.view(np.uint8)[number])
    assert np.isnan(back.astype(np.float32)[~number]).all()
    assert "global_load_" in isa and ("global_store_byte" in isa or "global_store_b8" in isa)


@pytest.mark.parametrize("name", ["float8_e5m2", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2fnuz"])
def test_elements_of_torch_tensors(name):
    torch = pytest.importorskip("torch")
    a = torch.arange(256, dtype=torch.uint8).view(getattr(torch, name))
    wide, back = torch.zeros(256), torch.zeros_like(a)
    elements(a, wide, back)
    np.testing.assert_array_equal(wide.numpy(), a.to(torch.float32).numpy())


def test_the_types_of_8_bits_in_arrays_all_have_a_class():
    from flydsl.runtime.host_arrays import NUMPY_ELEMENTS

    classes = {getattr(fx, name).element.mlir for name in NAMES}
    assert {elem for elem in NUMPY_ELEMENTS.values() if elem.startswith("f8")} <= classes
