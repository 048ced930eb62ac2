"""Raw buffer accesses: offsets, masks, carriers, resources."""

import re

import pytest

from flydsl.diag import BufferAccess
from flydsl.expr import buffer_ops
from flydsl.expr.numeric import Boolean, Float8E4M3FN, Float16, Float32, Int8, Int32, Int64
from flydsl.expr.tensors import Tensor
from flydsl.expr.vector import Vector


def _load(lines):
    return next(line for line in lines if "rocdl.raw.ptr.buffer.load" in line)


@pytest.mark.parametrize(
    "dtype,width,carrier,scale",
    [
        (None, 4, "vector<4xf32>", 4),
        (Float32, 1, "f32", 4),
        (Float16, 8, "vector<8xf16>", 2),
        (Int8, 4, "i32", 1),
        (Int8, 1, "i8", 1),
        (Int8, 16, "vector<4xi32>", 1),
        (Int64, 2, "vector<4xi32>", 8),
        (Float8E4M3FN, 8, "vector<2xi32>", 1),
        (Float16, 1, "i16", 2),
    ],
)
def test_load(body, dtype, width, carrier, scale):
    with body("gfx942", "!llvm.ptr<8>", "i32") as b:
        rsrc, i = b.args
        out = buffer_ops.buffer_load(rsrc, Int32(i), width, dtype)
        want = dtype or Float32
        assert (
            isinstance(out, want)
            if width == 1
            else isinstance(out, Vector) and out.shape == (width,) and out.dtype is want
        )
    assert _load(b.lines()).endswith(carrier)
    assert (f"arith.muli %arg1, %c{scale}_i32" in b.text) == (scale > 1)


def test_static_offset_mask_and_soffset(body):
    with body("gfx942", "!llvm.ptr<8>", "i1", "i32") as b:
        rsrc, m, s = b.args
        buffer_ops.buffer_load(rsrc, 3, 1, Float32, mask=Boolean(m), cache_modifier=2, soffset_bytes=Int32(s))
    assert "arith.constant 12 : i32" in b.text and "arith.constant -1 : i32" in b.text
    assert re.search(r"%(\d+) = arith.select %arg1, %c12_i32, %c-1_i32", b.text)
    assert _load(b.lines()).endswith("%arg0, %0, %arg2, 2 : f32")


def test_scalar_load(body):
    with body("gfx942", "!llvm.ptr<8>") as b:
        buffer_ops.buffer_load(b.args[0], 4, 4, Int32, is_scalar=True)
    assert "rocdl.ptr.s.buffer.load %arg0, %c16_i32, 0 : vector<4xi32>" in b.text


def test_store(body):
    with body("gfx942", "!llvm.ptr<8>", "vector<8xi8>", "f32") as b:
        rsrc, v, x = b.args
        buffer_ops.buffer_store(Vector(v), rsrc, 2)
        buffer_ops.buffer_store(Float32(x), rsrc, 20, offset_is_bytes=True)
    stores = [line for line in b.lines() if "store" in line]
    assert stores[0].endswith("%arg0, %c16_i32, %c0_i32, 0 : vector<2xi32>".replace("%c16_i32", "%c2_i32"))
    assert stores[1] == "rocdl.raw.ptr.buffer.store %arg2, %arg0, %c20_i32, %c0_i32, 0 : f32"


def test_widths_without_an_instruction(body):
    with body("gfx942", "!llvm.ptr<8>") as b:
        with pytest.raises(BufferAccess, match="8 x 32 = 256 bits"):
            buffer_ops.buffer_load(b.args[0], 0, 8, Float32)


def test_resources(body):
    with body("gfx942", "!fly.memref<f32, global, 64:1>", "i64", "!llvm.ptr<1>") as b:
        t, addr, p = b.args
        buffer_ops.create_buffer_resource(Tensor(t), max_size=False)
        buffer_ops.create_buffer_resource_from_addr(Int64(addr), num_records_bytes=128)
        buffer_ops.create_buffer_resource(p, base_byte_offset=Int64(addr))
        buffer_ops.get_element_ptr(p, 8, static_byte_offset=4)
        buffer_ops.extract_base_index(Tensor(t))
    text = b.text
    assert (
        text.count("rocdl.make.buffer.rsrc") == 3
        and "arith.constant 256 : i64" in text
        and "arith.constant 128 : i64" in text
    )
    assert "llvm.getelementptr %arg2[%arg1] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8" in text
    assert "llvm.getelementptr %arg2[12] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8" in text
