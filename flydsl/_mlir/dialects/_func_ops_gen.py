"""Generated builders of the `func` dialect."""

from flydsl._mlir._expose import exposed

__getattr__, __dir__ = exposed("_func_ops_gen", __name__)
