"""Integer tuples of `fx`: shapes, strides, coordinates, whose leaves are Python ints, run-time integers, None or
`Basis`.

Everywhere an IntTuple is expected, ints, scalars and nested tuples or lists of them are accepted: `int_tuple`
converts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from flydsl import layout as la
from flydsl.diag import BasisBad, LeafNotInteger, ModeMissing, NotStaticLeaf, StaleValue
from flydsl.dialects.fly.types import type_of
from flydsl.dialects.values import dynamic_leaves, inner_text
from flydsl.expr.numeric.base import Numeric, NumericMeta
from flydsl.expr.numeric.base import raw as raw_scalar
from flydsl.expr.numeric.base import static as static_scalar
from flydsl.expr.numeric.base import wrap as wrap_scalar
from flydsl.expr.numeric.cast import from_python_value
from flydsl.expr.numeric.classes import Boolean, Index, Int32, Int64
from flydsl.expr.values import FlyValue, build, raw, shown, wrap
from flydsl.ir import current, emit1, ir
from flydsl.ir.trace import active

_new = object.__new__


class Basis:
    """`value` times the unit coordinate at path `modes` (outermost mode first): a stride whose index is a coordinate."""

    __slots__ = ("_path", "value")

    def __init__(self, value: int | Numeric, modes: int | Sequence[int]):
        path = (modes,) if type(modes) is int else tuple(modes)
        if not path or any(type(m) is not int or m < 0 for m in path):
            raise BasisBad(modes=path)
        self.value = value
        self._path = path

    @property
    def modes(self) -> list[int]:
        return list(self._path)

    def __mul__(self, other: int | Numeric) -> Basis:
        if isinstance(other, (int, Numeric)):
            return Basis(self.value * other, self._path)
        return NotImplemented

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Basis) and self._path == other._path and self.value == other.value

    def __hash__(self) -> int:
        return hash((Basis, self.value, self._path))

    def __str__(self) -> str:
        return str(self.value) + "".join(f"E{m}" for m in self._path)

    __repr__ = __str__


def E(*modes: Any) -> Basis | int:
    """Return the unit basis leaf at a path, given as arguments or as one list; `E()` is 1."""
    path = tuple(modes[0]) if len(modes) == 1 and isinstance(modes[0], (list, tuple)) else modes
    if any(type(m) is not int or m < 0 for m in path):
        raise LeafNotInteger(got=shown(path), subject="a mode of E")
    return Basis(1, path) if path else 1


class IntTuple(FlyValue, plains=(int, tuple, type(None), la.Sym, la.Basis)):
    """A nested tuple of integers that is known by its IR value or by `_leaves`, the raw values of its dynamic leaves.

    The other form is made on demand: `_made` is (insertion point, what was made there). In another block it is made anew,
    because this one may be over.
    """

    __slots__ = ("_leaves", "_made")

    def __init__(self, value: Any):
        if isinstance(value, ir.Value) and _is_integer(value):
            value = from_python_value(value)
        if not isinstance(value, (ir.Value, FlyValue)):
            value = int_tuple(value)
        if isinstance(value, IntTuple):
            self.plain, self._value, self._scope = value.plain, value._value, value._scope
            self._leaves = getattr(value, "_leaves", None)
        else:
            super().__init__(value)
            self._leaves = None

    @property
    def is_static(self) -> bool:
        """Whether every leaf is known while tracing."""
        return self._scope is None

    @property
    def rank(self) -> int:
        """Number of modes; a leaf has one."""
        return len(self.plain) if type(self.plain) is tuple else 1

    @property
    def depth(self) -> int:
        """Nesting depth; a leaf has 0."""
        return la.depth(self.plain)

    @property
    def is_leaf(self) -> bool:
        """Whether this is a single integer."""
        return type(self.plain) is not tuple

    @property
    def get_static_leaf_int(self) -> int:
        """The integer of a static leaf."""
        if type(self.plain) is not int:
            raise NotStaticLeaf(got=inner_text(self.plain))
        return self.plain

    def __len__(self) -> int:
        return self.rank

    def __getitem__(self, mode: Any) -> IntTuple:
        path = _path(mode)
        x = self.plain
        for m in path:
            rank = len(x) if type(x) is tuple else 1
            if not -rank <= m < rank:
                raise ModeMissing(index=m, rank=rank)
            x = x[m] if type(x) is tuple else x
        return self._sub(path, x)

    def _sub(self, path: tuple[int, ...], sub: Any) -> IntTuple:
        """Return the sub-tree `sub` at `path`: its leaves are a run of this tuple's leaves."""
        if self._scope is None:
            return wrap(sub)
        begin, x = 0, self.plain
        for m in path:
            if type(x) is tuple:
                m = m % len(x)
                begin += sum(len(dynamic_leaves(i)) for i in x[:m])
                x = x[m]
        leaves = self.leaf_values()
        return from_leaves(sub, leaves[begin : begin + len(dynamic_leaves(sub))])

    def __iter__(self) -> Iterator[IntTuple]:
        return iter([self[i] for i in range(self.rank)])

    def _raw(self) -> ir.Value:
        if self._scope is None or self._value is not None:
            return FlyValue._raw(self)
        return self._on_demand(_emit_tuple)

    def leaf_values(self) -> tuple[ir.Value, ...]:
        """Return the raw values of the dynamic leaves, in order."""
        if self._scope is None:
            return ()
        if self._scope is not current().scope:
            raise StaleValue(dtype="IntTuple")
        leaves = getattr(self, "_leaves", None)
        return self._on_demand(lambda x: tuple(get_leaf_values(x))) if leaves is None else leaves

    def _on_demand(self, make: Callable[[IntTuple], Any]) -> Any:
        trace = current()
        if self._scope is not trace.scope:
            raise StaleValue(dtype="IntTuple")
        made = getattr(self, "_made", None)
        if made is None or made[0] is not trace.ip:
            made = self._made = (trace.ip, make(self))
        return made[1]

    def to_py_value(self) -> Any:
        """Return the leaves as Python ints, run-time scalars, None and Basis, nested as the tuple."""
        return _to_python(self.plain, iter(self.leaf_values()))

    unpack = to_py_value

    def __bool__(self) -> bool:
        if type(self.plain) is tuple:
            return bool(self.plain)
        return bool(self.to_py_value())  # a run-time leaf is refused like a scalar

    def __index__(self) -> int:
        return self.get_static_leaf_int

    __int__ = __index__


