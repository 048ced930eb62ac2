"""Checks before LLVM sees a module: the translation to LLVM IR ends the process on anything it does not know.

Two walks. `check_lowered` looks at the module a target receives (element types, LDS, workgroup size).
`check_llvm` looks at
the result of the conversions: only `llvm` and `rocdl` ops, no small floats, every called function defined or
an intrinsic.
"""

from __future__ import annotations

import re
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
from flydsl.ir.location import span_of_location
from flydsl.targets.rocm.llvm_text import INTRINSIC_PREFIX

_CONTAINERS = frozenset({"builtin.module", "gpu.module"})
_SMALL_FLOATS = ("f8E", "f6E", "f4E")


def place(op: ir.Operation) -> Span | None:
    """Return where in the user's source `op` comes from, innermost frame, or None."""
    return span_of_location(op.location)


@dataclass
class ModuleFacts:
    """What the walk over the LLVM dialect saw: decides where code may be generated and which attributes hold."""

    intrinsics: dict[str, Span | None] = field(default_factory=dict)
    rocdl_ops: dict[str, Span | None] = field(default_factory=dict)
    llvm_ops: set[str] = field(default_factory=set)
    has_inline_asm: bool = False
    odd_types: set[str] = field(default_factory=set)
    private_bytes: int = 0
    calls: dict[str, Span | None] = field(default_factory=dict)


def check_types(ops: list[ir.Operation]) -> set[str]:
    """Refuse values of 8-, 6- and 4-bit float types; return types that LLVM may have trouble with.

    Raises   SmallFloatUnsupported: with the op's place
    """
    seen: dict[ir.Type, str] = {}
    for op in ops:
        for result in op.results:
            kind = result.type
            if kind not in seen:
                seen[kind] = str(kind)
                if any(small in seen[kind] for small in _SMALL_FLOATS):
                    raise SmallFloatUnsupported(op=op.name, dtype=seen[kind], at=place(op))
    return {text for text in seen.values() if _is_odd(text)}


_USUAL = re.compile(r"\b(?:i1|i8|i16|i32|i64|f16|bf16|f32|f64|index)\b")


def _is_odd(text: str) -> bool:
    scalars = re.findall(r"(?<![.\w])(?:i|bf|f|tf|ui|si)\d+\b", text.replace("x", " "))
    return any(not _USUAL.fullmatch(s) for s in scalars)


def check_llvm(
    groups: dict[str, list[ir.Operation]], defined: set[str], chip: Chip, has_libraries: bool = False
) -> ModuleFacts:
    """Return the facts of a module of `llvm` and `rocdl` ops, given by their names; refuse every other op.

    Raises   RocmOpLeft: an op or a cast that no conversion removed
             UndefinedSymbol: a call of a function that nothing defines (with libraries, linking finds that)
    """
    facts = ModuleFacts()
    for name, ops in groups.items():
        if name.startswith("rocdl."):
            facts.rocdl_ops[name] = place(ops[0])
        elif name.startswith("llvm."):
            facts.llvm_ops.add(name)
        elif name not in _CONTAINERS:
            raise RocmOpLeft(op=name, detail=_detail(ops[0]), at=place(ops[0]))
    for op in groups.get("llvm.call", ()):
        _note_call(op, defined, facts, chip, has_libraries)
    for op in groups.get("llvm.call_intrinsic", ()):
        facts.intrinsics.setdefault(ir.StringAttr(op.attributes["intrin"]).value, place(op))
    facts.private_bytes = sum(map(_alloca_bytes, groups.get("llvm.alloca", ())))
    facts.has_inline_asm = "llvm.inline_asm" in facts.llvm_ops
    return facts


def _note_call(op: ir.Operation, defined: set[str], facts: ModuleFacts, chip: Chip, has_libraries: bool) -> None:
    callee = op.attributes["callee"].value if "callee" in op.attributes else ""
    if callee.startswith(INTRINSIC_PREFIX):
        facts.intrinsics.setdefault(callee.removeprefix(INTRINSIC_PREFIX), place(op))
    elif callee not in defined and not (has_libraries and callee):
        raise UndefinedSymbol(arch=chip.name, symbols=(callee,), symbols_text=callee or "(indirect)", at=place(op))
    else:
        facts.calls.setdefault(callee, place(op))


_UNBOUNDED = 1 << 40


def _alloca_bytes(op: ir.Operation) -> int:
    """Return the bytes of a private array per lane; very many when their number is not static."""
    count = op.operands[0].owner
    if count.name != "llvm.mlir.constant":
        return _UNBOUNDED
    return ir.IntegerAttr(count.attributes["value"]).value * type_bytes(
        str(ir.TypeAttr(op.attributes["elem_type"]).value)
    )


def type_bytes(text: str) -> int:
    """Return the bytes of an LLVM array, vector or scalar type, by its printed form."""
    count = 1
    while (found := re.match(r"(?:!llvm\.)?(?:array|vector|vec)<(\d+) ?x ?(.*)>$", text)) is not None:
        count *= int(found[1])
        text = found[2]
    bits = 64 if "ptr" in text else int(re.search(r"\d+", text)[0])
    return count * -(-bits // 8)


def _detail(op: ir.Operation) -> str:
    types = " -> ".join("(" + ", ".join(str(v.type) for v in values) + ")" for values in (op.operands, op.results))
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
        raise LdsLimit(kernel=kernel, used=used, arch=chip.name, limit=chip.lds.bytes, breakdown=parts, at=at)
    return used
