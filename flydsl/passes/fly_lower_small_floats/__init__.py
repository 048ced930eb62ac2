"""fly-lower-small-floats: 8-, 6- and 4-bit elements become integers.

Before  values of small floats and of i4, as the user wrote them, with arithmetic on them
After   8-bit floats are i8; vectors of 6- and 4-bit elements are packed bytes, element 0 in the lowest bits; a single
        one is an i8 (of an i4 the low half counts). Conversions are the chip's instructions where it has them, else
        integer code; other arithmetic is done in f32, that on i4 in i8. Fly types still name the elements

Neither MLIR's translation to LLVM IR nor LLVM computes with these types; they only move.
"""

from __future__ import annotations

from dataclasses import dataclass

from flydsl.diag import PassFailed
from flydsl.ir import Types, ir
from flydsl.ir.expression import Builder
from flydsl.passes.fly_lower_small_floats import elements
from flydsl.passes.fly_lower_small_floats.elements import Small, small_of
from flydsl.passes.fly_lower_small_floats.formats import FORMATS
from flydsl.passes.rewriting import entry_block, functions, visit

PASS = "fly-lower-small-floats"
_REORDER = elements.RULES
_BITCASTS = ("arith.bitcast", "vector.bitcast", "llvm.bitcast")
_INT_CASTS = ("arith.extsi", "arith.extui", "arith.trunci")


@dataclass
class Found:
    """An op that touches small elements: what its operands and results were before they became integers."""

    op: ir.Operation
    operands: list[Small | None]
    results: list[Small | None]


def run(module: ir.Module, types: Types, arch: str) -> None:
    """Rewrite every function of `module` for the chip `arch`."""
    for function in functions(module):
        entry = entry_block(function)
        if entry is not None:
            _run_function(function, entry, types, arch)


def _run_function(function: ir.Operation, entry: ir.Block, types: Types, arch: str) -> None:
    ops: list[tuple[ir.Operation, list[Small | None]]] = []
    found: list[Found] = []
    values: list[tuple[ir.Value, ir.Type]] = []
    blocks: list[ir.Block] = [entry]
    memo: dict[ir.Type, Small | None] = {}

    def small(v: ir.Value) -> Small | None:
        type_ = v.type
        if type_ not in memo:
            memo[type_] = small_of(type_)
        return memo[type_]

    def look(op: ir.Operation) -> None:
        for region in op.regions:
            blocks.extend(region.blocks)
        results = [small(v) for v in op.results]
        if any(results):
            values.extend((v, s.integers(types)) for v, s in zip(op.results, results, strict=True) if s)
        ops.append((op, results))

    visit(entry, look)
    for block in blocks:
        values.extend((v, s.integers(types)) for v in block.arguments if (s := small(v)))
    if not values:
        return
    for op, results in ops:
        operands = [small(v) for v in op.operands]
        if any(operands) or any(results):
            found.append(Found(op, operands, results))
    for v, type_ in values:
        v.set_type(type_)
    _retype(function, entry, types)
    for item in found:
        _rewrite(item, types, arch)


def _retype(function: ir.Operation, entry: ir.Block, types: Types) -> None:
    old = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    results = [s.integers(types) if (s := small_of(t)) else t for t in old.results]
    new = ir.FunctionType.get([a.type for a in entry.arguments], results, context=function.context)
    function.attributes["function_type"] = ir.TypeAttr.get(new, function.context)


def _rewrite(item: Found, types: Types, arch: str) -> None:
    op, name = item.op, item.op.name
    if name == "arith.constant":
        elements.constant(op, item.results[0], types)
    elif name in _BITCASTS:
        _bitcast(op, item)
    elif name in _REORDER:
        _REORDER[name](op, item.operands, item.results, types)
    elif name in _INT_CASTS:
        _integer_cast(op, item, types)
    elif _holds_i4(item) and name != "arith.select" and name.startswith(("arith.", "math.", "vector.reduction")):
        _through_i8(op, item, types)
    elif name == "arith.select" or not name.startswith(("arith.", "math.", "vector.reduction", "vector.fma")):
        return
    else:
        _through_f32(op, item, types, arch)


def _bitcast(op: ir.Operation, item: Found) -> None:
    """Bits stay as they are: packed bytes are what the bits of a vector were."""
    source, result = op.operands[0], op.result
    if source.type == result.type:
        _replace(op, source)


