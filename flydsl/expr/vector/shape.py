"""Nested shapes of vectors: `(2, (2, 4))`. Row-major: the last leaf is fastest. Imports no MLIR."""

from typing import Any

from flydsl.diag import VectorConstruction

Shape = tuple  # of positive ints and Shapes


def canonical(shape: Any) -> Shape:
    """Return a shape as nested tuples of positive ints; a single int is a 1-tuple."""
    if shape.__class__ is int and shape > 0:
        return (shape,)
    if isinstance(shape, (tuple, list)):
        return tuple(_part(s) for s in shape)
    return (_part(shape),)


def _part(s: Any) -> Any:
    if isinstance(s, (tuple, list)):
        return tuple(_part(e) for e in s)
    try:
        extent = s.__index__()
    except AttributeError:
        extent = -1
    if isinstance(s, bool) or extent < 1:
        raise VectorConstruction(
            problem=f"{s!r} is no extent of a vector shape",
            advice="shapes are positive compile-time integers, nested in tuples",
        )
    return extent


def flat(shape: Any) -> tuple[int, ...]:
    """Return the leaves, left to right."""
    if not isinstance(shape, tuple):
        return (shape,)
    return tuple(leaf for s in shape for leaf in flat(s))


def numel_of(shape: Shape) -> int:
    """Return the product of the leaves."""
    n = 1
    for s in shape:
        n *= s if s.__class__ is int else numel_of(s)
    return n


def row_major_strides(extents: tuple[int, ...]) -> tuple[int, ...]:
    """Return the steps of each leaf in the flat vector."""
    strides, step = [], 1
    for extent in reversed(extents):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def broadcast_shapes(a: Shape, b: Shape) -> Shape:
    """Return the common shape: NumPy's rule on the leaves; equal shapes keep their nesting.

    Raises   VectorConstruction
    """
    if a == b:
        return a
    fa, fb = flat(a), flat(b)
    rank = max(len(fa), len(fb))
    fa, fb = (1,) * (rank - len(fa)) + fa, (1,) * (rank - len(fb)) + fb
    if any(x != y and 1 not in (x, y) for x, y in zip(fa, fb, strict=True)):
        raise VectorConstruction(
            problem=f"cannot broadcast shapes {a} and {b}",
            advice="reshape one of them so that each pair of modes is equal or has a 1",
        )
    return tuple(max(x, y) for x, y in zip(fa, fb, strict=True))
