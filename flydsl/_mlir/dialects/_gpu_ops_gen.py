"""Generated builders of the `gpu` dialect."""

from flydsl._mlir._expose import exposed

__getattr__, __dir__ = exposed("_gpu_ops_gen", __name__)
