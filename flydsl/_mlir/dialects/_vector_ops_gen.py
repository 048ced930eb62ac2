"""Generated builders of the `vector` dialect."""

from flydsl._mlir._expose import exposed

__getattr__, __dir__ = exposed("_vector_ops_gen", __name__)
