"""Functions made of primitives, under the name that users import: thread-value layouts, tiled copies, register
tensors, gather and scatter.
"""

from flydsl.expr.algebra import make_layout_tv
from flydsl.expr.atoms import (
    CopyAtom,
    MmaAtom,
    ThrCopy,
    ThrMma,
    TiledCopy,
    TiledMma,
    make_tiled_copy_A,
    make_tiled_copy_B,
    make_tiled_copy_C,
    make_tiled_copy_tv,
)
from flydsl.expr.copying import gather, scatter
from flydsl.expr.tensors import make_rmem_tensor

__all__ = [
    "CopyAtom",
    "MmaAtom",
    "ThrCopy",
    "ThrMma",
    "TiledCopy",
    "TiledMma",
    "gather",
    "make_layout_tv",
    "make_rmem_tensor",
    "make_tiled_copy_A",
    "make_tiled_copy_B",
    "make_tiled_copy_C",
    "make_tiled_copy_tv",
    "scatter",
]


def __getattr__(name: str):
    """Functions of the layout language were importable from here, too."""
    from flydsl.expr import primitive

    if name.startswith("_") or name not in primitive.__all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(primitive, name)
