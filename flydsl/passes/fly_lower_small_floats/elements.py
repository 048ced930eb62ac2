"""How small elements lie in integers, and the vector ops that reorder them.

A vector of N elements of b bits is N*b/8 bytes (b = 8: one each); `codes` takes it apart into one i8 per element,
`from_codes` puts it together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from flydsl.diag import PassFailed
from flydsl.ir import Types, ir
from flydsl.ir.elements import constant_elements
from flydsl.ir.expression import Builder
from flydsl.layout.view import element_bits
from flydsl.passes.rewriting import registrar

SMALL = ("f8E", "f6E", "f4E")  # not f64


class Small(NamedTuple):
    """A small element type, or a vector of `count` of them."""

    element: str
    count: int | None

    @property
    def bits(self) -> int:
        """Width of one element."""
        return element_bits(self.element)

    def integers(self, types: Types) -> ir.Type:
        """Return the integer type that holds it."""
        if self.count is None:
            return types.i8
        total = self.count * self.bits
        if total % 8:
            problem = f"a vector of {self.count} {self.element} does not fill whole bytes"
            raise PassFailed(pass_name="fly-lower-small-floats", problem=problem)
        return types.vector(total // 8, types.i8)


def small_of(type_: ir.Type) -> Small | None:
    """Return what a type is made of, or None when it holds no small elements."""
    if isinstance(type_, ir.VectorType):
        vector = ir.VectorType(type_)
        name = str(vector.element_type)
        if not name.startswith(SMALL) and name != "i4":
            return None
        count = 1
        for extent in vector.shape:
            count *= extent
        return Small(name, count)
    if isinstance(type_, ir.FloatType):
        name = str(type_)
        return Small(name, None) if name.startswith(SMALL) else None
    return Small("i4", None) if str(type_) == "i4" else None


def like(type_: ir.Type, scalar: ir.Type) -> ir.Type:
    """Return `scalar`, or a vector of as many as `type_` has."""
    if not isinstance(type_, ir.VectorType):
        return scalar
    return ir.VectorType.get(ir.VectorType(type_).shape, scalar, loc=ir.Location.unknown(scalar.context))


def element_width(type_: ir.Type) -> int:
    """Return the bits of one element."""
    scalar = ir.VectorType(type_).element_type if isinstance(type_, ir.VectorType) else type_
    return element_bits(str(scalar))


# Packing


def codes(b: Builder, v: ir.Value, small: Small) -> ir.Value:
    """Return one i8 per element."""
    if small.count is None or small.bits == 8:
        return v
    x = b.wrap(v)
    if small.bits == 4:
        return _interleave(b, [(x & 15).value, x.shr_unsigned(4).value])
    b0, b1, b2 = (b.wrap(_every(b, v, i, 3)) for i in range(3))
    parts = [
        b0 & 63,
        b0.shr_unsigned(6) | ((b1 & 15) << 2),
        b1.shr_unsigned(4) | ((b2 & 3) << 4),
        b2.shr_unsigned(2),
    ]
    return _interleave(b, [p.value for p in parts])


def from_codes(b: Builder, v: ir.Value, small: Small) -> ir.Value:
    """Return the packed form of one i8 per element."""
    if small.count is None or small.bits == 8:
        return v
    if small.bits == 4:
        low, high = (b.wrap(_every(b, v, i, 2)) for i in range(2))
        return ((low & 15) | (high << 4)).value
    c0, c1, c2, c3 = (b.wrap(_every(b, v, i, 4)) & 63 for i in range(4))
    parts = [c0 | (c1 << 6), c1.shr_unsigned(2) | (c2 << 4), c2.shr_unsigned(4) | (c3 << 2)]
    return _interleave(b, [p.value for p in parts])


def shuffle(b: Builder, first: ir.Value, second: ir.Value, mask: list[int]) -> ir.Value:
    """Return `vector.shuffle`."""
    scalar = ir.VectorType(first.type).element_type
    kind = ir.VectorType.get([len(mask)], scalar, loc=ir.Location.unknown(b.context))
    return b.emit("vector.shuffle", kind, [first, second], {"mask": ir.DenseI64ArrayAttr.get(mask, b.context)})


def _every(b: Builder, v: ir.Value, start: int, step: int) -> ir.Value:
    return shuffle(b, v, v, list(range(start, ir.VectorType(v.type).shape[0], step)))


def _interleave(b: Builder, parts: list[ir.Value]) -> ir.Value:
    """Return element 0 of every part, then element 1 of every part, and so on."""
    n = ir.VectorType(parts[0].type).shape[0]
    whole = parts[0]
    for part in parts[1:]:
        have = ir.VectorType(whole.type).shape[0]
        padded = part
        if have != n:
            padded = shuffle(b, part, part, [min(i, n - 1) for i in range(have)])
        whole = shuffle(b, whole, padded, [*range(have), *(have + i for i in range(n))])
    mask = [part * n + i for i in range(n) for part in range(len(parts))]
    return shuffle(b, whole, whole, mask)


# Constants


def constant(op: ir.Operation, small: Small, types: Types) -> None:
    """Replace the value of a constant by its codes."""
    from flydsl.passes.fly_lower_small_floats.formats import code_of

    attr = op.attributes["value"]
    kind = op.result.type

    def code(value: float) -> int:
        return int(value) & 15 if small.element == "i4" else code_of(value, small.element)

    if small.count is None:
        op.attributes["value"] = ir.IntegerAttr.get(types.i8, _signed(code(attr.value)))
        return
    data = sum(code(value) << small.bits * i for i, value in enumerate(constant_elements(attr)))
    bytes_ = data.to_bytes(ir.VectorType(kind).shape[0], "little")
    if len(set(bytes_)) == 1:
        op.attributes["value"] = ir.DenseElementsAttr.get_splat(kind, ir.IntegerAttr.get(types.i8, _signed(bytes_[0])))
        return
    op.attributes["value"] = ir.DenseElementsAttr.get([ir.IntegerAttr.get(types.i8, _signed(byte)) for byte in bytes_], kind)


def _signed(byte: int) -> int:
    return byte - 256 if byte > 127 else byte


# Ops on vectors of elements narrower than a byte

Reorder = Callable[[ir.Operation, list, list, Types], None]
RULES: dict[str, Reorder] = {}
_reorders = registrar(RULES)


@_reorders("vector.extract_strided_slice", "vector.insert_strided_slice")
def _slices(op: ir.Operation, operands: list, results: list, types: Types) -> None:
    """Slices of whole bytes stay slices; others go through codes."""
    small = results[0]
    if small.bits == 8:
        return
    names = [n for n in ("offsets", "sizes") if n in op.attributes]
    numbers = {n: [ir.IntegerAttr(a).value * small.bits for a in ir.ArrayAttr(op.attributes[n])] for n in names}
    part = operands[0]
    if all(v % 8 == 0 for values in numbers.values() for v in values) and part.count * part.bits % 8 == 0:
        for n, values in numbers.items():
            op.attributes[n] = ir.ArrayAttr.get([ir.IntegerAttr.get(types.i64, v // 8) for v in values], op.context)
        return
    _on_codes(op, operands, results, types)


@_reorders(
    "vector.shuffle",
    "vector.extract",
    "vector.insert",
    "vector.from_elements",
    "vector.to_elements",
    "vector.broadcast",
)
def _on_codes(op: ir.Operation, operands: list, results: list, types: Types) -> None:
    """Take the operands apart, do the op on one i8 per element, put the results together."""
    vectors = [s for s in (*operands, *results) if s is not None and s.count is not None]
    if all(s.bits == 8 for s in vectors):
        return
    b = Builder(op)
    values = [v if s is None else codes(b, v, s) for v, s in zip(op.operands, operands, strict=True)]
    kinds = [types.i8 if s is None or s.count is None else types.vector(s.count, types.i8) for s in results]
    attributes = {name: op.attributes[name] for name in op.attributes}
    new = ir.Operation.create(op.name, kinds, values, attributes, None, 0, op.location, ir.InsertionPoint(op))
    for old, result, s in zip(op.results, new.results, results, strict=True):
        old.replace_all_uses_with(result if s is None else from_codes(b, result, s))
    op.erase()
