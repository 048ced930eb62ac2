"""Integer tuples: nested Python tuples of leaves, their structure, arithmetic and printed form.

A rank-1 tuple `(4,)` is not the leaf `4`. Neighbours: `leaf` does the arithmetic, `layout`
pairs two tuples.
Modes of tuples and layouts alike are picked in `modes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

from . import leaf
from .errors import (
    BasisMismatch,
    ModeOutOfRange,
    OperandType,
    ProfileMismatch,
    RankMismatch,
)
from .leaf import Basis, Sym
from .memo import operation

IntTuple = int | Sym | Basis | None | tuple


def make_int_tuple(x: Any) -> IntTuple:
    """Return `x` with every list and tuple turned into a tuple and every leaf checked."""
    kind = type(x)
    if kind is int or x is None or kind is Sym or kind is Basis:
        return x
    if isinstance(x, (tuple, list)):
        return tuple([make_int_tuple(i) for i in x])
    if isinstance(x, int):
        return int(x)
    raise OperandType(f"{kind.__name__} is not an integer tuple", "make_int_tuple", (x,))


def _variadic(args: tuple) -> IntTuple:
    return make_int_tuple(args)


def make_shape(*extents: Any) -> tuple:
    """Return the tuple of its arguments: `make_shape(8, 16)` is (8,16), `make_shape((8, 16))`
    is ((8,16)).
    """
    return _variadic(extents)


def make_stride(*steps: Any) -> tuple:
    """Return the tuple of its arguments, like `make_shape`."""
    return _variadic(steps)


def make_coord(*coords: Any) -> tuple:
    """Return the tuple of its arguments, where None keeps a whole mode."""
    return _variadic(coords)


def E(*modes: Any) -> Basis | int:
    """Return the unit basis leaf at a path, given as arguments or as one list; `E()` is 1."""
    path = tuple(modes[0]) if len(modes) == 1 and isinstance(modes[0], (list, tuple)) else modes
    if any(type(m) is not int or m < 0 for m in path):
        raise OperandType(f"E modes must be non-negative ints, got {path}", "E", path)
    return Basis(1, path) if path else 1


def to_str(x: Any) -> str:
    """Return the printed notation of a tuple, without spaces."""
    kind = type(x)
    if kind is int:
        return str(x)
    if kind is tuple:
        return "(" + ",".join([to_str(i) for i in x]) + ")"
    return "*" if x is None else str(x)


def is_leaf(x: IntTuple) -> bool:
    """Return whether `x` is a leaf."""
    return type(x) is not tuple


def tuple_rank(x: IntTuple) -> int:
    """Return the number of modes; a leaf has one."""
    return len(x) if type(x) is tuple else 1


def tuple_depth(x: IntTuple) -> int:
    """Return the nesting depth; a leaf has 0."""
    if type(x) is not tuple:
        return 0
    return 1 + max([tuple_depth(i) for i in x], default=0)


def tuple_is_static(x: IntTuple) -> bool:
    """Return whether no leaf is dynamic."""
    kind = type(x)
    if kind is tuple:
        return all(tuple_is_static(i) for i in x)
    return kind is not Sym and not (kind is Basis and type(x.value) is Sym)


def as_modes(x: IntTuple) -> tuple:
    """Return the top-level modes; a leaf is its own single mode."""
    return x if type(x) is tuple else (x,)


def leaves(x: IntTuple) -> tuple:
    """Return all leaves, left to right."""
    if type(x) is not tuple:
        return (x,)
    out: list = []
    _collect(x, out)
    return tuple(out)


def _collect(x: tuple, out: list) -> None:
    for i in x:
        if type(i) is tuple:
            _collect(i, out)
        else:
            out.append(i)


def get_leaves(x: IntTuple, dynamic_only: bool = False) -> tuple:
    """Return all leaves left to right, or only the dynamic ones."""
    return tuple(i for i in leaves(x) if not dynamic_only or type(i) is Sym)


def flatten_tuple(x: IntTuple) -> IntTuple:
    """Return the leaves as one flat tuple; a leaf stays a leaf."""
    return leaves(x) if type(x) is tuple else x


def unflatten_tuple(flat: IntTuple, profile: IntTuple) -> IntTuple:
    """Return the leaves of `flat` nested like `profile`."""
    values = leaves(flat)
    if len(values) != len(leaves(profile)):
        raise ProfileMismatch(
            f"{len(values)} leaves do not fill a profile of {len(leaves(profile))}",
            "unflatten",
            (flat, profile),
        )
    return _refill(iter(values), profile)


def _refill(values: Iterator, profile: IntTuple) -> IntTuple:
    if type(profile) is not tuple:
        return next(values)
    return tuple([_refill(values, p) for p in profile])


def map_leaves(fn: Callable, x: IntTuple) -> IntTuple:
    """Return `x` with `fn` applied to each leaf."""
    if type(x) is not tuple:
        return fn(x)
    return tuple([map_leaves(fn, i) for i in x])


def zip_tuple(a: IntTuple, b: IntTuple) -> tuple:
    """Return the tuple of pairs of modes; both need the same rank."""
    if tuple_rank(a) != tuple_rank(b):
        raise RankMismatch(f"rank {tuple_rank(a)} is not rank {tuple_rank(b)}", "zip", (a, b))
    return tuple(zip(as_modes(a), as_modes(b)))


@operation
def has_none(x: IntTuple) -> bool:
    """Return whether any leaf is None (`*`)."""
    if type(x) is tuple:
        return any(has_none.uncached(i) for i in x)
    if x is not None and type(x) not in (int, Sym, Basis):
        raise OperandType(f"expected an integer tuple, got {type(x).__name__}")
    return x is None


def congruent(a: Any, b: Any) -> bool:
    """Return whether two tuples nest alike; a basis leaf counts as the path it stands for."""
    if type(a) is tuple and type(b) is tuple:
        return len(a) == len(b) and all(congruent(x, y) for x, y in zip(a, b))
    return type(a) is not tuple and type(b) is not tuple


def weakly_congruent(a: Any, b: Any) -> bool:
    """Return whether each leaf of `a` stands where `b` has a leaf or a whole mode."""
    if type(a) is not tuple:
        return True
    return type(b) is tuple and len(a) == len(b) and all(weakly_congruent(x, y) for x, y in zip(a, b))


def product(x: IntTuple) -> Any:
    """Return the product of all leaves; `*` counts as 0."""
    kind = type(x)
    if kind is int:
        return x
    if kind is not tuple:
        return 0 if x is None else x
    total: Any = 1
    for i in x:
        total = leaf.mul(total, product(i))
    return total


def star_product(x: IntTuple) -> Any:
    """Return the product of all leaves as the operations give it: a single `*` stays one."""
    while type(x) is tuple and len(x) == 1:
        x = x[0]
    return None if x is None else product(x)


@operation
def int_tuple_product(x: IntTuple) -> Any:
    """Return the product of all leaves; `*` among others counts as 0."""
    _refuse_layouts(x)
    return star_product(x)


@operation
def int_tuple_product_each(x: IntTuple) -> IntTuple:
    """Return the product of each top-level mode."""
    if type(x) is not tuple:
        _refuse_layouts(x)
        return x
    return tuple([star_product(i) for i in x]) if tuple in map(type, x) else x


@operation
def int_tuple_product_like(x: IntTuple, guide: IntTuple) -> IntTuple:
    """Return the products of `x` below each leaf of `guide`, nested like `guide`."""
    _refuse_layouts(x, guide)
    return _product_like(x, guide)


def _product_like(x: IntTuple, guide: IntTuple) -> IntTuple:
    if type(guide) is not tuple:
        return star_product(x)
    modes = as_modes(x)
    if len(modes) < len(guide):
        raise RankMismatch(f"{to_str(x)} has fewer modes than {to_str(guide)}")
    return tuple([_product_like(i, g) for i, g in zip(modes, guide)])


def _refuse_layouts(*operands: Any) -> None:
    for x in operands:
        if type(x) not in (int, tuple, Sym, Basis) and x is not None:
            raise OperandType(f"expected an integer tuple, got {type(x).__name__} `{x}`")


def _zip_left(fn: Callable, a: IntTuple, b: IntTuple) -> IntTuple:
    """Apply `fn` to matching leaves; a right side with fewer modes serves the first modes of
    the left one. Coordinates which basis leaves stand for are added as such.
    """
    if fn is leaf.add and (type(a) is Basis or type(b) is Basis):
        return coord_add(a, b)
    if type(a) is not tuple:
        if type(b) is tuple:
            raise ProfileMismatch(f"the leaf {to_str(a)} meets the tuple {to_str(b)}")
        return fn(a, b)
    right = as_modes(b)
    out = [_zip_left(fn, x, y) for x, y in zip(a, right)]
    return tuple(out) + a[len(right) :] + right[len(a) :]


def _arithmetic(name: str, fn: Callable, doc: str) -> Callable:
    def apply(a: IntTuple, b: IntTuple) -> IntTuple:
        _refuse_layouts(a, b)
        return _zip_left(fn, a, b)

    apply.__name__ = apply.__qualname__ = f"int_tuple_{name}"
    apply.__doc__ = doc + " leaf by leaf; modes which only one side has keep their value."
    return operation(apply)


int_tuple_add = _arithmetic("add", leaf.add, "Return a + b")
int_tuple_sub = _arithmetic("sub", leaf.sub, "Return a - b")
int_tuple_mul = _arithmetic("mul", leaf.mul, "Return a * b")
int_tuple_div = _arithmetic("div", leaf.div, "Return a / b rounded toward zero,")
int_tuple_mod = _arithmetic("mod", leaf.mod, "Return the remainder of a / b")


def _divide_through(fn: Callable, a: IntTuple, b: IntTuple) -> IntTuple:
    """Divide mode by mode; a scalar divisor is used up from the first mode on, a tuple against
    a leaf is its product.
    """
    if type(a) is not tuple:
        return fn(a, product(b) if type(b) is tuple else b)
    if type(b) is tuple:
        return tuple([_divide_through(fn, x, y) for x, y in zip(a, b)]) + a[len(b) :]
    return _consume(fn, a, b)[0]


def _consume(fn: Callable, a: IntTuple, b: Any) -> tuple[IntTuple, Any]:
    """Return (a divided by the scalar b, what is left of b after these leaves)."""
    if type(a) is not tuple:
        return fn(a, b), fn(b, a)
    out = []
    for x in a:
        quotient, b = _consume(fn, x, b)
        out.append(quotient)
    return tuple(out), b


@operation
def shape_div(a: IntTuple, b: IntTuple) -> IntTuple:
    """Return a / b mode by mode, where static leaves must divide one another; a scalar b is
    consumed.
    """
    _refuse_layouts(a, b)
    return _divide_through(leaf.shape_div, a, b)


@operation
def ceil_div(a: IntTuple, b: IntTuple) -> IntTuple:
    """Return a / b rounded up, mode by mode; a scalar b is consumed, a tuple against a leaf is
    its product.
    """
    _refuse_layouts(a, b)
    return _divide_through(leaf.ceil_div, a, b)


@operation
def elem_less(a: IntTuple, b: IntTuple) -> Any:
    """Return whether every leaf of `a` is below its partner in `b`: bool, or Sym when decided
    at run time.

    A leaf against a tuple is compared with its first leaf; a higher rank than that of `b` is never
    below.
    """
    _refuse_layouts(a, b)
    return _elem_less(a, b)


def _elem_less(a: IntTuple, b: IntTuple) -> Any:
    if type(a) is not tuple and type(b) is not tuple:
        return leaf.less(0 if a is None else a, 0 if b is None else b)
    left, right = as_modes(a), as_modes(b)
    if len(left) > len(right):
        return False
    result: Any = True
    for x, y in zip(left, right):
        result = leaf.both(result, _elem_less(x, y))
    return result


@operation
def equal(a: IntTuple, b: IntTuple) -> Any:
    """Return whether two tuples are equal: False when they nest differently, Sym when decided
    at run time.
    """
    _refuse_layouts(a, b)
    return _equal(a, b)


def _equal(a: IntTuple, b: IntTuple) -> Any:
    if type(a) is not tuple and type(b) is not tuple:
        return leaf.equal(a, b)
    if type(a) is not type(b) or len(a) != len(b):
        return False
    result: Any = True
    for x, y in zip(a, b):
        result = leaf.both(result, _equal(x, y))
    return result


def get_scalar(x: Any) -> Any:
    """Return a leaf unchanged (int or Sym); a tuple is refused."""
    if type(x) is tuple:
        raise OperandType("a tuple is not a scalar", "get_scalar", (x,))
    return x


def slice_tuple(x: IntTuple, coord: IntTuple) -> tuple:
    """Return the list of sub-trees of `x` where `coord` is None, collected in one flat tuple of
    modes.
    """
    if type(coord) is not tuple:
        return (x,) if coord is None else ()
    if type(x) is not tuple and len(coord) == 1:
        return slice_tuple(x, coord[0])
    if type(x) is not tuple or len(x) != len(coord):
        raise ProfileMismatch(f"coordinate {to_str(coord)} does not fit {to_str(x)}")
    return sum([slice_tuple(i, c) for i, c in zip(x, coord)], ())


def dice_tuple(x: IntTuple, coord: IntTuple) -> tuple:
    """Return the sub-trees of `x` where `coord` is not None, collected in one flat tuple of
    modes.
    """
    if type(coord) is not tuple:
        return () if coord is None else (x,)
    if type(x) is not tuple and len(coord) == 1:
        return dice_tuple(x, coord[0])
    if type(x) is not tuple or len(x) != len(coord):
        raise ProfileMismatch(f"coordinate {to_str(coord)} does not fit {to_str(x)}")
    return sum([dice_tuple(i, c) for i, c in zip(x, coord)], ())


def at_path(x: IntTuple, path: tuple) -> IntTuple:
    """Return the sub-tree at a path of mode numbers."""
    for p in path:
        if type(x) is not tuple or not 0 <= p < len(x):
            raise ModeOutOfRange(f"no mode {p} in {to_str(x)}")
        x = x[p]
    return x


def basis_tuple(value: Any, modes: tuple) -> IntTuple:
    """Return the coordinate tuple which a basis leaf stands for: 3E1E0 is (0,(3))."""
    for m in reversed(modes):
        value = (0,) * m + (value,)
    return value


def as_coordinate(x: IntTuple) -> IntTuple:
    """Return the coordinate tuple which a basis leaf stands for, or `x` itself."""
    return basis_tuple(x.value, x.modes) if type(x) is Basis else x


def coord_add(a: IntTuple, b: IntTuple) -> IntTuple:
    """Return the sum of two coordinates, where the shorter one is filled up with zeros.

    A basis leaf is the coordinate it stands for; added to 0 it stays a leaf.
    """
    if type(a) is not tuple and type(b) is not tuple:
        if type(a) is not Basis or type(b) is not Basis:
            return leaf.add(a, b)
    a, b = as_coordinate(a), as_coordinate(b)
    if type(a) is not tuple or type(b) is not tuple:
        if leaf.is_value(a, 0) or leaf.is_value(b, 0):
            return b if leaf.is_value(a, 0) else a
        raise BasisMismatch(f"the coordinates {to_str(a)} and {to_str(b)} have different profiles")
    n = min(len(a), len(b))
    return tuple([coord_add(x, y) for x, y in zip(a, b)]) + a[n:] + b[n:]


def total(values: Any) -> Any:
    """Return the sum of leaves."""
    return reduce(leaf.add, values, 0)
