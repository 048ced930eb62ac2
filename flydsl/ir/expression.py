"""Building upstream ops in front of an op: an expression value with Python's operators, for scalars and vectors alike.

Used by rewrites of upstream ops in passes and targets. Constants are splat to the shape of the other operand.
"""

from __future__ import annotations

import struct

from flydsl.ir.bindings import ir

_CMPF = {"oeq": 1, "ogt": 2, "oge": 3, "olt": 4, "ole": 5, "one": 6, "une": 13, "uno": 14}
_CMPI = {"eq": 0, "ne": 1, "slt": 2, "sle": 3, "sgt": 4, "sge": 5, "ult": 6, "ule": 7, "ugt": 8, "uge": 9}


class Builder:
    """Creates ops before `anchor`, at its location; `fastmath` is put on float arithmetic."""

    def __init__(self, anchor: ir.Operation, insert: ir.InsertionPoint | None = None) -> None:
        self.anchor = anchor
        self.context = anchor.context
        self.location = anchor.location
        self.insert = insert or ir.InsertionPoint(anchor)

    def type(self, name: str) -> ir.Type:
        """Return the type that `name` spells."""
        return ir.Type.parse(name, self.context)

    def emit(
        self, name: str, result: ir.Type | None, operands: list[ir.Value], attributes: dict | None = None
    ) -> ir.Value | None:
        """Create an op with at most one result and return that."""
        results = [] if result is None else [result]
        op = ir.Operation.create(name, results, operands, attributes or {}, None, 0, self.location, self.insert)
        return None if result is None else op.results[0]

    def constant(self, kind: ir.Type, value: float | int) -> ir.Value:
        """Return a constant of a scalar or vector type."""
        scalar = element(kind)
        with self.context:
            if isinstance(scalar, (ir.IntegerType, ir.IndexType)):
                attribute = ir.IntegerAttr.get(scalar, _signed(value, scalar))
            else:
                attribute = ir.FloatAttr.get(scalar, value, ir.Location.unknown())
            if scalar != kind:
                attribute = ir.DenseElementsAttr.get_splat(kind, attribute)
        return self.emit("arith.constant", kind, [], {"value": attribute})

    def intrinsic(
        self, name: str, result: ir.Type, operands: list[ir.Value], fastmath: ir.Attribute | None = None
    ) -> ir.Value:
        """Call one of LLVM's target-independent intrinsics (`exp2`, `fma`, ...).

        Not by its op of the llvm dialect: upstream's conversion would turn some of those into calls of a ROCm library.
        """
        sizes = ir.DenseI32ArrayAttr.get([len(operands), 0], self.context)
        attributes = {
            "intrin": ir.StringAttr.get(f"llvm.{name}", self.context),
            "operandSegmentSizes": sizes,
            "op_bundle_sizes": ir.DenseI32ArrayAttr.get([], self.context),
        }
        if fastmath is not None:
            attributes["fastmathFlags"] = fastmath
        return self.emit("llvm.call_intrinsic", result, operands, attributes)

    def inside(self, insert: ir.InsertionPoint) -> Builder:
        """Return a builder with the same location that inserts elsewhere."""
        return Builder(self.anchor, insert)

    def hardware(self, name: str, value: ir.Value) -> ir.Value:
        """Apply the scalar instruction `llvm.amdgcn.<name>` (e.g. `rsq`) to each element."""
        kind = value.type
        if not isinstance(kind, ir.VectorType):
            return self.emit(f"rocdl.{name}", kind, [value])
        scalar, count = element(kind), ir.VectorType(kind).shape[0]
        parts = ir.Operation.create(
            "vector.to_elements", [scalar] * count, [value], {}, None, 0, self.location, self.insert
        ).results
        return self.emit("vector.from_elements", kind, [self.emit(f"rocdl.{name}", scalar, [p]) for p in parts])

    def wrap(self, value: ir.Value) -> Expr:
        """Return `value` as an expression."""
        return Expr(self, value)


def element(kind: ir.Type) -> ir.Type:
    """Return the element type of a vector, or the type itself."""
    return ir.VectorType(kind).element_type if isinstance(kind, ir.VectorType) else kind


def like(kind: ir.Type, scalar: ir.Type) -> ir.Type:
    """Return `scalar`, or a vector of it with the shape of `kind`."""
    if not isinstance(kind, ir.VectorType):
        return scalar
    return ir.VectorType.get(ir.VectorType(kind).shape, scalar, loc=ir.Location.unknown(scalar.context))


def _signed(value: int, kind: ir.Type) -> int:
    if isinstance(kind, ir.IndexType):
        return value
    width = kind.width
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) and width > 1 else value


def f32_bits(value: float) -> int:
    """Return the bits of `value` rounded to f32."""
    return struct.unpack("<I", struct.pack("<f", value))[0]


Operand = "Expr | float | int"


