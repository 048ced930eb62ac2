"""Ops that use hardware instructions: copies, matrix operations, tiled partitions."""

from typing import Any

from flydsl.dialects.fly.base import Fly, Pure, ReadsWrites
from flydsl.ir import ext, ir

Operand, Result = ext.Operand, ext.Result


class AtomSetValue(Fly.Operation, name="atom_set_value", traits=[Pure]):
    """The atom with one state field set."""

    atom: Operand[Any]
    value: Operand[Any]
    field: ir.StringAttr
    result: Result[Any]


class Copy(Fly.Operation, name="copy", traits=[ReadsWrites]):
    """Copy `src` to `dst` with one atom call per element of the modes after the first.

    The optional last operand is a register tensor of i1: one predicate per atom call.
    """

    atom: Operand[Any]
    src: Operand[Any]
    dst: Operand[Any]
    pred: Operand[Any] | None


class CopyAtomCall(Fly.Operation, name="copy_atom_call", traits=[ReadsWrites]):
    """One call of a copy atom; the optional last operand is an i1."""

    atom: Operand[Any]
    src: Operand[Any]
    dst: Operand[Any]
    pred: Operand[Any] | None


class CopyAtomCallSsa(Fly.Operation, name="copy_atom_call_ssa", traits=[ReadsWrites]):
    """One call of a copy atom whose register side is a vector.

    A load has source pointer `src`, no `dst`, and returns the vector; a store has the vector as `src` and a pointer as `dst`; a copy
    from memory to memory has two pointers.
    """

    atom: Operand[Any]
    src: Operand[Any]
    dst: Operand[Any] | None
    pred: Operand[Any] | None
    result: Result[Any] | None


class Gemm(Fly.Operation, name="gemm", traits=[ReadsWrites]):
    """d = a * b + c on register fragments, one instruction per (m, n, k); `order` lists the steps."""

    atom: Operand[Any]
    d: Operand[Any]
    a: Operand[Any]
    b: Operand[Any]
    c: Operand[Any]
    scale_a: Operand[Any] | None
    scale_b: Operand[Any] | None


class MmaAtomCall(Fly.Operation, name="mma_atom_call", traits=[ReadsWrites]):
    """One matrix instruction on register fragments."""

    atom: Operand[Any]
    d: Operand[Any]
    a: Operand[Any]
    b: Operand[Any]
    c: Operand[Any]


class MmaAtomCallSsa(Fly.Operation, name="mma_atom_call_ssa", traits=[Pure]):
    """One matrix instruction on vectors."""

    atom: Operand[Any]
    a: Operand[Any]
    b: Operand[Any]
    c: Operand[Any]
    result: Result[Any]


class TiledCopyPartitionSrc(Fly.Operation, name="tiled_copy_partition_src", traits=[Pure]):
    """The part of a tensor that one thread of a tiled copy reads."""

    tiled: Operand[Any]
    view: Operand[Any]
    thread: Operand[Any]
    result: Result[Any]


class TiledCopyPartitionDst(Fly.Operation, name="tiled_copy_partition_dst", traits=[Pure]):
    """The part of a tensor that one thread of a tiled copy writes."""

    tiled: Operand[Any]
    view: Operand[Any]
    thread: Operand[Any]
    result: Result[Any]


class TiledCopyRetile(Fly.Operation, name="tiled_copy_retile", traits=[Pure]):
    """A fragment seen in the value grouping of a tiled copy."""

    tiled: Operand[Any]
    view: Operand[Any]
    result: Result[Any]


class TiledMmaPartition(Fly.Operation, name="tiled_mma_partition", traits=[Pure]):
    """The part of operand `operand` (A, B or C) that one thread of a tiled MMA holds."""

    tiled: Operand[Any]
    view: Operand[Any]
    thread: Operand[Any]
    operand: ir.StringAttr
    result: Result[Any]
