"""The `builtin` dialect: modules and casts."""

from flydsl._mlir._expose import exposed

__getattr__, __dir__ = exposed("builtin", __name__)
