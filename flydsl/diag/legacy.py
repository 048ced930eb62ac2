"""The reference's compile error, for code that catches it by name. A leaf: standard library only."""

from __future__ import annotations

import linecache
from dataclasses import dataclass, field


@dataclass
class SourceFrame:
    """A place: `line` counts from 1, `col` and `end_col` from 0 within the raw line."""

    filename: str
    line: int
    col: int = 0
    end_col: int | None = None

    def lines(self) -> list[str]:
        """Return the place, its source line and a caret."""
        out = [f'  File "{self.filename}", line {self.line}']
        text = linecache.getline(self.filename, self.line).rstrip("\n")
        if text.strip():
            cut = len(text) - len(text.lstrip())
            end = self.end_col if self.end_col and self.end_col > self.col else self.col + 1
            out += [f"    {text.lstrip()}", " " * (4 + max(self.col - cut, 0)) + "^" * (end - self.col)]
        return out


@dataclass
class DiagRecord:
    """One message with the places that led to it, innermost first."""

    message: str
    chain: list[SourceFrame] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """Return the message, the chain from the outermost place on, and the notes."""
        chain = [line for frame in reversed(self.chain) for line in frame.lines()]
        head = ["DSL Traceback (most recent operation last):"] if chain else []
        return [*head, *chain, f"error: {self.message}", *(f"note: {n}" for n in self.notes)]


class DSLCompileError(RuntimeError):
    """A kernel that could not be compiled."""

    def __init__(self, message: str, *, diagnostics: list[DiagRecord] | None = None):
        super().__init__(message)
        self.diagnostics = list(diagnostics or [])

    @property
    def message(self) -> str:
        return self.args[0]

    def __str__(self) -> str:
        said = [record for record in self.diagnostics if record.message]
        return "\n".join(line for record in said for line in record.lines()) if said else self.message