def _integer_cast(op: ir.Operation, item: Found, types: Types) -> None:
    b = Builder(op)
    source, target = item.operands[0], item.results[0]
    if source is not None:
        codes = elements.codes(b, op.operands[0], source)
        bytes_ = _extended(b, codes, op.name == "arith.extsi")
        result = bytes_ if bytes_.type == op.result.type else b.emit(op.name, op.result.type, [bytes_])
        _replace(op, result)
        return
    narrow = op.operands[0]
    i8 = elements.like(narrow.type, types.i8)
    codes = narrow if narrow.type == i8 else b.emit(op.name, i8, [narrow])  # from a wider integer or an i1
    _replace(op, elements.from_codes(b, codes, target))


def _holds_i4(item: Found) -> bool:
    return any(small is not None and small.element == "i4" for small in (*item.operands, *item.results))


def _extended(b: Builder, codes: ir.Value, signed: bool) -> ir.Value:
    x = b.wrap(codes)
    return ((x << 4) >> 4).value if signed else (x & 15).value


_UNSIGNED = ("divui", "remui", "shrui", "maxui", "minui", "ceildivui", "uitofp", "ctpop", "index_castui")
_UNSIGNED_COMPARISONS = range(6, 10)  # ult ule ugt uge


def _through_i8(op: ir.Operation, item: Found, types: Types) -> None:
    """Extend the i4 operands, do the op on i8, keep the low half of its result."""
    if op.name in ("math.ctlz", "math.cttz"):
        raise PassFailed(pass_name=PASS, problem=f"{op.name} of i4 at {op.location}: convert to a wider integer first")
    b = Builder(op)
    unsigned = op.name.split(".")[-1] in _UNSIGNED
    if op.name == "arith.cmpi":
        unsigned = ir.IntegerAttr(op.attributes["predicate"]).value in _UNSIGNED_COMPARISONS
    operands = [
        v if small is None else _extended(b, elements.codes(b, v, small), not unsigned) for v, small in zip(op.operands, item.operands, strict=True)
    ]
    small = item.results[0]
    kind = op.result.type
    if small is not None:
        kind = types.i8 if small.count is None else types.vector(small.count, types.i8)
    value = b.emit(op.name, kind, operands, _attributes(op))
    _replace(op, value if small is None else elements.from_codes(b, value, small))


def _through_f32(op: ir.Operation, item: Found, types: Types, arch: str) -> None:
    """Decode the small operands, do the op in f32, encode its result."""
    b = Builder(op)
    operands = []
    for v, small in zip(op.operands, item.operands, strict=True):
        operands.append(v if small is None else _decode(b, v, small, arch, op))
    result = item.results[0] if item.results else None
    f32 = elements.like(operands[0].type, types.f32)
    if op.name == "arith.truncf" or op.name == "arith.extf":
        value = operands[0] if item.operands[0] is not None or operands[0].type == f32 else _to_f32(b, operands[0], f32)
    elif result is not None:
        value = b.emit(op.name, f32, operands, _attributes(op))
    else:
        value = b.emit(op.name, op.result.type, operands, _attributes(op))
    if result is not None:
        value = elements.from_codes(b, FORMATS[result.element].encode(b, value, arch), result)
    elif value.type != op.result.type:  # f16, bf16, f64
        narrower = elements.element_width(op.result.type) < 32
        value = b.emit("arith.truncf" if narrower else "arith.extf", op.result.type, [value])
    _replace(op, value)


def _to_f32(b: Builder, v: ir.Value, f32: ir.Type) -> ir.Value:
    return b.emit("arith.extf" if elements.element_width(v.type) < 32 else "arith.truncf", f32, [v])


def _decode(b: Builder, v: ir.Value, small: Small, arch: str, op: ir.Operation) -> ir.Value:
    if small.element not in FORMATS:
        raise PassFailed(pass_name=PASS, problem=f"no rule for {op.name} on {small.element} at {op.location}")
    return FORMATS[small.element].decode(b, elements.codes(b, v, small), arch)


def _attributes(op: ir.Operation) -> dict:
    return {name: op.attributes[name] for name in op.attributes}


def _replace(op: ir.Operation, value: ir.Value) -> None:
    op.result.replace_all_uses_with(value)
    op.erase()
