"""The `memref` dialect: memory references."""

from flydsl._mlir._expose import exposed

__getattr__, __dir__ = exposed("memref", __name__)
