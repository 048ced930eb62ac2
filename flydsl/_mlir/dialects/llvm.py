"""The `llvm` dialect: pointers, raw loads and stores, atomics, intrinsics, inline assembly."""

from collections.abc import Callable
from typing import Any

from flydsl._mlir._expose import OpClass, call, exposed, lift
from flydsl.ir import dialect, ir

_bindings, _arith = dialect("llvm"), dialect("arith")
_WORDS = {1: "nsw", 2: "nuw", 3: "nsw, nuw"}


def _getelementptr(
    self,
    res: Any,
    base: Any,
    dynamic_indices: Any,
    raw_constant_indices: Any,
    elem_type: Any,
    no_wrap_flags: Any = None,
    **rest: Any,
) -> None:
    # The bindings cannot set the flags, which only allow optimisations: an address without them is as right.
    _bindings.GEPOp.__init__(self, res, base, dynamic_indices, raw_constant_indices, elem_type, 0, **rest)


class _WithFlags:
    """An integer op class whose overflow flags may be left out.

    The bindings cannot set the flags of `llvm` ops, so that an op with flags is built as its `arith` twin, which
    lowers to it.
    """

    def __init__(self, name: str, twin: str):
        self._plain, self._twin = OpClass(getattr(_bindings, name)), OpClass(getattr(_arith, twin))

    def __call__(self, lhs: Any, rhs: Any, overflow_flags: Any = None, **rest: Any) -> Any:
        flags = _number(rest.pop("overflowFlags", overflow_flags))
        if not flags:
            return self._plain(lhs, rhs, 0, **rest)
        attr = ir.Attribute.parse(f"#arith.overflow<{_WORDS[flags]}>")
        return self._twin(lhs, rhs, overflowFlags=attr, **rest)

    def __instancecheck__(self, x: Any) -> bool:
        return isinstance(x, self._plain) or isinstance(x, self._twin)


def _number(flags: Any) -> int:
    if isinstance(flags, ir.Attribute):
        return sum(bit for bit, word in ((1, "nsw"), (2, "nuw")) if word in str(flags))
    return 0 if flags is None else int(flags)


def _function(cls: Callable) -> Callable:
    def build(*args: Any, **named: Any) -> Any:
        return cls(*args, **named).result

    return build


GEPOp = OpClass(_bindings.GEPOp, _getelementptr)
AddOp, SubOp = _WithFlags("AddOp", "AddIOp"), _WithFlags("SubOp", "SubIOp")
MulOp, ShlOp = _WithFlags("MulOp", "MulIOp"), _WithFlags("ShlOp", "ShLIOp")
getelementptr, add, sub, mul, shl = (_function(c) for c in (GEPOp, AddOp, SubOp, MulOp, ShlOp))


def trunc(res: Any, arg: Any, overflow_flags: Any = None, **rest: Any) -> Any:
    """Return the low bits of an integer; the flags are not kept."""
    return lift(call(_bindings.TruncOp, res, arg, 0, **rest).result)


__all__ = ["AddOp", "GEPOp", "MulOp", "ShlOp", "SubOp", "add", "getelementptr", "mul", "shl", "sub", "trunc"]
__getattr__, __dir__ = exposed("llvm", __name__)
