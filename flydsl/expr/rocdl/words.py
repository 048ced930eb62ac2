"""Descriptor words at run time: leaves of `flydsl.layout` whose payloads are SSA integers, and vectors made of them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from flydsl.expr.numeric.base import Numeric
from flydsl.expr.rocdl.values import i32, i64, operand
from flydsl.ir import constant, current, emit1, ir
from flydsl.layout.leaf import Sym, use_builder

_ARITH = {
    "add": "arith.addi", "sub": "arith.subi", "mul": "arith.muli", "div": "arith.divui", "mod": "arith.remui",
    "min": "arith.minsi", "max": "arith.maxsi", "and": "arith.andi", "or": "arith.ori", "xor": "arith.xori",
    "shl": "arith.shli", "shr": "arith.shrui",
}  # fmt: skip


class WordBuilder:
    """Makes payloads with `arith` ops; quantities are not negative, so that division and shifts are unsigned."""

    def binary(self, op: str, lhs: Any, rhs: Any, width: int) -> ir.Value:
        """Return `lhs op rhs` in `width` bits."""
        return emit1(_ARITH[op], integer_type(width), (sized(lhs, width), sized(rhs, width)))


@contextmanager
def words() -> Iterator[None]:
    """Compute leaves with SSA payloads inside the block."""
    with use_builder(WordBuilder()):
        yield


def integer_type(width: int) -> ir.Type:
    """Return i32 or i64."""
    types = current().types
    return types.i64 if width == 64 else types.i32


def sized(x: Any, width: int) -> ir.Value:
    """Return a payload or Python int in `width` bits."""
    type_ = integer_type(width)
    if isinstance(x, int):
        return constant(type_, x)
    if x.type == type_:
        return x
    return emit1("arith.extui" if width == 64 else "arith.trunci", type_, (x,))


def leaf(x: Any, width: int = 32) -> int | Sym:
    """Return a number as it is, a run-time integer as a leaf of `width` bits."""
    if isinstance(x, Numeric) and x.is_static():
        x = int(x.value)
    if isinstance(x, (int, Sym)):
        return x
    return Sym(width, 1, (i64 if width == 64 else i32)(x))


def word(x: int | Sym) -> ir.Value:
    """Return a leaf as an i32, cut to its low bits."""
    return sized(x.value if isinstance(x, Sym) else x, 32)


def vector_of(group: Sequence[int | Sym]) -> ir.Value:
    """Return a vector of i32 words; one constant where all are known."""
    types = current().types
    type_ = types.vector(len(group), types.i32)
    if all(isinstance(w, int) for w in group):
        signed = [((w & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000 for w in group]
        attr = ir.DenseElementsAttr.get([ir.IntegerAttr.get(types.i32, w) for w in signed], type_)
        return emit1("arith.constant", type_, (), {"value": attr})
    return emit1("vector.from_elements", type_, tuple(word(w) for w in group))


def replaced(vector: Any, position: int, value: Any) -> ir.Value:
    """Return `vector` with one word replaced."""
    raw = operand(vector)
    return emit1("llvm.insertelement", raw.type, (raw, i32(value), constant(current().types.i32, position)))


def word_of(vector: Any, position: int) -> ir.Value:
    """Return one word of a vector."""
    types = current().types
    return emit1("llvm.extractelement", types.i32, (operand(vector), constant(types.i32, position)))
