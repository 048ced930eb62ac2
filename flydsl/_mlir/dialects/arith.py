"""The `arith` dialect: integer and float arithmetic."""

from flydsl._mlir._expose import exposed

__getattr__, __dir__ = exposed("arith", __name__)
