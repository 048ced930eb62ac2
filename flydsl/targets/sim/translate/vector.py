"""Rules of `vector` and of the LLVM vector and struct ops: mostly bookkeeping of pieces, without any Python text."""

from __future__ import annotations

import math
from typing import Any

from flydsl.targets.sim.translate.arith import BINARY, BOOL_FORMS, zero_value
from flydsl.targets.sim.translate.function import FunctionTranslator
from flydsl.targets.sim.translate.rules import attribute, rule
from flydsl.targets.sim.translate.values import Piece, Scalar, Struct, Vector

DYNAMIC = -(1 << 63)


def ints(attr: Any) -> list[int]:
    """Return the integers of an array attribute."""
    return [int(getattr(v, "value", v)) for v in attr]


def dims_of(value: Any) -> list[int]:
    """Return the dimensions of a vector-typed SSA value."""
    text = str(value.type)
    return [int(d) for d in text[7:-1].split("x")[:-1]] if text.startswith("vector<") else []


def flat_offset(position: list[int], dims: list[int]) -> int:
    """Return the row-major element offset of a static position with trailing dimensions left open."""
    offset, stride = 0, 1
    for i in reversed(range(len(dims))):
        if i < len(position):
            offset += position[i] * stride
        stride *= dims[i]
    return offset


def as_pieces(v: Scalar | Vector) -> list[Piece]:
    """Return the pieces of a vector, or of a scalar as a vector of one."""
    return v.pieces if isinstance(v, Vector) else [Piece(v.text, 0, 1, 0, v.const)]


@rule("vector.extract")
def extract(t: FunctionTranslator, op: Any) -> None:
    src = t.get(op.operands[0])
    position = ints(attribute(op, "static_position"))
    result_type = t.type_of(op.results[0])
    if DYNAMIC in position:
        if len(position) > 1:
            raise t.refuse("a run-time position in a multi-dimensional vector", "use 1-D vectors")
        t.set_scalar(op.results[0], f"h_pick(M, {t.site()}, {t.array(src)}, {t.scalar(op.operands[1])}, {t.mask})")
        return
    offset = flat_offset(position, dims_of(op.operands[0]))
    if isinstance(src, Scalar):
        t.define(op.results[0], src)
    elif result_type.is_vector:
        t.set_pieces(op.results[0], src.slice(offset, result_type.n))
    else:
        t.define(op.results[0], t.element(src, offset))


@rule("vector.insert")
def insert(t: FunctionTranslator, op: Any) -> None:
    value, dest = t.get(op.operands[0]), t.get(op.operands[1])
    position = ints(attribute(op, "static_position"))
    if DYNAMIC in position:
        if len(position) > 1:
            raise t.refuse("a run-time position in a multi-dimensional vector", "use 1-D vectors")
        t.set_array(op.results[0], f"h_place(M, {t.site()}, {t.array(dest)}, {t.scalar(op.operands[2])}, {value.text}, {t.mask})")
        return
    insert_at(t, op.results[0], as_pieces(value), dest, flat_offset(position, dims_of(op.results[0])))


def insert_at(t: FunctionTranslator, result: Any, pieces: list[Piece], dest: Vector, offset: int) -> None:
    """Bind `dest` with `pieces` over its elements from `offset`."""
    length = sum(p.length for p in pieces)
    t.set_pieces(result, dest.slice(0, offset) + pieces + dest.slice(offset + length, dest.n - offset - length))


@rule("llvm.extractelement")
def extractelement(t: FunctionTranslator, op: Any) -> None:
    index = t.const_of(op.operands[1])
    src = t.get(op.operands[0])
    if index is not None:
        t.define(op.results[0], t.element(src, int(index)))
    else:
        t.set_scalar(op.results[0], f"h_pick(M, {t.site()}, {t.array(src)}, {t.scalar(op.operands[1])}, {t.mask})")


@rule("llvm.insertelement")
def insertelement(t: FunctionTranslator, op: Any) -> None:
    dest, value, index = t.get(op.operands[0]), t.get(op.operands[1]), t.const_of(op.operands[2])
    if index is not None:
        insert_at(t, op.results[0], as_pieces(value), dest, int(index))
    else:
        t.set_array(op.results[0], f"h_place(M, {t.site()}, {t.array(dest)}, {t.scalar(op.operands[2])}, {value.text}, {t.mask})")


@rule("vector.from_elements")
def from_elements(t: FunctionTranslator, op: Any) -> None:
    t.set_pieces(op.results[0], [p for v in op.operands for p in as_pieces(t.get(v))])


@rule("vector.to_elements")
def to_elements(t: FunctionTranslator, op: Any) -> None:
    src = t.get(op.operands[0])
    for i, result in enumerate(op.results):
        t.define(result, t.element(src, i))


