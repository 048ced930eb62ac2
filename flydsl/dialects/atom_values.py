"""Atoms and tiled ops as plain values of Fly types: importing this has `type_of` and `value_of` know them. Imports no
MLIR.

The value of an MMA atom is its operation (`atoms.mma_ops`), so every class of those is registered. The laws of the
ops on them are in `laws`.
"""

from __future__ import annotations

from typing import Any

from flydsl.atoms.copy_ops import CopyAtom
from flydsl.atoms.mma_ops import MFMA, WMMA, MFMAScale, MmaOp, UniversalFMA, WMMAScale
from flydsl.atoms.parse import parse_copy_atom, parse_mma_atom, parse_tiled_copy, parse_tiled_mma
from flydsl.atoms.tiled_copy import TiledCopy
from flydsl.atoms.tiled_mma import TiledMma
from flydsl.dialects.values import register_kind

MMA_OPS: tuple[type[MmaOp], ...] = (MFMA, MFMAScale, WMMA, WMMAScale, UniversalFMA)


def print_mma_atom(op: MmaOp) -> str:
    """Return the whole type of the atom of a matrix operation."""
    return f"!fly.mma_atom<{op.text}>"


register_kind("copy_atom", CopyAtom, parse_copy_atom)
register_kind("tiled_copy", TiledCopy, parse_tiled_copy)
register_kind("tiled_mma", TiledMma, parse_tiled_mma)
for _cls in MMA_OPS:
    register_kind("mma_atom", _cls, parse_mma_atom, print_mma_atom)


def state_fields(atom: Any) -> dict[str, str]:
    """Return the state of an atom, name -> element type; of a tiled op that of its atom."""
    return getattr(atom, "atom", atom).state_fields
