"""Random nested tuples and layouts for the laws, and how many examples each law tries.

Default 200 examples; tests marked `nightly` try 10,000.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from flydsl.layout import Layout, Sym

EXAMPLES = int(os.environ.get("FLYDSL_LAW_EXAMPLES", "200"))
NIGHTLY = int(os.environ.get("FLYDSL_LAW_EXAMPLES_NIGHTLY", "10000"))
_QUIET = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
ci = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=_QUIET)
nightly = settings(max_examples=NIGHTLY, deadline=None, suppress_health_check=_QUIET)

extents = st.sampled_from([1, 1, 2, 2, 3, 4, 4, 5, 6, 8])
above_one = st.sampled_from([2, 2, 3, 4, 4, 5, 6, 8])


@st.composite
def shapes(draw, max_leaves: int = 4, extents=extents):
    """A nested shape with a small product."""
    modes = []
    for _ in range(draw(st.integers(1, 3))):
        if len(modes) < max_leaves and draw(st.integers(0, 2)) == 0:
            modes.append(tuple(draw(st.lists(extents, min_size=1, max_size=2))))
        else:
            modes.append(draw(extents))
    if len(modes) == 1 and not isinstance(modes[0], tuple) and draw(st.booleans()):
        return modes[0]
    return tuple(modes)


def leaves(x) -> list:
    return [x] if not isinstance(x, tuple) else [leaf for i in x for leaf in leaves(i)]


def values(layout) -> list:
    """The value at each linear coordinate of a plain layout of ints, added up here without `crd2idx`."""
    out = [0]
    for s, d in zip(leaves(layout.shape), leaves(layout.stride), strict=True):
        out = [v + c * d for c in range(s) for v in out]
    return out


def refill(profile, values):
    if not isinstance(profile, tuple):
        return next(values)
    return tuple(refill(p, values) for p in profile)


@st.composite
def compact_layouts(draw):
    """A bijection onto 0..size-1: compact strides in any order of the leaves."""
    shape = draw(shapes())
    flat = leaves(shape)
    strides = [0] * len(flat)
    step = 1
    for i in draw(st.permutations(range(len(flat)))):
        strides[i] = step
        step *= flat[i]
    return Layout(shape, refill(shape, iter(strides)))


@st.composite
def injective_layouts(draw, extents=extents, first_strides=(1, 1, 2, 3)):
    """Like a compact layout, with gaps that are multiples of what lies below them."""
    shape = draw(shapes(extents=extents))
    flat = leaves(shape)
    strides = [0] * len(flat)
    step = draw(st.sampled_from(first_strides))
    for i in draw(st.permutations(range(len(flat)))):
        strides[i] = step
        step *= flat[i] * draw(st.sampled_from([1, 1, 1, 2, 3]))
    return Layout(shape, refill(shape, iter(strides)))


@st.composite
def any_layouts(draw):
    """Any strides, also 0 and overlapping ones."""
    shape = draw(shapes())
    steps = st.sampled_from([0, 1, 1, 2, 3, 4, 5, 8, 12, 16, 24])
    return Layout(shape, refill(shape, iter([draw(steps) for _ in leaves(shape)])))


layouts = st.one_of(compact_layouts(), injective_layouts(), any_layouts())


@st.composite
def with_symbols(draw, source):
    """(symbolic, numbers): a layout in which some leaves carry their number as payload, and the plain one."""
    plain = draw(source)

    def hide(n: int):
        if n == 0 or draw(st.integers(0, 2)):
            return n
        divisors = [d for d in range(1, n + 1) if n % d == 0]
        return Sym(draw(st.sampled_from([32, 64])), draw(st.sampled_from(divisors)), Boxed(n))

    symbolic = Layout(
        refill(plain.shape, iter([hide(s) for s in leaves(plain.shape)])),
        refill(plain.stride, iter([hide(d) for d in leaves(plain.stride)])),
    )
    return symbolic, plain


class Boxed:
    """A payload which is not an int: its number is only reached through the builder."""

    def __init__(self, number: int):
        self.number = number

    def __repr__(self) -> str:
        return f"Boxed({self.number})"
