"""Every refusal names the operation, its operands and the condition, and is the built-in a caller expects."""

from __future__ import annotations

import pytest

import flydsl.layout as fl
from flydsl.layout import Layout, make_layout

L = fl.parse
CASES = [
    (lambda: make_layout((4, 8), (1,)), fl.ProfileMismatch, ValueError, "make_layout"),
    (lambda: fl.crd2idx((3, 5, 0), L("(8,16):(1,8)")), fl.ProfileMismatch, ValueError, "crd2idx"),
    (
        lambda: fl.composition(L("(4,8):(8,1)"), L("6:1")),
        fl.NotDivisible,
        ValueError,
        "composition",
    ),
    (lambda: fl.composition(L("(4,8):(8,1)"), (2, 4)), fl.OperandType, TypeError, "composition"),
    (lambda: fl.composition(L("S<3,3,3>"), L("8:1")), fl.OperandType, TypeError, "composition"),
    (lambda: fl.complement(L("(2,3):(?,1)"), 12), fl.NotStatic, ValueError, "complement"),
    (lambda: fl.complement(L("(4,8):(1E0,1E1)")), fl.BasisMismatch, ValueError, "complement"),
    (lambda: fl.complement(L("(4,8):(3,5)")), fl.NotInjective, ValueError, "complement"),
    (lambda: fl.left_inverse(L("(4,8):(3,5)")), fl.NotDivisible, ValueError, "left_inverse"),
    (lambda: fl.idx2crd(5, L("(4,8):(0,1)")), fl.DivisionByZero, ValueError, "idx2crd"),
    (lambda: fl.logical_divide(L("16:1"), 4), fl.OperandType, TypeError, "logical_divide"),
    (lambda: fl.zipped_divide(L("16:1"), (4, 8)), fl.RankMismatch, ValueError, "zipped_divide"),
    (
        lambda: fl.zipped_divide(L("(8,8):(8,1)"), (4, None)),
        fl.OperandType,
        TypeError,
        "zipped_divide",
    ),
    (
        lambda: fl.logical_product(L("4:2"), L("3:1")),
        fl.NotDivisible,
        ValueError,
        "logical_product",
    ),
    (lambda: fl.logical_product(L("4:2"), 3), fl.OperandType, TypeError, "logical_product"),
    (
        lambda: fl.recast_layout(L("(4,8):(8,1)"), 16, 12),
        fl.NotDivisible,
        ValueError,
        "recast_layout",
    ),
    (
        lambda: fl.recast_layout(L("(4,8):(?,1)"), 8, 16),
        fl.NotDivisible,
        ValueError,
        "recast_layout",
    ),
    (lambda: fl.recast_layout(L("(4,8):(8,1)"), 0, 16), fl.OperandType, TypeError, "recast_layout"),
    (lambda: fl.shape_div(7, 2), fl.NotDivisible, ValueError, "shape_div"),
    (lambda: fl.int_tuple_div(5, 0), fl.DivisionByZero, ValueError, "int_tuple_div"),
    (lambda: fl.int_tuple_add(5, (1, 2)), fl.ProfileMismatch, ValueError, "int_tuple_add"),
    (lambda: fl.slice_(L("(4,8):(1,4)"), (1, 2)), fl.RankMismatch, ValueError, "slice"),
    (lambda: fl.dice(L("(4,8):(1,4)"), None), fl.RankMismatch, ValueError, "dice"),
    (lambda: fl.select((4, 8), [2]), fl.ModeOutOfRange, IndexError, "select"),
    (lambda: fl.get_((1, 2), 5), fl.ModeOutOfRange, IndexError, "get"),
    (lambda: fl.append((4, 8), L("2:1")), fl.OperandType, TypeError, "append"),
    (lambda: fl.make_tile(fl.Sym()), fl.NotStatic, ValueError, "make_tile"),
    (
        lambda: fl.make_layout_tv(L("(?,4):(4,1)"), L("2:1")),
        fl.NotStatic,
        ValueError,
        "make_layout_tv",
    ),
    (
        lambda: fl.make_fragment_layout_like(L("(?,4):(4,1)")),
        fl.NotStatic,
        ValueError,
        "make_fragment_layout_like",
    ),
    (lambda: fl.size([4, 8]), fl.OperandType, TypeError, "size"),
]


@pytest.mark.parametrize("call,kind,builtin,op", CASES, ids=range(len(CASES)))
def test_refusal(call, kind, builtin, op):
    with pytest.raises(kind) as caught:
        call()
    error = caught.value
    assert isinstance(error, builtin) and isinstance(error, fl.LayoutError)
    assert error.op == op and error.operands and error.condition
    assert error.code.startswith("FLY_LAYOUT_") and error.why and error.fix
    assert error.op in str(error) and error.code in str(error)


def test_inner_operations_are_kept():
    with pytest.raises(fl.NotDivisible) as caught:
        fl.tile_to_shape(Layout((16, 16), (1, 64)), (48, 64), (0, 1))
    assert caught.value.op == "tile_to_shape"
    assert caught.value.inner[0][0] == "blocked_product"


def test_codes_are_unique():
    kinds = [k for k in vars(fl).values() if isinstance(k, type) and issubclass(k, fl.LayoutError)]
    codes = [k.code for k in kinds]
    assert len(set(codes)) == len(codes) >= 10