def _emit_tuple(x: IntTuple) -> ir.Value:
    """Build `fly.make_int_tuple`: its 32-bit leaves come before its 64-bit ones."""
    trace = current()
    key = ("tuple", x.plain)
    found = trace.types.memo.get(key)
    if found is None:
        wide = [leaf.width == 64 for leaf in dynamic_leaves(x.plain)]
        order = sorted(range(len(wide)), key=wide.__getitem__) if any(wide) and not all(wide) else None
        attrs = segments(trace.types, (len(wide) - sum(wide), sum(wide)))
        found = trace.types.memo[key] = (type_of(x.plain, trace.context), attrs, order)
    type_, attrs, order = found
    leaves = x._leaves
    return emit1("fly.make_int_tuple", type_, leaves if order is None else [leaves[i] for i in order], attrs)


def segments(types: Any, sizes: tuple[int, ...]) -> dict:
    """Return the attributes of an op with several optional or repeated operands: how many each has."""
    key = ("segments", sizes)
    attrs = types.memo.get(key)
    if attrs is None:
        attrs = types.memo[key] = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get(list(sizes))}
    return attrs


def from_leaves(plain: Any, leaves: Sequence[ir.Value]) -> IntTuple:
    """Return the int tuple of `plain` with these values as its dynamic leaves; the op is built when it is needed."""
    x = _new(IntTuple)
    x.plain = plain
    x._value = None
    if leaves:
        x._leaves = tuple(leaves)
        x._scope = active.trace.scope
    else:
        x._leaves = ()
        x._scope = None
    return x


def int_tuple(x: Any) -> IntTuple:
    """Return `x` as an IntTuple: an int, scalar, None, Basis, raw integer, IntTuple, or nested sequences of these."""
    if x.__class__ is IntTuple:
        return x
    leaves: list = []
    plain = _plain(x, leaves)
    return from_leaves(plain, leaves)


def _plain(x: Any, leaves: list) -> Any:
    kind = x.__class__
    if kind is int or x is None:
        return x
    if kind is tuple or kind is list:
        return tuple([_plain(i, leaves) for i in x])
    if isinstance(x, Numeric):
        return _scalar(x, leaves)
    if kind is IntTuple:
        leaves.extend(x.leaf_values())
        return x.plain
    if kind is Basis:
        return la.Basis(_plain(x.value, leaves), x.modes)
    return _uncommon(x, leaves)


