"""Generated builders of the `memref` dialect."""

from flydsl._mlir._expose import exposed

__getattr__, __dir__ = exposed("_memref_ops_gen", __name__)
