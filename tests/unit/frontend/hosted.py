"""Run rewritten functions on the host: trace into a func.func, lower with upstream passes, compile with LLVM, call.

Independent of the kernel pipeline and the simulator. Arguments are i32 or f32 scalars; results are stored to an array of 8-byte slots.
"""

import ctypes
import struct
from collections.abc import Callable, Sequence

import llvmlite.binding as llvm

from flydsl.expr.numeric.base import Numeric, wrap
from flydsl.expr.numeric.classes import Boolean, Float32
from flydsl.frontend import rewritten
from flydsl.frontend.carry import extract
from flydsl.ir import PassManager, Trace, emit, ir, translate_module_to_llvmir
from flydsl.ir.verify import find_escape
from flydsl.targets.rocm.llvm_text import to_llvm22

_PIPELINE = (
    "builtin.module(convert-scf-to-cf,convert-cf-to-llvm,convert-math-to-llvm,convert-arith-to-llvm,convert-index-to-llvm,convert-func-to-llvm,"
    "reconcile-unrealized-casts)"
)
_engines: list = []


def _flat(value: object) -> list:
    if isinstance(value, (list, tuple)):
        return [x for v in value for x in _flat(v)]
    if isinstance(value, dict):
        return [x for v in value.values() for x in _flat(v)]
    return [] if value is None else [value]


def traced(fn: Callable, types: Sequence[type[Numeric]], memory: bool = False, **options) -> tuple[Trace, list]:
    """Return the trace of `fn` over scalar arguments (and a pointer to i32 memory), and its flat results."""
    trace = Trace("gfx942")
    with trace:
        t = trace.types
        inputs = [cls.ir_type for cls in types]
        pointer = t.llvm_ptr(0)
        if memory:
            inputs.append(pointer)
        ftype = ir.FunctionType.get([*inputs, pointer], [])
        op = emit("func.func", (), (), {"sym_name": ir.StringAttr.get("f"), "function_type": ir.TypeAttr.get(ftype)}, 1)
        entry = ir.Block.create_at_start(op.regions[0], [*inputs, pointer], [trace.unknown_loc] * (len(inputs) + 1))
        new = rewritten(fn, **options)
        with trace.in_function(entry, "host", new.__code__):
            *values, out = entry.arguments
            args = [wrap(cls, v) for cls, v in zip(types, values)]
            if memory:
                args.append(values[-1])
            results = _flat(new(*args))
            for i, r in enumerate(results):
                value = extract(r)[0]
                slot = emit("llvm.getelementptr", (pointer,), (out,), _gep(trace, i)).result
                emit("llvm.store", (), (value, slot), {"ordering": ir.IntegerAttr.get(t.i64, 0)})
            emit("func.return")
        _verify(trace.module)
    return trace, results


def _verify(module: ir.Module) -> None:
    try:
        module.operation.verify()
    except ir.MLIRError as e:
        raise find_escape(module) or e from None


def _gep(trace: Trace, i: int) -> dict:
    return {
        "rawConstantIndices": ir.DenseI32ArrayAttr.get([i]),
        "elem_type": ir.TypeAttr.get(trace.types.i64),
    }


def hosted(fn: Callable, types: Sequence[type[Numeric]], memory: bool = False, **options) -> Callable:
    """Return a Python function that runs the traced `fn`; results come back as a flat list."""
    trace, results = traced(fn, types, memory, **options)
    classes = [r.__class__ for r in results]
    with trace.context:
        PassManager.parse(_PIPELINE).run(trace.module.operation)
        text = to_llvm22(translate_module_to_llvmir(trace.module.operation))
    engine = _compile(text)
    ctypes_of = [ctypes.c_float if c is Float32 else ctypes.c_int32 for c in types]
    ctypes_of += [ctypes.c_void_p] * memory
    entry = ctypes.CFUNCTYPE(None, *ctypes_of, ctypes.c_void_p)(engine.get_function_address("f"))

    def run(*args):
        slots = (ctypes.c_uint64 * (len(classes) + 1))()
        entry(*args, ctypes.addressof(slots))
        return [_decode(c, s) for c, s in zip(classes, slots)]

    run.text = text
    return run


def _decode(cls: type, slot: int) -> int | float | bool:
    if cls in (Boolean, bool):
        return bool(slot & 1)
    if cls in (Float32, float):
        return struct.unpack("f", struct.pack("I", slot & 0xFFFFFFFF))[0]
    value = slot & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def _compile(text: str):
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(text)
    module.verify()
    machine = llvm.Target.from_default_triple().create_target_machine(opt=0)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    _engines.append(engine)
    return engine
