"""Dynamic leaves: putting numbers in before or after an operation gives the same, and width and div are true."""

from __future__ import annotations

import pytest
from hypothesis import assume, given

import flydsl.layout as fl
from flydsl.layout import Basis, ComposedLayout, Layout, LayoutError, Sym
from flydsl.layout.int_tuple import to_str
from flydsl.layout.leaf import PythonBuilder, use_builder
from flydsl.layout.memo import memo_sizes
from tests.laws.layout_strategies import (
    Boxed,
    above_one,
    ci,
    compact_layouts,
    injective_layouts,
    layouts,
    nightly,
    values,
    with_symbols,
)


class Numbers(PythonBuilder):
    """Computes with the numbers inside the boxes: stands for a builder of IR."""

    def binary(self, op, lhs, rhs, width):
        numbers = (x.number if isinstance(x, Boxed) else x for x in (lhs, rhs))
        return Boxed(super().binary(op, *numbers, width))


def numbers_in(x):
    """Replace each Sym by the number it carries, and check the promises of its type."""
    if isinstance(x, tuple):
        return tuple(numbers_in(i) for i in x)
    if isinstance(x, Layout):
        return Layout(numbers_in(x.shape), numbers_in(x.stride))
    if isinstance(x, ComposedLayout):
        return ComposedLayout(x.inner, numbers_in(x.offset), numbers_in(x.outer))
    if isinstance(x, Basis):
        return Basis(numbers_in(x.value), x.modes)
    if not isinstance(x, Sym):
        return x
    assert x.value is not None, "a result of leaves with payloads carries a payload"
    assert x.width in (32, 64)
    assert x.value.number % x.div == 0, f"{x.value} is no multiple of {x.div}"
    return x.value.number


def same(op, symbolic, plain, *rest):
    """Both orders agree as functions; where numbers are refused, nothing is promised for symbols."""
    try:
        late = op(symbolic, *rest)
    except LayoutError:
        assume(False)
    try:
        early = op(plain, *rest)
    except LayoutError:
        assume(False)
    late = numbers_in(late)
    if not isinstance(early, Layout):
        assert late == early
        return
    assert values(late) == values(early)


# A dynamic extent or stride counts as "not 1" while tracing, so these laws hold for numbers above 1.
NO_ONES = injective_layouts(above_one, (2, 3))
OPS = {
    "size": (layouts, lambda l: fl.size(l)),
    "cosize": (layouts, lambda l: fl.cosize(l)),
    "coshape": (layouts, lambda l: fl.coshape(l)),
    "crd2idx": (layouts, lambda l: fl.crd2idx(1, l)),
    "coalesce": (layouts, fl.coalesce),
    "idx2crd": (compact_layouts(), lambda l: fl.idx2crd(5, l)),
    "get_1d_coord": (compact_layouts(), lambda l: fl.get_1d_coord(5, l)),
    "get_flat_coord": (compact_layouts(), lambda l: fl.get_flat_coord(3, l)),
    "complement": (NO_ONES, lambda l: fl.complement(l, fl.size(l))),
    "logical_product": (NO_ONES, lambda l: fl.logical_product(l, Layout(2, 1))),
    "recast": (NO_ONES, lambda l: fl.recast_layout(l, 16, 8)),
    "swizzled": (
        layouts,
        lambda l: fl.crd2idx(1, fl.make_composed_layout(fl.Swizzle(2, 1, 2), l)),
    ),
    "composed slice": (
        layouts,
        lambda l: (
            fl.crd2idx(0, fl.slice_(fl.make_composed_layout(fl.Swizzle(2, 1, 2), l), (None,) * fl.rank(l)))
            if isinstance(l.shape, tuple)
            else 0
        ),
    ),
}


def law(op, pair):
    with use_builder(Numbers()):
        same(op, *pair)


@pytest.mark.parametrize("name", OPS)
def test_numbers_before_or_after(name):
    source, op = OPS[name]
    ci(given(with_symbols(source))(lambda pair: law(op, pair)))()


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", OPS)
def test_numbers_before_or_after_nightly(name):
    source, op = OPS[name]
    nightly(given(with_symbols(source))(lambda pair: law(op, pair)))()


def hidden_rows(n: int) -> tuple[Layout, Layout]:
    """(n,8):(8,1) with n at run time, and with the number."""
    return Layout((Sym(32, 4, Boxed(n)), 8), (8, 1)), Layout((n, 8), (8, 1))


@pytest.mark.parametrize("form", ["logical_divide", "zipped_divide", "tiled_divide", "flat_divide"])
@pytest.mark.parametrize("n", [4, 12, 16])
def test_divides_of_dynamic_rows(form, n):
    symbolic, plain = hidden_rows(n)
    divide = getattr(fl, form)
    with use_builder(Numbers()):
        late = numbers_in(divide(symbolic, (4, 2)))
    early = divide(plain, (4, 2))
    assert late.shape == early.shape
    assert values(late) == values(early)


def test_payloads_are_not_remembered():
    fl.clear_memos()
    with use_builder(Numbers()):
        assert numbers_in(fl.size(Layout((Sym(32, 1, Boxed(3)), 8), (8, 1)))) == 24
    assert memo_sizes() == 0
    fl.size(Layout((Sym(32, 1), 8), (8, 1)))
    assert memo_sizes() == 1


@pytest.mark.parametrize(
    "text,op,wanted",
    [
        ("(?,8):(8,1)", fl.size, "?{div=8}"),
        ("(?{i64 div=8},4):(4,1)", fl.size, "?{i64 div=32}"),
        (
            "(?,?):(?{i64},1)",
            lambda l: fl.zipped_divide(l, (8, 64)),
            "((8,64),(?,?)):((?{i64},1),(?{i64 div=8},64))",
        ),
        (
            "(?,?):(?,1)",
            lambda l: fl.composition(l, Layout((8, 4), (1, 8))),
            "((?,?),(?,?)):((?,1),(?{div=8},?))",
        ),
        ("(4,8):(1,?)", lambda l: fl.recast_layout(l, 16, 8), "(8,8):(1,?{div=2})"),
    ],
)
def test_printed_width_and_div(text, op, wanted):
    assert to_str(op(fl.parse(text))) == wanted
