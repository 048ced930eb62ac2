"""Where the oracle data lie: `../shared` beside the repository, or the folder named by FLYDSL_SHARED."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def shared(*parts: str) -> Path:
    """Return a shared file; skips the test, saying so, when it is not there."""
    base = Path(os.environ.get("FLYDSL_SHARED") or ROOT.parent / "shared")
    path = base.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"oracle data absent: {'/'.join(parts)} (set FLYDSL_SHARED)")
    return path


def golden_rows() -> list[tuple[str, ...]]:
    """Return (expression, what the reference printed) of the golden layout records; none without the shared data."""
    path = Path(os.environ.get("FLYDSL_SHARED") or ROOT.parent / "shared") / "spec" / "golden_layout.tsv"
    lines = path.read_text().splitlines() if path.exists() else []
    return [tuple(line.split("\t")[:2]) for line in lines if line and not line.startswith("#")]
