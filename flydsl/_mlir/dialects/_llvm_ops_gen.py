"""Generated builders of the `llvm` dialect."""

from flydsl._mlir._expose import exposed

__getattr__, __dir__ = exposed("_llvm_ops_gen", __name__)
