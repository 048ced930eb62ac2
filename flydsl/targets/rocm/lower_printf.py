"""`gpu.printf` to stores into the print buffer (`printf.py` has the format of the records)."""

from __future__ import annotations

from flydsl.diag.errors.target import PrintfBad
from flydsl.ir import ir
from flydsl.ir.expression import Builder, Expr
from flydsl.targets.rocm import printf
from flydsl.targets.rocm.guards import place


def lower_printf(function: ir.Operation, prints: list[ir.Operation]) -> tuple[printf.PrintfFormat, ...]:
    """Replace `prints` of a gpu.func, which gets the buffer as its last argument; return the formats by number."""
    with function.context, function.location:
        buffer = _add_argument(function)
        formats: dict[printf.PrintfFormat, int] = {}
        for op in prints:
            b = Builder(op)
            slots, types = _slots(b, op)
            form = printf.PrintfFormat(ir.StringAttr(op.attributes["format"]).value, tuple(types))
            if form.record_bytes > printf.MAX_RECORD_BYTES:
                raise PrintfBad(problem=f"{len(types)} values at once", limit=printf.MAX_RECORD_BYTES, at=place(op))
            _store_record(b, buffer, formats.setdefault(form, len(formats)), form.record_bytes, slots)
            op.erase()
    return tuple(formats)


def _add_argument(function: ir.Operation) -> ir.Value:
    pointer = ir.Type.parse("!llvm.ptr<1>")
    kind = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get([*kind.inputs, pointer], kind.results))
    if "arg_attrs" in function.attributes:
        held = ir.ArrayAttr(function.attributes["arg_attrs"])
        function.attributes["arg_attrs"] = ir.ArrayAttr.get([*held, ir.DictAttr.get({})])
    return function.regions[0].blocks[0].add_argument(pointer, function.location)


def _slots(b: Builder, op: ir.Operation) -> tuple[list[Expr], list[str]]:
    """Return each scalar as an i64, and its type's name."""
    slots, types = [], []
    for operand in op.operands:
        for value in _scalars(b, operand):
            kind = str(value.type)
            slots.append(_slot(b, value, kind, op))
            types.append("ptr" if kind.startswith("!llvm.ptr") else "i64" if kind == "index" else kind)
    return slots, types


def _scalars(b: Builder, value: ir.Value) -> list[ir.Value]:
    if not isinstance(value.type, ir.VectorType):
        return [value]
    kind = ir.VectorType(value.type)
    op = ir.Operation.create(
        "vector.to_elements", [kind.element_type] * kind.shape[0], [value], {}, None, 0, b.location, b.insert
    )
    return list(op.results)


def _slot(b: Builder, value: ir.Value, kind: str, op: ir.Operation) -> Expr:
    if kind.startswith("!llvm.ptr"):
        return b.wrap(b.emit("llvm.ptrtoint", b.type("i64"), [value]))
    x = b.wrap(value)
    match kind:
        case "i64":
            return x
        case "index":
            return x.cast("index_cast", "i64")
        case "i1":
            return x.cast("extui", "i64")
        case "i8" | "i16" | "i32":
            return x.cast("extsi", "i64")
        case "f16" | "bf16" | "f32":
            return x.cast("extf", "f64").cast("bitcast", "i64")
        case "f64":
            return x.cast("bitcast", "i64")
    raise PrintfBad(problem=f"a value of type {kind}", limit=printf.MAX_RECORD_BYTES, at=place(op))


def _store_record(b: Builder, buffer: ir.Value, number: int, size: int, slots: list[Expr]) -> None:
    """Reserve the place with one atomic addition; write only if the record fits."""
    i64 = b.type("i64")
    size_value = b.wrap(b.constant(i64, size))
    add = {
        "bin_op": ir.IntegerAttr.get(i64, 1),
        "ordering": ir.IntegerAttr.get(i64, 2),
        "syncscope": ir.StringAttr.get("agent"),
    }
    start = b.wrap(b.emit("llvm.atomicrmw", i64, [buffer, size_value.value], add))
    capacity = b.wrap(b.emit("llvm.load", i64, [_offset(b, buffer, b.constant(i64, 8))], _align8(b)))
    fits = (start + size_value).compare("ule", capacity)
    op = ir.Operation.create("scf.if", [], [fits.value], {}, None, 2, b.location, b.insert)
    inner = b.inside(ir.InsertionPoint(ir.Block.create_at_start(op.regions[0], [])))
    record = _offset(inner, buffer, (start.at(inner) + printf.HEADER_BYTES).value)
    words = [inner.wrap(inner.constant(i64, number << 32 | size)), *(s.at(inner) for s in slots)]
    for i, word in enumerate(words):
        inner.emit("llvm.store", None, [word.value, _offset(inner, record, inner.constant(i64, 8 * i))], _align8(b))
    inner.emit("scf.yield", None, [])


def _align8(b: Builder) -> dict[str, ir.Attribute]:
    return {"alignment": ir.IntegerAttr.get(b.type("i64"), 8)}


def _offset(b: Builder, pointer: ir.Value, offset: ir.Value) -> ir.Value:
    attributes = {
        "elem_type": ir.TypeAttr.get(b.type("i8")),
        "rawConstantIndices": ir.DenseI32ArrayAttr.get([-2147483648]),
    }
    return b.emit("llvm.getelementptr", pointer.type, [pointer, offset], attributes)
