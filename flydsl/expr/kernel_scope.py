"""What belongs to the kernel that is being traced: ids read so far, LDS handed out, its block size.

State hangs on `trace.scope.owner`, an object that the compiler makes for each kernel.
"""

from __future__ import annotations

from typing import Any

from flydsl.diag import OutsideKernel
from flydsl.ir import current, ir
from flydsl.ir.trace import active, create_op


def kernel_owner(what: str) -> Any:
    """Return the object that holds the state of the kernel being traced; `what` names the caller in the refusal.

    Raises   OutsideKernel
    """
    trace = active.trace
    scope = None if trace is None else trace.scope
    if scope is None or scope.kind != "kernel" or scope.owner is None:
        raise OutsideKernel(what_text=what)
    return scope.owner


def remembered(owner: Any, name: str, make: Any) -> Any:
    """Return the attribute `name` of the kernel's state, made on first use."""
    try:
        return owner.__dict__[name]
    except KeyError:
        value = owner.__dict__[name] = make()
        return value


def at_entry(key: tuple, op: str, attrs: dict | None, what: str) -> ir.Value:
    """Return the `index` result of an id op as an i32: built once per kernel, where it dominates the whole body."""
    ids = remembered(kernel_owner(what), "_ids", dict)
    value = ids.get(key)
    if value is None:
        value = ids[key] = _build_at_entry(op, attrs, cast=True)
    return value


def index_at_entry(key: tuple, op: str, attrs: dict | None, what: str) -> ir.Value:
    """Return the result of an id op as an `index`, built once per kernel."""
    ids = remembered(kernel_owner(what), "_indices", dict)
    value = ids.get(key)
    if value is None:
        value = ids[key] = _build_at_entry(op, attrs, cast=False)
    return value


def _build_at_entry(op: str, attrs: dict | None, cast: bool) -> ir.Value:
    trace = current()
    types, ip, loc = trace.types, trace.scope.entry, trace.loc(2)
    value = create_op(op, (types.index,), (), attrs, None, 0, loc, ip).result
    return create_op("arith.index_cast", (types.i32,), (value,), None, None, 0, loc, ip).result if cast else value


def declare_lds(owner: Any, symbol: str, bytes_: int, alignment: int) -> None:
    """Add the LDS variable `symbol` of this many bytes before the kernel; 0 bytes declare the dynamic block."""
    trace = current()
    linkage = "internal" if bytes_ else "external"
    attrs = {
        "sym_name": ir.StringAttr.get(symbol),
        "global_type": ir.TypeAttr.get(_array(trace, bytes_)),
        "linkage": ir.Attribute.parse(f"#llvm.linkage<{linkage}>", trace.context),
        "addr_space": ir.IntegerAttr.get(trace.types.i32, 3),
        "alignment": ir.IntegerAttr.get(trace.types.i64, alignment),
    }
    ip = ir.InsertionPoint(owner.function)
    create_op("llvm.mlir.global", (), (), attrs, None, 1, trace.loc(3), ip)
    owner.static_shared_bytes = -(-owner.static_shared_bytes // alignment) * alignment + bytes_


def _array(trace: Any, bytes_: int) -> ir.Type:
    return ir.Type.parse(f"!llvm.array<{bytes_} x i8>", trace.context)


def fresh_symbol(trace: Any, prefix: str) -> str:
    """Return `prefix` with a number that no other symbol of this module has."""
    number = getattr(trace, "fly_symbols", 0)
    trace.fly_symbols = number + 1
    return f"{prefix}{number}"


DYNAMIC_SHARED = "__dyn_shared"
DYNAMIC_ALIGN = 1024


def dynamic_shared_symbol(what: str) -> str:
    """Return the symbol of the module's dynamic LDS block, declared on first use."""
    owner = kernel_owner(what)
    trace = current()
    if not getattr(trace, "fly_dynamic_shared", False):
        declare_lds(owner, DYNAMIC_SHARED, 0, DYNAMIC_ALIGN)
        trace.fly_dynamic_shared = True
    return DYNAMIC_SHARED
