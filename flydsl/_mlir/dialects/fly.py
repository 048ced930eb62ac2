"""The Fly dialect for kernels that mix it with raw ops: pointers of tensors, atom calls on vectors, layout functions
by their op names.

Layout functions are those of `fx`; static results are folded, so they may give a DSL value where the reference gives
an op result.
"""

from collections.abc import Callable, Sequence
from typing import Any

from flydsl._mlir._expose import lift, lower
from flydsl.dialects.fly.types import is_fly_type, value_of
from flydsl.dialects.values import BUFFER_DESC, is_static
from flydsl.expr import algebra, atoms, int_tuples, layouts, pointers, tensors
from flydsl.expr.buffer_ops import is_raw_pointer
from flydsl.expr.enum import AddressSpace, AtomicOp, CachePolicy, GemmTraversalOrder, MmaOperand
from flydsl.expr.fly_types import IntTupleType, LayoutType, PointerType
from flydsl.expr.pointers import to_llvm_ptr
from flydsl.expr.rocdl.buffers import get_buffer_rsrc
from flydsl.expr.rocdl.values import scalar
from flydsl.expr.tensors import Tensor
from flydsl.expr.values import CLASS_OF_PLAIN, FlyValue, build, wrap
from flydsl.ir import constant, current, emit, emit1, ir
from flydsl.layout.view import MemRef

__all__ = [
    "AddressSpace",
    "AtomicOp",
    "CachePolicy",
    "GemmTraversalOrder",
    "IntTupleType",
    "LayoutType",
    "MmaOperand",
    "PointerType",
    "copy_atom_call_ssa",
    "extract_aligned_pointer_as_index",
    "get_scalar",
    "mma_atom_call_ssa",
    "static",
]

_SOURCES = (algebra, layouts, int_tuples, tensors, pointers, atoms)


def value(x: Any) -> Any:
    """Return a raw value of a Fly type as its DSL value; others as they are."""
    if isinstance(x, ir.Value) and is_fly_type(x.type):
        plain = value_of(x.type)
        return wrap(plain) if is_static(plain) else CLASS_OF_PLAIN[type(plain)](x)
    if isinstance(x, (list, tuple)):
        return type(x)(value(e) for e in x)
    return x


def static(result_type: Any) -> FlyValue:
    """Return the value that a static Fly type states."""
    return wrap(value_of(getattr(result_type, "ir_type", result_type)))


def extract_aligned_pointer_as_index(result_type: Any, tensor: Any) -> ir.Value:
    """Return the raw pointer of a tensor or pointer: `!llvm.ptr`, of a buffer tensor its resource; an integer type
    gives the address. A raw pointer, such as the first of the values that a tensor is carried as, is taken as it is.
    """
    types, x = current().types, value(tensor)
    if isinstance(x, ir.Value) and is_raw_pointer(x):
        raw = x
    else:
        raw = get_buffer_rsrc(x) if _space(x) == BUFFER_DESC else to_llvm_ptr(x)
    wanted = lower(result_type)
    if isinstance(wanted, (list, tuple)):
        wanted = wanted[0]
    if raw.type == wanted:
        return raw
    if isinstance(wanted, (ir.IntegerType, ir.IndexType)):
        address = emit1("llvm.ptrtoint", types.i64, (raw,))
        return lift(scalar(address, "Index") if isinstance(wanted, ir.IndexType) else _resized(address, wanted))
    return emit1("llvm.addrspacecast", wanted, (raw,))


def _resized(address: ir.Value, wanted: ir.Type) -> ir.Value:
    return address if wanted.width == 64 else emit1("arith.trunci", wanted, (address,))


def get_scalar(int_tuple: Any, **ignored: Any) -> Any:
    """Return the integer of a leaf as a raw value."""
    x = int_tuples.get_scalar(value(int_tuple))
    return lift(constant(current().types.i32, x) if isinstance(x, int) else lower(x))


def _space(x: Any) -> str:
    plain = x.plain if isinstance(x, FlyValue) else None
    return getattr(plain.ptr if isinstance(plain, MemRef) else plain, "space", "")


def copy_atom_call_ssa(
    results: Sequence[Any], atom: Any, src: Any, *, dst: Any = None, pred: Any = None, **ignored: Any
) -> Any:
    """Call a copy atom once. A load gives the vector read, a store takes it as `src`; where `pred` is false, a load
    gives zeros.

    Shapes   results: the vector's type, or empty for stores and for copies from memory to memory
    """
    types = [lower(t) for t in results or ()]
    operands = [lower(atoms.copy_atom_of(value(atom), "the atom")), _side(src)]
    operands += [] if dst is None else [_side(dst)]
    attrs = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, 0 if dst is None else 1, 0])}
    if pred is None:
        return _result(emit("fly.copy_atom_call_ssa", types, operands, attrs))
    return _guarded(scalar(pred, "Boolean"), types, operands, attrs)


def _guarded(bit: ir.Value, types: list[ir.Type], operands: list[ir.Value], attrs: dict) -> Any:
    trace, guard = current(), emit("scf.if", types, (bit,), None, 2)
    with trace.in_block(guard.regions[0].blocks.append()):
        emit("scf.yield", (), list(emit("fly.copy_atom_call_ssa", types, operands, attrs).results))
    if types:
        with trace.in_block(guard.regions[1].blocks.append()):
            emit("scf.yield", (), [_zero(t) for t in types])
    return _result(guard)


def _zero(type_: ir.Type) -> ir.Value:
    return emit1(
        "arith.constant",
        type_,
        (),
        {"value": ir.Attribute.parse(f"dense<0> : {type_}" if _is_int(type_) else f"dense<0.0> : {type_}")},
    )


def _is_int(type_: ir.Type) -> bool:
    return isinstance(ir.VectorType(type_).element_type, ir.IntegerType)


def _side(x: Any) -> ir.Value:
    """Return a memory operand as a pointer, a register operand as its vector."""
    x = value(x)
    if isinstance(x, Tensor):
        x = build("fly.get_iter", (x,))
    return lower(x)


def _result(op: ir.Operation) -> Any:
    return lift(op.result) if len(op.results) == 1 else op


def mma_atom_call_ssa(
    results: Sequence[Any], atom: Any, a: Any, b: Any, c: Any, *, d: Any = None, **ignored: Any
) -> Any:
    """Call a matrix atom once on vectors and return the accumulator."""
    mma = atoms.mma_atom_of(value(atom), "the atom")
    return lift(emit1("fly.mma_atom_call_ssa", lower(results[0]), [lower(x) for x in (mma, a, b, c)]))


def _layout_function(function: Callable) -> Callable:
    def call(*args: Any, **named: Any) -> Any:
        return function(
            *[value(a) for a in args], **{k: value(v) for k, v in named.items() if k not in ("loc", "ip", "results")}
        )

    call.__name__, call.__doc__ = function.__name__, function.__doc__
    return call


def __getattr__(name: str) -> Any:
    for source in _SOURCES:
        found = getattr(source, name, None)
        if callable(found) and not name.startswith("_"):
            made = found if isinstance(found, type) else _layout_function(found)
            globals()[name] = made
            return made
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
