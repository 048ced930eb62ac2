"""Records of what a run found, and their text in the form of all other errors."""

from __future__ import annotations

from dataclasses import dataclass, field

from flydsl.diag import Span, snippet
from flydsl.diag.source import named


@dataclass
class Finding:
    """One fault or report. `span` is where it happened, `other` the second access of a pair.

    `block`, `thread`, `wave`, `lane`: of the first faulty lane; `other_lane`: (block, thread) of the second side.
    `index`: coordinate in the tensor, `offset`: bytes from its start; `count`: how many lanes or times.
    """

    kind: str
    message: str
    span: Span | None = None
    why: str = ""
    fix: str = ""
    kernel: str = ""
    block: tuple[int, int, int] | None = None
    thread: tuple[int, int, int] | None = None
    wave: int | None = None
    lane: int | None = None
    tensor: str | None = None
    index: tuple[int, ...] | None = None
    offset: int | None = None
    other: Span | None = None
    other_thread: tuple[int, int, int] | None = None
    other_block: tuple[int, int, int] | None = None
    missing: str | None = None
    severity: str = "error"
    count: int = 1
    callers: tuple[Span, ...] = field(default=())

    def key(self) -> tuple:
        """Findings with equal keys are one finding that happened several times."""
        return (self.kind, self.span, self.other, self.tensor if self.kind in ("bounds", "never-written", "never-read") else None)

    @property
    def place(self) -> str:
        """Block, thread, wave and lane in words."""
        if self.block is None and self.thread is None:
            return ""
        parts = [f"block {self.block}"] if self.block is not None else []
        if self.thread is not None:
            parts.append(f"thread {self.thread}")
        if self.wave is not None:
            parts.append(f"wave {self.wave} lane {self.lane}")
        return ", ".join(parts)

    def __str__(self) -> str:
        lines = [f"{self.severity}[FLY_SIM_{self.kind.upper().replace('-', '_')}]: {self.message}"]
        if self.span is not None:
            span = named(self.span) if self.callers else self.span
            lines += snippet(span, caller=tuple(map(named, self.callers)))
        if self.place:
            lines.append(f"  at: {self.place}" + (f" of kernel `{self.kernel}`" if self.kernel else ""))
        if self.other is not None:
            lines.append("  other access:")
            lines += snippet(self.other)
        if self.other_thread is not None:
            block = f"block {self.other_block}, " if self.other_block is not None else ""
            lines.append(f"  by: {block}thread {self.other_thread}")
        if self.missing:
            lines.append(f"  missing: {self.missing}")
        if self.why:
            lines.append(f"  why: {self.why}")
        if self.fix:
            lines.append(f"  fix: {self.fix}")
        if self.count > 1:
            lines.append(f"  seen {self.count} times")
        return "\n".join(lines)
