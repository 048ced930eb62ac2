"""The AMD part of the Fly dialect."""

from flydsl.atoms import BufferAtomic as CopyOpCDNA3BufferAtomicType
from flydsl.atoms import BufferCopy as CopyOpCDNA3BufferCopyType
from flydsl.atoms import BufferCopyLDS as CopyOpCDNA3BufferCopyLDSType
from flydsl.expr.enum import TargetAddressSpace

__all__ = [
    "CopyOpCDNA3BufferAtomicType",
    "CopyOpCDNA3BufferCopyLDSType",
    "CopyOpCDNA3BufferCopyType",
    "TargetAddressSpace",
]
