"""The `vector` dialect: vectors."""

from flydsl._mlir._expose import exposed

__getattr__, __dir__ = exposed("vector", __name__)
