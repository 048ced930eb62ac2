"""Reductions of vectors: to one scalar, or over some modes."""

import enum
import itertools
from typing import Any

from flydsl.diag import OperandKind, UnknownReduction, VectorConstruction
from flydsl.expr.fastmath import fastmath as fastmath_scope
from flydsl.expr.fastmath import float_attrs
from flydsl.expr.numeric import Numeric, cast, from_python_value, raw, wrap
from flydsl.expr.vector.core import Vector, build, raw_vector
from flydsl.expr.vector.shape import flat, row_major_strides
from flydsl.ir import current, ir


class ReductionOp(enum.Enum):
    """How a reduction combines two elements."""

    ADD = "add"
    MUL = "mul"
    MAX = "max"
    MIN = "min"


def reduce(v: Vector, op: Any, init_val: Any, profile: Any, flags: Any) -> Any:
    """`v.reduce(...)`."""
    kind = _kind(op)
    if profile is not None and not isinstance(profile, int) and None in _flat_profile(v, profile):
        with fastmath_scope(flags) if flags is not None else _no_scope():
            return _over_modes(v, kind, init_val, _flat_profile(v, profile), profile)
    trace = current()
    attrs = {"kind": _kind_attr(trace, _combining(kind, v.dtype)), **(float_attrs(trace, flags) or {})}
    operands = [raw_vector(v)]
    if init_val is not None:
        operands.append(raw(cast(from_python_value(init_val), v.dtype)))
    return wrap(v.dtype, build("vector.reduction", v.dtype, 0, tuple(operands), attrs))


class _no_scope:
    def __enter__(self) -> None: ...

    def __exit__(self, *exc) -> None: ...


def _kind(op: Any) -> str:
    name = op if isinstance(op, str) else getattr(op, "name", None)
    if not isinstance(name, str):
        raise OperandKind(
            problem=f"a reduction is named by a string or ReductionOp, got {op!r}",
            reason="the kind decides how two elements are combined",
            advice='write v.reduce("add") or v.reduce(fx.ReductionOp.ADD)',
        )
    kind = _KINDS.get(name.lower())
    if kind is None:
        raise UnknownReduction(kind=repr(op))
    return kind


_KINDS = {"add": "add", "mul": "mul"}
_KINDS |= dict.fromkeys(("max", "maxsi", "maxui", "maxnumf", "maximumf"), "max")
_KINDS |= dict.fromkeys(("min", "minsi", "minui", "minnumf", "minimumf"), "min")


def _combining(kind: str, dtype: type[Numeric]) -> str:
    """Return MLIR's name of the combination."""
    if kind in ("add", "mul"):
        return kind
    if dtype.is_float:
        return "maxnumf" if kind == "max" else "minimumf"
    return kind + ("si" if dtype.signed and dtype.width > 1 else "ui")


def _kind_attr(trace, name: str) -> ir.Attribute:
    memo = trace.types.memo
    attr = memo.get(("reduction", name))
    if attr is None:
        attr = memo["reduction", name] = ir.Attribute.parse(f"#vector.kind<{name}>", trace.context)
    return attr


def _flat_profile(v: Vector, profile: Any) -> list:
    """Return one mark per leaf of the shape; a mark of a nested mode covers all its leaves."""

    def walk(p: Any, s: Any) -> list:
        if not isinstance(p, (tuple, list)):
            return [p] * len(flat(s))
        if not isinstance(s, tuple) or len(p) != len(s):
            problem = f"reduction_profile {profile} does not fit shape {v.shape}"
            raise VectorConstruction(
                problem=problem, advice="give one mark per mode: None keeps it, an integer reduces it"
            )
        return [mark for pp, ss in zip(p, s, strict=True) for mark in walk(pp, ss)]

    return walk(profile, v.shape)


def _over_modes(v: Vector, kind: str, init_val: Any, marks: list, profile: Any) -> Any:
    """Return the kept modes: the slices over the reduced modes are combined one after another."""
    from flydsl.expr.arith import max as largest
    from flydsl.expr.arith import maxnumf
    from flydsl.expr.arith import min as smallest

    combine = {
        "add": lambda a, b: a + b,
        "mul": lambda a, b: a * b,
        "max": maxnumf if v.dtype.is_float else largest,
        "min": smallest,
    }[kind]
    result = None
    for part in _slices(v, marks):
        result = part if result is None else combine(result, part)
    if init_val is not None:
        result = combine(result, Vector.filled(result.shape, init_val, v.dtype))
    return result.reshape(_kept_shape(profile, v.shape))


def _slices(v: Vector, marks: list):
    extents = flat(v.shape)
    strides = row_major_strides(extents)
    kept = [i for i, mark in enumerate(marks) if mark is None]
    reduced = [i for i, mark in enumerate(marks) if mark is not None]

    def offsets(modes: list[int]) -> list[int]:
        ranges = [range(extents[i]) for i in modes]
        return [sum(c * strides[i] for c, i in zip(cs, modes, strict=True)) for cs in itertools.product(*ranges)]

    inner = offsets(kept)
    return [v.shuffle(v, [base + o for o in inner]) for base in offsets(reduced)]


def _kept_shape(profile: Any, shape: Any) -> tuple:
    kept = []
    for p, s in zip(profile, shape, strict=True):
        if p is None:
            kept.append(s)
        elif isinstance(p, (tuple, list)):
            inner = _kept_shape(p, s)
            if inner:
                kept.append(inner)
    return tuple(kept)
