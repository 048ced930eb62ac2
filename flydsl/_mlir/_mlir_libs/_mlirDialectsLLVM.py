"""Translation of `llvm` dialect modules to LLVM IR text."""

from typing import Any

from flydsl.ir import ir
from flydsl.ir import translate_module_to_llvmir as _translate

__all__ = ["translate_module_to_llvmir"]


def translate_module_to_llvmir(module: Any) -> str:
    """Return the LLVM IR of a module of `llvm` and `rocdl` ops.

    Raises   RocmOpLeft: another op, on which the bindings would end the process
    """
    op = getattr(module, "operation", module)
    _refuse_other_dialects(op)
    return _translate(op)


def _refuse_other_dialects(op: ir.Operation) -> None:
    def check(o: ir.Operation) -> ir.WalkResult:
        name = o.name
        if not name.startswith(("llvm.", "rocdl.", "builtin.module")):
            from flydsl.diag import RocmOpLeft

            raise RocmOpLeft(op=name, detail="")
        return ir.WalkResult.ADVANCE

    op.walk(check)
