"""Facts of generated code for tests: a kernel that got slower without getting wrong fails.

from flydsl.testing import assert_isa
assert_isa(flyc.compile(gemm, A, B, C), spills=0, mfma__ge=32, vgprs__le=128, matrix_share__ge=0.4)
"""

from __future__ import annotations

from typing import Any

from flydsl.targets.rocm.isa_stats import KernelStats, assert_stats, fact_names, isa_stats

__all__ = ["KernelStats", "assert_isa", "fact_names", "isa_facts"]


def isa_facts(compiled: Any, kernel: str | None = None, arch: str | None = None) -> dict[str, KernelStats]:
    """Return the facts of each kernel of a compiled function, an artifact, a jit function (its last compile) or
    ISA text.

    Raises   KeyError: no kernel of that name; TypeError: there is no code in it
    """
    last = getattr(compiled, "_last_compiled", None)
    if isinstance(compiled, str):
        stats = isa_stats(compiled, arch)
    elif hasattr(compiled, "stats"):
        stats = compiled.stats
    elif last is not None:
        stats = last[1].stats
    else:
        raise TypeError(
            f"{type(compiled).__name__} holds no compiled code: pass what flyc.compile returned, an artifact, "
            "a jit function that was called, or ISA text"
        )
    if kernel is None:
        return stats
    named = {n: s for n, s in stats.items() if kernel in (n, n.rsplit("_", 1)[0])}
    if not named:
        raise KeyError(f"no kernel {kernel!r}; there are: {', '.join(stats)}")
    return named


def assert_isa(compiled: Any, kernel: str | None = None, arch: str | None = None, **facts: float) -> None:
    """Check facts of generated code: `assert_isa(compiled, spills=0, mfma__ge=32)`; `fact_names()` lists them.

    The comparison is a suffix: `__ge`, `__le`, `__gt`, `__lt`, `__ne`, none for equality. `kernel` may leave out
    the number
    behind the name.
    Raises   AssertionError: lists each fact that does not hold; AttributeError: no such fact
    """
    assert_stats(list(isa_facts(compiled, kernel, arch).values()), **facts)
