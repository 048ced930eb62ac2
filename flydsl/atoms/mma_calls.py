"""The LLVM call of an MMA atom: result, name and arguments with the atom's constants filled in.

Written with `_` for run-time operands, as the oracle data and the tests compare it. The rule
that emits the call lives in `targets/rocm`; it takes operand order and constants from here.
"""

from __future__ import annotations

from .elements import FORMAT_CODE, llvm_type
from .matrix_rows import MatrixRow
from .mma_ops import MmaOp


def constants(op: MmaOp) -> dict[str, tuple[str, int]]:
    """Return the constant operands an atom of this kind can have: name -> (LLVM type, value)."""
    given = {
        name: getattr(op, name, 0)
        for name in (
            "sign_a",
            "sign_b",
            "clamp",
            "mod_c",
            "reuse_a",
            "reuse_b",
            "opsel_a",
            "opsel_b",
        )
    }
    types = {"mod_c": "i16", "opsel_a": "i32", "opsel_b": "i32"}
    out = {name: (types.get(name, "i1"), int(value)) for name, value in given.items()}
    for name in ("cbsz", "abid", "blgp", "scale_fmt_a", "scale_fmt_b"):
        out[name] = ("i32", 0)
    out["fmt_a"] = ("i32", FORMAT_CODE.get(op.a, 0))
    out["fmt_b"] = ("i32", FORMAT_CODE.get(op.b, 0))
    out["opsel"] = ("i1", 0)
    return out


def arguments(op: MmaOp, row: MatrixRow) -> list[tuple[str, str, int | None]]:
    """Return (operand, LLVM type, constant or None) in the order in which the intrinsic takes
    them.
    """
    data = {"a": row.regs[0], "b": row.regs[1], "c": row.regs[2]}
    fixed = constants(op)
    out: list[tuple[str, str, int | None]] = []
    for name in row.operands.split():
        if name in data:
            out.append((name, llvm_type(data[name]), None))
        elif name in ("scale_a", "scale_b"):
            out.append((name, row.scale_type, None))
        else:
            out.append((name, *fixed[name]))
    return out


def call_text(op: MmaOp, row: MatrixRow) -> tuple[str, str, str]:
    """Return (result type, intrinsic, argument text) of the call."""
    shown = [f"{kind} {_constant(kind, value)}" for _, kind, value in arguments(op, row)]
    return llvm_type(row.regs[2]), row.llvm_name, ", ".join(shown)


def _constant(kind: str, value: int | None) -> str:
    if value is None:
        return "_"
    return str(bool(value)).lower() if kind == "i1" else str(value)
