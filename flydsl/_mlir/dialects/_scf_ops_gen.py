"""Generated builders of the `scf` dialect."""

from flydsl._mlir._expose import exposed

__getattr__, __dir__ = exposed("_scf_ops_gen", __name__)
