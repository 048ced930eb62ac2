"""The `func` dialect: functions of a module, calls, returns."""

from flydsl._mlir._expose import OpClass, exposed
from flydsl.ir import dialect

FuncOp = OpClass(dialect("func").FuncOp, lifted=("arguments",))

__getattr__, __dir__ = exposed("func", __name__)
