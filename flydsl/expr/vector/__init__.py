"""Vectors in registers: the class, its aliases (Float32x4 ...), functions that make them, and the older
function set.
"""

from flydsl.expr.vector.alias import ALIASES, VectorAlias
from flydsl.expr.vector.core import Vector
from flydsl.expr.vector.elementwise import elementwise
from flydsl.expr.vector.legacy import (
    bitcast,
    broadcast,
    extract,
    extract_strided_slice,
    from_elements,
    insert,
    load_op,
    reduction,
    shuffle,
    splat,
    store,
)
from flydsl.expr.vector.make import empty_like, full, full_like, ones_like, zeros_like
from flydsl.expr.vector.reduction import ReductionOp

__all__ = [
    "ALIASES",
    "ReductionOp",
    "Vector",
    "VectorAlias",
    "bitcast",
    "broadcast",
    "elementwise",
    "empty_like",
    "extract",
    "extract_strided_slice",
    "from_elements",
    "full",
    "full_like",
    "insert",
    "load_op",
    "ones_like",
    "reduction",
    "shuffle",
    "splat",
    "store",
    "zeros_like",
]