def _uncommon(x: Any, leaves: list) -> Any:
    if isinstance(x, (tuple, list)):
        return tuple([_plain(i, leaves) for i in x])
    if isinstance(x, int):
        return int(x)
    if isinstance(x, (la.Basis, la.Sym)):
        return x
    if hasattr(x, "__index__") and not hasattr(x, "__extract_to_ir_values__"):
        return int(x)
    if isinstance(x, ir.Value) and not _is_integer(x) or isinstance(x, (float, str, FlyValue)):
        raise LeafNotInteger(got=shown(x), subject="a leaf of an integer tuple")
    try:
        scalar = from_python_value(x)
    except (TypeError, ValueError):
        raise LeafNotInteger(got=shown(x), subject="a leaf of an integer tuple") from None
    return _scalar(scalar, leaves)


def _is_integer(value: ir.Value) -> bool:
    return isinstance(value.type, (ir.IntegerType, ir.IndexType))


def _scalar(x: Numeric, leaves: list) -> Any:
    if x.is_float:
        raise LeafNotInteger(got=type(x).__name__, subject="a leaf of an integer tuple")
    if x._scope is None:
        return int(x.value)
    if x.width < 32:
        x = x.to(Int32)
    elif x.__class__ is Index or x.width > 64:
        x = x.to(Int64)
    leaves.append(raw_scalar(x))
    return _SYM64 if x.width == 64 else _SYM32


_SYM32, _SYM64 = la.Sym(32), la.Sym(64)


def _to_python(plain: Any, leaves: Iterator[ir.Value]) -> Any:
    kind = plain.__class__
    if kind is tuple:
        return tuple([_to_python(p, leaves) for p in plain])
    if kind is la.Sym:
        return wrap_scalar(Int64 if plain.width == 64 else Int32, next(leaves))
    if kind is la.Basis:
        return Basis(_to_python(plain.value, leaves), plain.modes)
    return plain


def get_leaf_values(x: FlyValue) -> list[ir.Value]:
    """Return the dynamic leaves of any value as raw integers, one op each."""
    types = current().types
    source = raw(x)
    if x.__class__ is IntTuple and x.is_leaf and x.plain.__class__ is la.Sym:
        return [emit1("fly.get_scalar", types.i64 if x.plain.width == 64 else types.i32, (source,))]
    out = []
    for i, leaf in enumerate(dynamic_leaves(x.plain)):
        width = types.i64 if leaf.width == 64 else types.i32
        out.append(emit1("fly.get_leaf", width, (source,), _index_attr(types, i)))
    return out


def _index_attr(types: Any, i: int) -> dict:
    attrs = types.memo.get(("leaf", i))
    if attrs is None:
        attrs = types.memo["leaf", i] = {"index": ir.IntegerAttr.get(types.i32, i)}
    return attrs


def _path(mode: Any) -> tuple[int, ...]:
    if type(mode) is int:
        return (mode,)
    if isinstance(mode, (tuple, list)):
        return tuple([int(m) for m in mode])
    return (int(mode),)


# --- construction ------------------------------------------------------------------------------------------------


def make_int_tuple(elems: Any) -> IntTuple:
    """Return the int tuple of an int, scalar, None, Basis or nested sequence."""
    return int_tuple(elems)


def _variadic(args: tuple) -> IntTuple:
    return args[0] if len(args) == 1 and args[0].__class__ is IntTuple else int_tuple(args)


def make_shape(*shape: Any) -> IntTuple:
    """Return the tuple of the arguments; a single IntTuple is used as it is."""
    return _variadic(shape)


def make_stride(*stride: Any) -> IntTuple:
    """Return the tuple of the arguments; a single IntTuple is used as it is."""
    return _variadic(stride)


def make_coord(*coord: Any) -> IntTuple:
    """Return the tuple of the arguments, where None keeps a whole mode."""
    return _variadic(coord)


# --- inspection --------------------------------------------------------------------------------------------------


def get_scalar(x: Any) -> Any:
    """Return the integer of a leaf: a Python int, or a run-time scalar. Anything but an IntTuple is returned
    unchanged.
    """
    if x.__class__ is not IntTuple:
        return x
    if type(x.plain) is tuple:
        raise NotStaticLeaf(got=inner_text(x.plain))
    return x.to_py_value()


