"""Checks before LLVM sees a module: the translation to LLVM IR ends the process on anything it does not know.

Two walks. `check_lowered` looks at the module a target receives (element types, LDS, workgroup size). `check_llvm` looks at
the result of the conversions: only `llvm` and `rocdl` ops, no small floats, every called function defined or an intrinsic.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from flydsl.arch import Chip
from flydsl.diag import Span
from flydsl.diag.errors.target import (
    LdsLimit,
    RocmOpLeft,
    SmallFloatUnsupported,
    UndefinedSymbol,
    WorkgroupLimit,
)
from flydsl.ir import ir
from flydsl.targets.rocm import walks

_CONTAINERS = frozenset({"builtin.module", "gpu.module"})
_SMALL_FLOATS = ("f8E", "f6E", "f4E")


def place(op: ir.Operation) -> Span | None:
    """Return where in the user's source `op` comes from, innermost frame, or None."""
    return span_of_location(op.location)


def span_of_location(location: ir.Location) -> Span | None:
    """Return the first source place that `location` names."""
    while isinstance(location, (ir.CallSiteLoc, ir.NameLoc, ir.FusedLoc)):
        if isinstance(location, ir.CallSiteLoc):
            location = location.callee
        elif isinstance(location, ir.NameLoc):
            location = location.child_loc
        else:
            location = location.locations[0]
    if isinstance(location, ir.FileLineColLoc):
        return Span(location.filename, location.start_line, location.start_col)
    return None


@dataclass
class ModuleFacts:
    """What the walk over the LLVM dialect saw: decides where code may be generated and which attributes hold."""

    op_count: int = 0
    intrinsics: dict[str, Span | None] = field(default_factory=dict)
    rocdl_ops: set[str] = field(default_factory=set)
    llvm_ops: set[str] = field(default_factory=set)
    has_inline_asm: bool = False
    calls: dict[str, Span | None] = field(default_factory=dict)


def check_types(root: ir.Operation) -> None:
    """Refuse values of 8-, 6- and 4-bit float types.

    Raises   SmallFloatUnsupported: with the op's place
    """
    verdicts: dict[ir.Type, bool] = {}

    def visit(op: ir.Operation) -> None:
        for result in op.results:
            kind = result.type
            bad = verdicts.get(kind)
            if bad is None:
                text = str(kind)
                bad = verdicts[kind] = any(small in text for small in _SMALL_FLOATS)
            if bad:
                raise SmallFloatUnsupported(op=op.name, dtype=str(kind), at=place(op))

    walks.each(root, visit)


def check_llvm(root: ir.Operation, defined: set[str]) -> ModuleFacts:
    """Return the facts of a module of `llvm` and `rocdl` ops; refuse every other op.

    Raises   RocmOpLeft: an op or a cast that no conversion removed
             UndefinedSymbol: a call of a function that nothing defines
    """
    facts = ModuleFacts()
    rocdl_ops, llvm_ops = facts.rocdl_ops, facts.llvm_ops

    def visit(op: ir.Operation) -> None:
        name = op.name
        facts.op_count += 1
        if name.startswith("rocdl."):
            rocdl_ops.add(name)
        elif name.startswith("llvm."):
            llvm_ops.add(name)
            if name == "llvm.call":
                _note_call(op, defined, facts)
        elif name not in _CONTAINERS:
            raise RocmOpLeft(op=name, detail=_detail(op), at=place(op))

    walks.each(root, visit)
    facts.has_inline_asm = "llvm.inline_asm" in llvm_ops
    return facts


def _note_call(op: ir.Operation, defined: set[str], facts: ModuleFacts) -> None:
    callee = op.attributes["callee"].value if "callee" in op.attributes else ""
    if callee.startswith("llvm."):
        facts.intrinsics.setdefault(callee, place(op))
    elif callee not in defined:
        raise UndefinedSymbol(arch="this module", symbols=(callee,), symbols_text=callee or "(indirect)", at=place(op))
    else:
        facts.calls.setdefault(callee, place(op))


def _detail(op: ir.Operation) -> str:
    types = " -> ".join(
        "(" + ", ".join(str(v.type) for v in values) + ")" for values in (op.operands, op.results)
    )
    return f" of type {types}"


def check_workgroup(kernel: str, workgroup: tuple[int, ...] | None, chip: Chip, at: Span | None) -> None:
    """Refuse a known workgroup that is larger than the chip's."""
    threads = 1
    for extent in workgroup or ():
        threads *= extent
    if threads > chip.max_workgroup:
        raise WorkgroupLimit(kernel=kernel, threads=threads, arch=chip.name, limit=chip.max_workgroup, at=at)


def check_lds(kernel: str, arrays: dict[str, int], chip: Chip, at: Span | None) -> int:
    """Return the LDS bytes of `arrays` (name to bytes, static ones).

    Raises   LdsLimit: with the bytes of each array
    """
    used = sum(arrays.values())
    if used > chip.lds.bytes:
        parts = ", ".join(f"{name} {size}" for name, size in sorted(arrays.items(), key=lambda kv: -kv[1]))
        raise LdsLimit(
            kernel=kernel, used=used, arch=chip.name, limit=chip.lds.bytes, breakdown=parts, at=at
        )
    return used
