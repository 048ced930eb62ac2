"""Generated builders of the `arith` dialect."""

from flydsl._mlir._expose import exposed

__getattr__, __dir__ = exposed("_arith_ops_gen", __name__)
