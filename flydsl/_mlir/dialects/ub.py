"""The `ub` dialect: undefined behaviour."""

from flydsl._mlir._expose import exposed

__getattr__, __dir__ = exposed("ub", __name__)
