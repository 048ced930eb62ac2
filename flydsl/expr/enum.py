"""Enumerations of `fx`: memories, atomics, matrix operands, traversal orders."""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Any

from flydsl.dialects.values import BUFFER_DESC


class AddressSpace(IntEnum):
    """Where a pointer points; LDS is Shared, a lane's own fragments are Register."""

    Generic = 0
    Global = 1
    Shared = 2
    Register = 3


class TargetAddressSpace(Enum):
    """Memories that only some chips have: BufferDesc is memory behind a buffer descriptor."""

    BufferDesc = BUFFER_DESC


SPACES: dict[str, AddressSpace | TargetAddressSpace] = {
    "generic": AddressSpace.Generic,
    "global": AddressSpace.Global,
    "shared": AddressSpace.Shared,
    "register": AddressSpace.Register,
    BUFFER_DESC: TargetAddressSpace.BufferDesc,
}
_NAMES = {space: name for name, space in SPACES.items()}


def space_name(space: Any) -> str:
    """Return how IR spells an address space given as enum, number, printed attribute or name."""
    if isinstance(space, int):
        return _NAMES[AddressSpace(space)]
    if isinstance(space, TargetAddressSpace):
        return space.value
    text = str(space)
    for name in SPACES:
        if name.removeprefix("#fly_rocdl.") in text:
            return name
    return _NAMES[AddressSpace[text]]


def is_generic_address_space(address_space: Any, expected: AddressSpace) -> bool:
    """Return whether an address space is the given one of those that all targets have."""
    return isinstance(address_space, AddressSpace) and address_space == expected


def is_target_address_space(address_space: Any, expected: TargetAddressSpace) -> bool:
    """Return whether an address space is the given one of those that only some targets have."""
    return isinstance(address_space, TargetAddressSpace) and address_space is expected


def address_space_from_attr(address_space: Any) -> AddressSpace | TargetAddressSpace:
    """Return the enumerator of an address space in any form."""
    return SPACES[space_name(address_space)]


class AtomicOp(IntEnum):
    """What an atomic copy does at the destination."""

    Add = 0
    Max = 1
    Min = 2
    And = 3
    Or = 4
    Inc = 5
    Dec = 6


class AtomicOrdering(Enum):
    """How an atomic access is ordered with other memory accesses."""

    NotAtomic = "not_atomic"
    Unordered = "unordered"
    Monotonic = "monotonic"
    Acquire = "acquire"
    Release = "release"
    AcqRel = "acq_rel"
    SeqCst = "seq_cst"


class SyncScope:
    """Which threads an atomic access is ordered with; `fx.rocdl.SyncScope` has those of AMD chips."""

    System = ""
    SingleThread = "singlethread"


class CachePolicy(IntEnum):
    """Where a cached load may be kept."""

    CacheGlobal = 0
    CacheAlways = 1


class MmaOperand(IntEnum):
    """The operands of d = a * b + c."""

    A = 0
    B = 1
    C = 2
    D = 3


class GemmTraversalOrder(IntEnum):
    """In which order `fx.gemm` steps through (m, n, k): letters go from the innermost loop to the outermost.

    Serpentine orders turn round at the end of each row instead of jumping back.
    """

    KMN = 0
    KNM = 1
    MKN = 2
    MNK = 3
    NKM = 4
    NMK = 5
    KMN_Serpentine = 6
    KNM_Serpentine = 7
    MKN_Serpentine = 8
    MNK_Serpentine = 9
    NKM_Serpentine = 10
    NMK_Serpentine = 11
