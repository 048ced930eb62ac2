"""Generated builders of the `rocdl` dialect."""

from flydsl._mlir._expose import exposed

__getattr__, __dir__ = exposed("_rocdl_ops_gen", __name__)
