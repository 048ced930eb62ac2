"""The `cf` dialect: branches between blocks."""

from flydsl._mlir._expose import exposed

__getattr__, __dir__ = exposed("cf", __name__)
