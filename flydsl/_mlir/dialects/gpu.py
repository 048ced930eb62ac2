"""The `gpu` dialect: kernels, ids, barriers, shuffles, launches."""

from flydsl._mlir._expose import exposed

__getattr__, __dir__ = exposed("gpu", __name__)
