"""The `rocdl` dialect: AMD instructions, as functions that return the value and as op classes with `.result`."""

from collections.abc import Callable
from typing import Any

from flydsl._mlir._expose import OpClass, exposed, lift
from flydsl.expr.rocdl.attributes import attribute
from flydsl.expr.rocdl.build import builder
from flydsl.ir import dialect, ir

_KINDS = {
    "rocdl.ROCDL_MFMAPermBAttr": "perm_b",
    "rocdl.ROCDL_MFMANegModifierAttr": "neg",
    "rocdl.ROCDL_MatrixFormatAttr": "format",
    "rocdl.ROCDL_SchedGroupMaskAttr": "sched",
    "rocdl.ROCDL_WMMACModifierAttr": "mod_c",
    "rocdl.ROCDL_WMMAMatrixScaleAttr": "scale_row",
    "rocdl.ROCDL_WMMAMatrixScaleFormatAttr": "scale_format",
    "ROCDL_AtomicBufferCachePolicyCompatAttr": "i32",
    "ROCDL_Gfx12NonAtomicCachePolicyCompatAttr": "i32",
    "ROCDL_NonAtomicBufferCachePolicyCompatAttr": "i32",
    "ROCDL_PreGfx12CachePolicyCompatAttr": "i32",
}


def _teach_bindings() -> None:
    """Let the generated op classes take plain numbers for attributes that have no builder in the bindings."""
    for name, kind in _KINDS.items():
        if not ir.AttrBuilder.contains(name):
            ir.register_attribute_builder(name)(lambda x, context=None, kind=kind: attribute(kind, x, "op", kind))


_teach_bindings()
_exposed, __dir__ = exposed("rocdl", __name__)


def __getattr__(name: str) -> Any:
    found = None if name.startswith("__") else _instruction(name)
    if found is None:
        found = _exposed(name)
    globals()[name] = found
    return found


def _instruction(name: str) -> Callable | None:
    """Return the function of the table; names that are op classes in the bindings stay classes unless called with a
    list.
    """
    function = builder(name)
    if function is None:
        return None
    op_class = getattr(dialect("rocdl"), name, None)
    if not isinstance(op_class, type):
        return lambda *args, **named: lift(function(*args, **named))
    cls = OpClass(op_class)

    def call(*args: Any, **named: Any) -> Any:
        if len(args) == 2 and isinstance(args[1], (list, tuple)):
            return lift(function(*args, **named))
        return cls(*args, **named)

    call.__name__, call.__doc__ = name, function.__doc__
    return call