def get_leaves(input: Any, dynamic_only: bool = False) -> tuple:
    """Return the leaves left to right as Python values, or only those known at run time."""
    out: list = []
    _flatten(int_tuple(input).to_py_value(), out)
    return tuple([x for x in out if isinstance(x, Numeric)] if dynamic_only else out)


def _flatten(x: Any, out: list) -> None:
    if type(x) is tuple:
        for i in x:
            _flatten(i, out)
    else:
        out.append(x)


def has_none(coord: Any) -> bool:
    """Return whether any leaf is None."""
    return la.has_none(int_tuple(coord).plain)


# --- arithmetic --------------------------------------------------------------------------------------------------


def int_tuple_add(lhs: Any, rhs: Any) -> IntTuple:
    """Return lhs + rhs leaf by leaf; a shorter right side serves the first modes."""
    return build("fly.int_tuple_add", (int_tuple(lhs), int_tuple(rhs)))


def int_tuple_sub(lhs: Any, rhs: Any) -> IntTuple:
    """Return lhs - rhs leaf by leaf."""
    return build("fly.int_tuple_sub", (int_tuple(lhs), int_tuple(rhs)))


def int_tuple_mul(lhs: Any, rhs: Any) -> IntTuple:
    """Return lhs * rhs leaf by leaf; unlike Python's `*` on scalars it remembers the divisor."""
    return build("fly.int_tuple_mul", (int_tuple(lhs), int_tuple(rhs)))


def int_tuple_div(lhs: Any, rhs: Any) -> IntTuple:
    """Return lhs / rhs leaf by leaf, rounded toward zero."""
    return build("fly.int_tuple_div", (int_tuple(lhs), int_tuple(rhs)))


def int_tuple_mod(lhs: Any, rhs: Any) -> IntTuple:
    """Return the remainder of lhs / rhs leaf by leaf."""
    return build("fly.int_tuple_mod", (int_tuple(lhs), int_tuple(rhs)))


def int_tuple_product(int_tuple_: Any) -> IntTuple:
    """Return the product of all leaves."""
    return build("fly.int_tuple_product", (int_tuple(int_tuple_),))


def int_tuple_product_each(int_tuple_: Any) -> IntTuple:
    """Return the product of each top-level mode."""
    return build("fly.int_tuple_product_each", (int_tuple(int_tuple_),))


def int_tuple_product_like(lhs: Any, rhs: Any) -> IntTuple:
    """Return the products of `lhs` grouped to the profile of `rhs`."""
    return build("fly.int_tuple_product_like", (int_tuple(lhs), int_tuple(rhs)))


def shape_div(lhs: Any, rhs: Any) -> IntTuple:
    """Return lhs / rhs, where static leaves must divide one another; a scalar rhs is used up mode by mode."""
    return build("fly.shape_div", (int_tuple(lhs), int_tuple(rhs)))


def ceil_div(lhs: Any, rhs: Any) -> IntTuple:
    """Return lhs / rhs rounded up, mode by mode."""
    return build("fly.ceil_div", (int_tuple(lhs), int_tuple(rhs)))


def elem_less(lhs: Any, rhs: Any) -> Boolean:
    """Return whether every leaf of `lhs` is below its partner in `rhs`: the usual bounds test."""
    return _compare("fly.elem_less", la.elem_less, int_tuple(lhs), int_tuple(rhs))


def equal(lhs: Any, rhs: Any) -> Boolean:
    """Return whether two tuples are equal; tuples that nest differently are not."""
    return _compare("fly.equal", la.equal, int_tuple(lhs), int_tuple(rhs))


def _compare(op: str, law: Any, a: IntTuple, b: IntTuple) -> Boolean:
    result = law(a.plain, b.plain)
    if isinstance(result, bool):
        return static_scalar(Boolean, int(result))
    return wrap_scalar(Boolean, emit1(op, current().types.i1, (raw(a), raw(b))))


def as_int(x: Any, what: str) -> int:
    """Return a static integer given as int, static scalar or static leaf; `what` names it in the refusal."""
    if type(x) is int:
        return x
    if x.__class__ is IntTuple:
        return x.get_static_leaf_int
    if isinstance(x, Numeric) and not x.is_static() or isinstance(x, (float, str)) or not hasattr(x, "__index__"):
        raise LeafNotInteger(got=shown(x), subject=what)
    return int(x)


def is_numeric_class(x: Any) -> bool:
    """Return whether `x` is a scalar class such as `fx.Float16`."""
    return isinstance(x, NumericMeta)
