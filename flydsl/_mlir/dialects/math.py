"""The `math` dialect: float functions."""

from flydsl._mlir._expose import exposed

__getattr__, __dir__ = exposed("math", __name__)
