"""The opt-in checks of results as text: floats that stop being finite, i32 arithmetic that wraps, lossy conversions.

Integers of the lowered IR have no sign. Whether a sum of 32 bits wraps as a signed or as an unsigned number is read
from what its result is used for: an extension, a division, a comparison, an address.
"""

from __future__ import annotations

from typing import Any

WRAPPING = ("arith.addi", "arith.subi", "arith.muli")
FINITE_DIALECTS = ("arith.", "math.", "rocdl.", "vector.fma")
CONVERSIONS = {
    "truncf": "float", "fptrunc": "float", "convertf": "float", "fptosi": "to signed", "fptoui": "to unsigned",
    "sitofp": "from signed", "uitofp": "from unsigned",
}  # fmt: skip
SIGNED = frozenset(
    "extsi sext index_cast divsi remsi sdiv srem shrsi ashr maxsi minsi floordivsi ceildivsi sitofp getelementptr".split()
)
UNSIGNED = frozenset("extui zext index_castui divui remui udiv urem shrui lshr maxui minui ceildivui uitofp".split())
THROUGH = frozenset("addi subi muli shli select".split())
DEPTH = 6  # uses of uses that are looked at


def check_value(t: Any, result: Any, name: str, operands: list[str], has_elements: bool) -> None:
    """Emit the checks of one result, `name` in the text."""
    type_, op = t.type_of(result), t.op.name
    end = f"{t.mask}, {has_elements})"
    texts = "".join(f"{o}, " for o in operands)
    if "nan" in t.value_checks and type_.is_float and op.startswith(FINITE_DIALECTS):
        t.emit(f"M.check_finite({t.site()}, {name}, ({texts}), {end}")
    if "overflow" in t.value_checks and type_.elem == "i32" and op in WRAPPING:
        signs = operand_signs(t) if uses_of(result, DEPTH) == {"unsigned"} else "ss"
        t.emit(f"M.check_overflow({t.site()}, '{op[6:]}', '{signs}', {texts}{end}")
    kind = CONVERSIONS.get(op.partition(".")[2])
    if "lossy" in t.value_checks and kind is not None and t.type_of(t.op.operands[0]).elem != "i1":
        t.emit(f"M.check_lossy({t.site()}, '{kind}', {operands[0]}, {name}, {end}")


def operand_signs(t: Any) -> str:
    """Return u or s per operand of an unsigned operation: `x - 1` arrives as the sum of x and -1."""
    constants = [t.const_of(v) for v in list(t.op.operands)[:2]]
    return "".join("s" if c is not None and c < 0 else "u" for c in constants)


def uses_of(value: Any, depth: int) -> set[str]:
    """Return how the result is read: signed, unsigned, both or (stores, bit operations) neither."""
    found: set[str] = set()
    for use in value.uses:
        found |= use_of(use.owner.operation, use.operand_number, depth)
    return found


def use_of(op: Any, operand: int, depth: int) -> set[str]:
    """Return how one op reads an operand."""
    name = op.name.partition(".")[2]
    if name in SIGNED:
        return {"signed"}
    if name in UNSIGNED or name.startswith("raw.ptr.buffer."):
        return {"unsigned"}
    if name in ("cmpi", "icmp"):
        predicate = int(op.attributes["predicate"].value)
        return set() if predicate < 2 else {"signed" if predicate < 6 else "unsigned"}
    if name in THROUGH and depth:
        return uses_of(op.results[0], depth - 1)
    return set()