class Expr:
    """A value under construction. Integer shifts right and comparisons are signed unless their name says otherwise."""

    __slots__ = ("b", "value")

    def __init__(self, b: Builder, value: ir.Value) -> None:
        self.b, self.value = b, value

    @property
    def kind(self) -> ir.Type:
        """Its type."""
        return self.value.type

    @property
    def is_int(self) -> bool:
        """Whether its elements are integers."""
        return isinstance(element(self.kind), ir.IntegerType)

    def _other(self, other: Operand) -> ir.Value:
        return other.value if isinstance(other, Expr) else self.b.constant(self.kind, other)

    def _binary(self, floats: str, ints: str, other: Operand) -> Expr:
        name = ints if self.is_int else floats
        return Expr(self.b, self.b.emit(f"arith.{name}", self.kind, [self.value, self._other(other)]))

    def at(self, b: Builder) -> Expr:
        """Return the same value, for use at another place."""
        return Expr(b, self.value)

    def const(self, value: float | int) -> Expr:
        """Return a constant of this expression's type."""
        return Expr(self.b, self.b.constant(self.kind, value))

    def __add__(self, other: Operand) -> Expr:
        return self._binary("addf", "addi", other)

    def __sub__(self, other: Operand) -> Expr:
        return self._binary("subf", "subi", other)

    def __rsub__(self, other: Operand) -> Expr:
        return self.const(other) - self

    def __mul__(self, other: Operand) -> Expr:
        return self._binary("mulf", "muli", other)

    def __truediv__(self, other: Operand) -> Expr:
        return self._binary("divf", "divsi", other)

    def __rtruediv__(self, other: Operand) -> Expr:
        return self.const(other) / self

    def __and__(self, other: Operand) -> Expr:
        return self._binary("", "andi", other)

    def __or__(self, other: Operand) -> Expr:
        return self._binary("", "ori", other)

    def __xor__(self, other: Operand) -> Expr:
        return self._binary("", "xori", other)

    def __lshift__(self, other: Operand) -> Expr:
        return self._binary("", "shli", other)

    def __rshift__(self, other: Operand) -> Expr:
        return self._binary("", "shrsi", other)

    def shr_unsigned(self, other: Operand) -> Expr:
        """Return the logical shift right."""
        return self._binary("", "shrui", other)

    def __neg__(self) -> Expr:
        if self.is_int:
            return 0 - self
        return Expr(self.b, self.b.emit("arith.negf", self.kind, [self.value]))

    def fma(self, factor: Operand, addend: Operand) -> Expr:
        """Return self * factor + addend, rounded once."""
        operands = [self.value, self._other(factor), self._other(addend)]
        return Expr(self.b, self.b.intrinsic("fma", self.kind, operands))

    def poly(self, *coefficients: float) -> Expr:
        """Return the polynomial in self, highest power first, by Horner's rule."""
        result = self.const(coefficients[0])
        for coefficient in coefficients[1:]:
            result = result.fma(self, coefficient)
        return result

    def compare(self, predicate: str, other: Operand) -> Expr:
        """Return an i1 (vector)."""
        name, codes = ("arith.cmpi", _CMPI) if self.is_int else ("arith.cmpf", _CMPF)
        with self.b.context:
            kind = like(self.kind, ir.IntegerType.get_signless(1))
            code = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), codes[predicate])
        return Expr(self.b, self.b.emit(name, kind, [self.value, self._other(other)], {"predicate": code}))

    def select(self, yes: Operand, no: Operand) -> Expr:
        """Return `yes` where this i1 holds, else `no`; at least one of them is an expression."""
        shape = yes if isinstance(yes, Expr) else no
        operands = [self.value, shape._other(yes), shape._other(no)]
        return Expr(self.b, self.b.emit("arith.select", shape.kind, operands))

    def call(self, name: str, *others: Operand) -> Expr:
        """Return an op that keeps the type (`arith.maximumf`), or an intrinsic if `name` has no dialect (`exp2`)."""
        operands = [self.value, *(self._other(o) for o in others)]
        build = self.b.emit if "." in name else self.b.intrinsic
        return Expr(self.b, build(name, self.kind, operands))

    def cast(self, name: str, scalar: str) -> Expr:
        """Return a conversion op's result with elements of type `scalar`."""
        kind = like(self.kind, self.b.type(scalar))
        return Expr(self.b, self.b.emit(f"arith.{name}", kind, [self.value]))

    def bits(self) -> Expr:
        """Return the bits of floats as integers of their width."""
        return self.cast("bitcast", {"f32": "i32", "f64": "i64", "f16": "i16", "bf16": "i16"}[str(element(self.kind))])

    def as_float(self) -> Expr:
        """Return integer bits as a float of their width."""
        return self.cast("bitcast", {"i32": "f32", "i64": "f64"}[str(element(self.kind))])

    def abs(self) -> Expr:
        """Return the magnitude of floats."""
        return self.call("fabs")

    def copysign(self, sign: Expr) -> Expr:
        """Return self's magnitude with the sign of `sign`."""
        return self.call("copysign", sign)
