"""Register fragments that nothing wrote: `ub.poison` followed through moves to the op that computes with it or stores it.

Decided while translating, so kernels without such a use cost nothing. A fragment that a loop carries is unwritten on the
first trip only; what a branch or a select makes of it is not followed.
"""

from __future__ import annotations

from typing import Any

from flydsl.targets.sim.translate.values import Piece, Scalar, Value, Vector

MOVES = frozenset({"arith.bitcast", "vector.bitcast", "llvm.bitcast", "arith.extf", "arith.truncf", "arith.extsi", "arith.extui",
                   "arith.trunci", "arith.sitofp", "arith.uitofp", "arith.fptosi", "arith.fptoui"})  # fmt: skip
CHOICES = frozenset({"arith.select", "arith.constant"})
STORES = frozenset({"llvm.store", "rocdl.raw.ptr.buffer.store"})


def uses_values(name: str) -> bool:
    """Return whether an op computes with its operands or makes them visible."""
    if name in STORES or "mfma" in name or "wmma" in name:
        return True
    return name.startswith(("arith.", "math.", "vector.fma", "vector.reduction")) and name not in MOVES and name not in CHOICES


class Poisons:
    """Names of the text that hold unwritten registers, each with the condition under which it still does."""

    def __init__(self) -> None:
        self.guards: dict[str, str | None] = {}

    def names(self, value: Value) -> list[str]:
        """Return the unwritten names in a value."""
        if isinstance(value, Scalar):
            return [value.text] if value.text in self.guards else []
        if isinstance(value, Vector):
            return [p.text for p in value.pieces if p.text in self.guards]
        return []

    def check(self, t: Any, op: Any) -> None:
        """Emit a report if the op uses an unwritten register; follow it through moves."""
        operands = list(op.operands)[:1] if op.name in STORES else list(op.operands)
        found = [n for v in operands if v in t.values for n in self.names(t.values[v])]
        if not found:
            return
        guards = {self.guards[n] for n in found}
        condition = "" if None in guards else f"if {' or '.join(sorted(g for g in guards if g))}: "
        t.emit(f"{condition}M.unwritten_register({t.site()}, {t.mask})")

    def follow(self, t: Any, op: Any) -> None:
        """Mark the result of a move of nothing but unwritten registers."""
        source = t.values.get(op.operands[0])
        names = self.names(source) if source is not None else []
        parts = 1 if isinstance(source, Scalar) else len(source.pieces) if isinstance(source, Vector) else 0
        if not names or len(names) != parts:
            return
        for name in texts(t.values[op.results[0]]):
            self.guards.setdefault(name, self.guards[names[0]])


def texts(value: Value) -> list[str]:
    """Return the names that a value consists of."""
    if isinstance(value, Scalar):
        return [value.text]
    return [p.text for p in value.pieces] if isinstance(value, Vector) else []


def unwritten(t: Any, elem: str) -> Scalar:
    """Return the zero that stands for an unwritten register; its name is not shared with the constant 0."""
    zero = t.constant(elem, 0)
    name = t.module_constant(f"({t.constant_text(zero)})")
    t.poisons.guards[name] = None
    return Scalar(name, zero.type)


def piece_of(scalar: Scalar, n: int) -> Piece:
    """Return `n` elements of an unwritten register."""
    return Piece(scalar.text, 0, n, 0)