@rule("vector.broadcast", "vector.splat")
def broadcast(t: FunctionTranslator, op: Any) -> None:
    src = t.get(op.operands[0])
    n = t.type_of(op.results[0]).n
    if isinstance(src, Scalar):
        t.set_pieces(op.results[0], [Piece(src.text, 0, n, 0, src.const)])
        return
    dims = dims_of(op.operands[0])
    if src.n == 1:
        e = t.element(src, 0)
        t.set_pieces(op.results[0], [Piece(e.text, 0, n, 0, e.const)])
    elif dims == dims_of(op.results[0])[-len(dims) :]:
        t.set_pieces(op.results[0], src.pieces * (n // src.n))
    else:
        raise t.refuse("stretching inner dimensions", "broadcast leading dimensions only")


@rule("vector.shuffle", "llvm.shufflevector")
def shuffle(t: FunctionTranslator, op: Any) -> None:
    a, b = t.get(op.operands[0]), t.get(op.operands[1])
    zero = as_pieces(zero_value(t, a.type.scalar()))[0]
    pieces: list[Piece] = []
    for i in ints(attribute(op, "mask")):
        side, k = (a, i) if i < a.n else (b, i - a.n)
        pieces.extend([zero] if i < 0 else side.slice(k, 1))
    t.set_pieces(op.results[0], pieces)
    result = t.get(op.results[0])
    if (
        len(result.pieces) > 2
        and all(p.length == 1 for p in result.pieces)
        and not any(p.is_splat for p in result.pieces)
    ):
        gather_shuffle(t, op, a, b)


def gather_shuffle(t: FunctionTranslator, op: Any, a: Vector, b: Vector) -> None:
    """Permute by one `take` where slices would be single elements."""
    mask = ints(attribute(op, "mask"))
    if all(i < a.n for i in mask):
        source = t.array(a)
    elif all(i >= a.n for i in mask):
        source, mask = t.array(b), [i - a.n for i in mask]
    else:
        return
    t.set_array(op.results[0], f"h_shuffle_elems({source}, {mask})")


@rule("vector.extract_strided_slice")
def extract_strided_slice(t: FunctionTranslator, op: Any) -> None:
    dims = dims_of(op.operands[0])
    offsets, sizes, strides = (ints(attribute(op, n)) for n in ("offsets", "sizes", "strides"))
    inner = math.prod(dims[len(offsets) :])
    starts = [0]
    for extent, offset, size, stride in zip(dims, offsets, sizes, strides):
        starts = [s * extent + offset + i * stride for s in starts for i in range(size)]
    src = t.get(op.operands[0])
    t.set_pieces(op.results[0], [p for start, length in _runs(starts, inner) for p in src.slice(start, length)])


def _runs(starts: list[int], inner: int) -> list[tuple[int, int]]:
    """Return (offset, length) in elements of the blocks of `inner` elements, adjacent ones joined."""
    runs: list[tuple[int, int]] = []
    for start in starts:
        offset = start * inner
        if runs and sum(runs[-1]) == offset:
            runs[-1] = (runs[-1][0], runs[-1][1] + inner)
        else:
            runs.append((offset, inner))
    return runs


@rule("vector.insert_strided_slice")
def insert_strided_slice(t: FunctionTranslator, op: Any) -> None:
    if len(dims_of(op.results[0])) > 1:
        raise t.refuse("into a multi-dimensional vector", "use 1-D vectors")
    (off,), (step,) = (ints(attribute(op, n)) for n in ("offsets", "strides"))
    if step != 1:
        raise t.refuse("with a stride", "insert elements one by one")
    insert_at(t, op.results[0], t.get(op.operands[0]).pieces, t.get(op.operands[1]), off)


@rule("vector.shape_cast")
def shape_cast(t: FunctionTranslator, op: Any) -> None:
    t.set_pieces(op.results[0], as_pieces(t.get(op.operands[0])))


@rule("vector.step", "llvm.intr.stepvector")
def step(t: FunctionTranslator, op: Any) -> None:
    type_ = t.type_of(op.results[0])
    t.set_array(op.results[0], f"h_step({type_.n}, T_{type_.elem})")


@rule("vector.fma")
def fma(t: FunctionTranslator, op: Any) -> None:
    t.elementwise(op.results[0], list(op.operands), "h_fma({0}, {1}, {2})".format)


@rule("vector.interleave", "vector.deinterleave")
def interleave(t: FunctionTranslator, op: Any) -> None:
    if op.name == "vector.interleave":
        a, b = t.get(op.operands[0]), t.get(op.operands[1])
        t.set_pieces(op.results[0], [p for i in range(a.n) for s in (a, b) for p in s.slice(i, 1)])
        return
    src = t.get(op.operands[0])
    for side, result in enumerate(op.results):
        t.set_pieces(result, [p for i in range(side, src.n, 2) for p in src.slice(i, 1)])


REDUCE = {
    "add": "addi", "mul": "muli", "minsi": "minsi", "minui": "minui", "maxsi": "maxsi", "maxui": "maxui", "and":
    "andi", "or": "ori", "xor": "xori", "minnumf": "minnumf", "maxnumf": "maxnumf", "minimumf": "minimumf",
    "maximumf": "maximumf",
}  # fmt: skip


LLVM_REDUCE = {
    "add": "add", "mul": "mul", "and": "and", "or": "or", "xor": "xor", "smax": "maxsi", "smin": "minsi",
    "umax": "maxui",
    "umin": "minui", "fadd": "add", "fmul": "mul", "fmax": "maxnumf", "fmin": "minnumf", "fmaximum": "maximumf",
    "fminimum": "minimumf",
}  # fmt: skip


@rule("vector.reduction")
def reduction(t: FunctionTranslator, op: Any) -> None:
    kind = str(attribute(op, "kind")).split("<")[-1].strip("> ")
    src = t.get(op.operands[0])
    flags = str(attribute(op, "fastmath", "<none>")).split("<")[-1].strip("> ").split(",")
    reassoc = "reassoc" in flags or "fast" in flags
    start = t.get(op.operands[1]).text if len(op.operands) > 1 else None
    reduce_vector(t, op.results[0], kind, src, start, reassoc)


def reduce_vector(t: FunctionTranslator, result: Any, kind: str, src: Vector, start: str | None, reassoc: bool) -> None:
    """Combine the elements from first to last (float sums in that order; halves are folded where reordering is
    allowed)."""
    name = REDUCE[kind]
    if src.type.is_float and name in ("addi", "muli"):
        name = {"addi": "addf", "muli": "mulf"}[name]
    form = BOOL_FORMS.get(name, BINARY[name]) if src.type.elem == "i1" else BINARY[name]
    ordered = name in ("addf", "mulf") and not reassoc
    if not ordered and src.n >= 4 and src.n & (src.n - 1) == 0:
        total = fold_halves(t, src, form)
    else:
        total = t.element(src, 0).text
        if start is not None and ordered:
            total, start = t.let(form.format(start, total)), None
        for i in range(1, src.n):
            total = t.let(form.format(total, t.element(src, i).text))
    t.set_scalar(result, total if start is None else form.format(start, total))


def fold_halves(t: FunctionTranslator, src: Vector, form: str) -> str:
    """Return the name of the reduction by repeated halving."""
    text, n = t.array(src), src.n
    while n > 4:
        n //= 2
        text = t.let(form.format(f"{text}[..., :{n}]", f"{text}[..., {n}:]"))
    parts = [f"{text}[..., {i}]" for i in range(n)]
    while len(parts) > 1:
        parts = [form.format(a, b) for a, b in zip(parts[::2], parts[1::2])]
    return t.let(parts[0])


@rule("vector.transpose")
def transpose(t: FunctionTranslator, op: Any) -> None:
    """Elements move to their place in the transposed shape."""
    src, dims, order = t.get(op.operands[0]), dims_of(op.operands[0]), ints(attribute(op, "permutation"))
    strides = [1] * len(dims)
    for i in reversed(range(len(dims) - 1)):
        strides[i] = strides[i + 1] * dims[i + 1]
    positions = [0]
    for axis in order:
        positions = [p + i * strides[axis] for p in positions for i in range(dims[axis])]
    t.set_pieces(op.results[0], [p for i in positions for p in src.slice(i, 1)])


@rule(*(f"llvm.intr.vector.reduce.{k}" for k in LLVM_REDUCE))
def llvm_reduction(t: FunctionTranslator, op: Any) -> None:
    kind = LLVM_REDUCE[op.name.rpartition(".")[2]]
    operands = list(op.operands)
    start = t.get(operands[0]).text if len(operands) > 1 else None
    flags = str(attribute(op, "fastmathFlags", "<none>")).split("<")[-1].strip("> ").split(",")
    reduce_vector(t, op.results[0], kind, t.get(operands[-1]), start, "reassoc" in flags or "fast" in flags)


# --- LLVM structs ----------------------------------------------------------------------------------------------------


@rule("llvm.extractvalue")
def extractvalue(t: FunctionTranslator, op: Any) -> None:
    value = t.get(op.operands[0])
    for i in ints(attribute(op, "position")):
        value = value.fields[i]
    t.define(op.results[0], value)


@rule("llvm.insertvalue")
def insertvalue(t: FunctionTranslator, op: Any) -> None:
    t.define(op.results[0], inserted(t.get(op.operands[0]), t.get(op.operands[1]), ints(attribute(op, "position"))))


def inserted(container: Struct, value: Any, position: list[int]) -> Struct:
    """Return a copy of `container` with the field at `position` replaced."""
    fields = list(container.fields)
    first, *rest = position
    fields[first] = inserted(fields[first], value, rest) if rest else value
    return Struct(container.type, fields)
