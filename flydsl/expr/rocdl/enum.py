"""Enumerations of AMD chips."""

from flydsl.expr.enum import SyncScope as _AnyChip
from flydsl.expr.enum import TargetAddressSpace

AddressSpace = TargetAddressSpace

__all__ = ["AddressSpace", "SyncScope", "TargetAddressSpace"]


class SyncScope(_AnyChip):
    """Which threads an atomic access is ordered with. The `OneAs` forms order accesses to one address space only."""

    OneAs = "one-as"
    Agent = "agent"
    AgentOneAs = "agent-one-as"
    Workgroup = "workgroup"
    WorkgroupOneAs = "workgroup-one-as"
    Wavefront = "wavefront"
    WavefrontOneAs = "wavefront-one-as"
    SingleThreadOneAs = "singlethread-one-as"
