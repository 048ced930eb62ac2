"""Values: printing, parsing, equality, hashing, immutability, memos, payloads."""

from __future__ import annotations

import copy
import pickle

import pytest

import flydsl.layout as fl
from flydsl.layout import Basis, Layout, Swizzle, Sym, Tile


@pytest.mark.parametrize(
    "text",
    [
        "4",
        "(4)",
        "((4))",
        "(9,(4,8))",
        "(?,8)",
        "?{div=8}",
        "?{i64}",
        "?{i64 div=16}",
        "(*,3)",
        "1E0",
        "3E1E0",
        "?E0",
        "(4,64):(64,1)",
        "8:1",
        "(8):(1)",
        "(4,8):(1E0,1E1)",
        "S<3,3,3>",
        "CS<2,3,[0],3,[1,0]>",
        "S<3,3,3> o 0 o (8,64):(64,1)",
        "S<3,3,3> o ?{div=64} o 64:1",
        "32:2 o 5 o [32:1 o 7 o (4,8):(1,4)]",
        "S<3,0,3> o 0 o (8,8):(8,1) o 4 o (2,2):(1,2)",
        "[4|8]",
        "[4|*]",
        "[4:2|(2,4):(1,8)]",
        "[[2|2]|8]",
        "!fly.memref<f32, global, (4,8):(1,4)>",
        "!fly.memref<f16, shared, (8,8):(8,1), align<16>, S<3,3,3>>",
        "!fly.ptr<f16, shared, S<3,3,3>>",
        "!fly.coord_tensor<(0,?{div=4}), (4,8):(1E0,1E1)>",
        "!fly.ptr<f8E4M3FNUZ, global, align<4>>",
        "!fly.ptr<f32, shared, align<1>>",  # i8 recast to wider elements
        "!fly.memref<f16, global, 4:1, align<1>>",
    ],
)
def test_parse_prints_back(text):
    from flydsl.layout.cases import to_text

    assert to_text(fl.parse(text)) == text


@pytest.mark.parametrize("text", ["", "(4", "4:", "S<1,2>", "[4|", "4 5", "?{div=}", "(4,,8)", "!fly.tensor<4>"])
def test_parse_refuses(text):
    with pytest.raises(fl.ParseError) as caught:
        fl.parse(text)
    assert caught.value.code == "FLY_LAYOUT_SYNTAX"


def test_repr_can_be_evaluated():
    names = {
        "Layout": Layout,
        "Sym": Sym,
        "Basis": Basis,
        "Tile": Tile,
        "Swizzle": Swizzle,
        "ComposedLayout": fl.ComposedLayout,
    }
    for text in ("(4,?{i64 div=4}):(2E0,1)", "S<3,3,3> o 0 o (8,(2,4)):(8,(1,2))", "[4|(2):(1)|*]"):
        value = fl.parse(text)
        assert eval(repr(value), names) == value


def test_values_are_immutable_and_hashable():
    values = [fl.parse(t) for t in ("(4,8):(8,1)", "S<3,3,3>", "[4|8]", "S<3,3,3> o 0 o 8:1", "?{div=4}", "1E0")]
    for value in values:
        assert hash(value) == hash(fl.parse(str(value)))
        with pytest.raises(AttributeError):
            value.shape = 3
    assert Layout(4, 1) != Layout((4,), (1,))


def test_values_copy_and_match():
    for text in ("(4,?{i64 div=4}):(2E0,1)", "S<3,3,3> o 0 o (8,(2,4)):(8,(1,2))", "[4|(2):(1)|*]"):
        value = fl.parse(text)
        assert copy.deepcopy(value) == value and pickle.loads(pickle.dumps(value)) == value
    match fl.parse("(4,8):(8,1)"):
        case Layout((rows, cols), stride):
            assert (rows, cols, stride) == (4, 8, (8, 1))
        case other:
            raise AssertionError(other)


def test_syms_with_payloads_differ_by_payload():
    a, b = object(), object()
    assert Sym(32, 1, a) == Sym(32, 1, a) != Sym(32, 1, b)
    assert Sym(32, 1) == Sym(32, 1) != Sym(32, 1, a)


def test_clear_memos_and_memo_identity():
    layout = Layout((16, 32), (32, 1))
    first = fl.zipped_divide(layout, (4, 8))
    assert fl.zipped_divide(layout, (4, 8)) is first
    fl.clear_memos()
    again = fl.zipped_divide(layout, (4, 8))
    assert again == first and again is not first


def test_builder_sees_operations():
    seen = []

    class Recorder:
        def binary(self, op, lhs, rhs, width):
            seen.append((op, lhs, rhs, width))
            return f"({lhs} {op} {rhs})"

    with fl.use_builder(Recorder()):
        row = Sym(32, 1, "r")
        index = fl.crd2idx((row, 3), Layout((8, 64), (64, 1)))
    assert index == Sym(32, 1, index.value)
    assert index.value == "((r mul 64) add 3)"
    assert seen == [("mul", "r", 64, 32), ("add", "(r mul 64)", 3, 32)]


def test_identities_emit_nothing():
    class Refuse:
        def binary(self, *args):
            raise AssertionError(f"emitted {args}")

    x = Sym(32, 4, "x")
    with fl.use_builder(Refuse()):
        assert fl.int_tuple_mul(x, 0) == 0
        assert fl.int_tuple_mul(x, 1) is x
        assert fl.int_tuple_add(x, 0) is x
        assert fl.int_tuple_mod(x, 1) == 0
        assert fl.int_tuple_div(x, 1).value == "x"
        assert fl.size(Layout((x, 1), (1, 1))) is x


def test_call_and_index():
    layout = fl.make_layout((4, 8), (1, 4))
    assert layout(2, 3) == 14
    assert layout(2, None) == Layout(8, 4)
    assert layout[1] == Layout(8, 4)
    with pytest.raises(ValueError):
        layout(7)
    composed = fl.make_composed_layout(Swizzle(3, 3, 3), fl.make_layout((8, 64), (64, 1)))
    assert composed(1, 0) == 72
    with pytest.raises(TypeError):
        composed.stride


def test_imports_only_the_standard_library():
    import subprocess
    import sys

    code = (
        "import sys, flydsl.layout; "
        "bad = [m for m in sys.modules if m.split('.')[0] in ('numpy', 'torch', 'torch_mlir', 'llvmlite')]; "
        "assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
