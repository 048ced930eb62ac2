"""Generated builders of the `math` dialect."""

from flydsl._mlir._expose import exposed

__getattr__, __dir__ = exposed("_math_ops_gen", __name__)
