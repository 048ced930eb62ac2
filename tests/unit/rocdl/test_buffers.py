"""Buffer tensors: types, descriptor words per chip, sizes, and what is refused."""

import re

import pytest

from flydsl.diag import BufferSize, BufferSpace
from flydsl.expr import rocdl
from flydsl.expr.numeric import Int32
from flydsl.expr.tensors import Tensor, get_iter

GLOBAL = "!fly.memref<f16, global, (64,128):(128,1)>"
DYNAMIC = "!fly.memref<f32, global, (?,?):(?{i64},1)>"
SHARED = "!fly.memref<f16, shared, (64,128):(128,1)>"


def _descriptor(text):
    """Return (records, flags) of the first make_buffer_ptr, constants as ints and other values as their op's name."""
    defined = dict(re.findall(r"(%\w+) = ((?:arith\.constant -?\d+)|(?:[\w.]+))", text))
    operands = re.search(r"fly\.make_buffer_ptr\(([^)]*)\)", text)[1].split(", ")
    values = [defined.get(o, o) for o in operands[1:]]
    return [int(v.split()[1]) if v.startswith("arith.constant") else v for v in values]


@pytest.mark.parametrize(
    "arch,bounded,unbounded",
    [
        ("gfx942", 7 << 12 | 4 << 15, 7 << 12 | 4 << 15),
        ("gfx1201", 7 << 12 | 4 << 15 | 1 << 24 | 3 << 28, 7 << 12 | 4 << 15 | 1 << 24 | 2 << 28),
        ("gfx1250", 7 << 12 | 4 << 15 | 1 << 24 | 3 << 28, 7 << 12 | 4 << 15 | 1 << 24 | 2 << 28),
    ],
)
def test_descriptor_words(body, arch, bounded, unbounded):
    with body(arch, GLOBAL) as b:
        t = rocdl.make_buffer_tensor(Tensor(b.args[0]))
        assert str(t) == "Tensor<f16, #fly_rocdl.buffer_desc, (64,128):(128,1)>"
    assert _descriptor(b.text) == [0, 0xFFFFFFFF, unbounded]
    with body(arch, GLOBAL) as b:
        rocdl.make_buffer_tensor(Tensor(b.args[0]), max_size=False)
    assert _descriptor(b.text) == [0, 64 * 128 * 2, bounded]


def test_sizes(body):
    with body("gfx942", GLOBAL) as b:
        rocdl.make_buffer_tensor(Tensor(b.args[0]), num_records_bytes=100)
    assert _descriptor(b.text)[1] == 100
    with body("gfx942", GLOBAL, "i32") as b:
        rocdl.make_buffer_ptr(get_iter(Tensor(b.args[0])), Int32(b.args[1]))
    assert _descriptor(b.text)[1] == "arith.extui"
    with body("gfx942", DYNAMIC) as b:
        rocdl.make_buffer_tensor(Tensor(b.args[0]), max_size=False)
    assert _descriptor(b.text)[1] == "arith.minui" and "fly.cosize" in b.text


def test_resource_and_scalar_loads(body):
    with body("gfx942", DYNAMIC, "i32") as b:
        t = rocdl.make_buffer_tensor(Tensor(b.args[0]))
        assert str(rocdl.get_buffer_rsrc(t).type) == "!llvm.ptr<8>"
        assert str(rocdl.get_buffer_rsrc(get_iter(t)).type) == "!llvm.ptr<8>"
        assert isinstance(rocdl.s_buffer_load(t, 3), Int32)
        four = rocdl.s_buffer_load(t, Int32(b.args[1]), count=4, cache_modifier=1)
        assert four.shape == (4,) and four.dtype is Int32
        with pytest.raises(TypeError, match="`count` of `rocdl.s_buffer_load` must be 1 or 4"):
            rocdl.s_buffer_load(t, 0, count=2)
    assert re.search(r"rocdl.ptr.s.buffer.load %\S+, %\d+, 1 : vector<4xi32>", b.text)


@pytest.mark.parametrize(
    "call",
    [
        lambda g, s: rocdl.make_buffer_tensor(s),
        lambda g, s: rocdl.make_buffer_ptr(g),
        lambda g, s: rocdl.get_buffer_rsrc(g),
        lambda g, s: rocdl.make_buffer_tensor(3),
    ],
)
def test_other_memories_are_refused(body, call):
    with body("gfx942", GLOBAL, SHARED) as b:
        with pytest.raises(BufferSpace):
            call(*(Tensor(a) for a in b.args))


def test_size_beyond_32_bits_is_refused(body):
    with body("gfx942", GLOBAL) as b:
        with pytest.raises(BufferSize, match="4294967296"):
            rocdl.make_buffer_tensor(Tensor(b.args[0]), num_records_bytes=1 << 32)
