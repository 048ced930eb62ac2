"""RDNA4: gfx1200, gfx1201."""

from __future__ import annotations

from flydsl.arch.facts import Chip, CodeObjectFacts
from flydsl.arch.rdna3 import BUFFER, FULL_REGISTERS, LDS, WAITCNT

FEATURES = frozenset(
    {
        "bf16_global_atomics",
        "dpp_row_share",
        "fp8_cvt",
        "fp8_ocp",
        "global_load_tr",
        "permlanex16",
        "split_barrier",
        "wait_counters",
        "wmma",
        "wmma_gfx12",
    }
)


def _chip(name: str, products: tuple[str, ...], mach: int) -> Chip:
    # [I] RDNA4 has one wait per counter; LLVM still takes the one-word form of RDNA3 and splits it.
    return Chip(
        name=name,
        family="rdna4",
        products=products,
        wave_size=32,
        wave_sizes=(32, 64),
        waves_per_simd=16,
        simds=4,
        lds=LDS,
        registers=FULL_REGISTERS,
        buffer=BUFFER,
        waitcnt=WAITCNT,
        code_object=CodeObjectFacts(mach=mach),
        features=FEATURES,
    )


CHIPS = (
    _chip("gfx1200", ("RX 9060 XT",), 0x48),
    _chip("gfx1201", ("RX 9070 XT", "AI PRO R9700"), 0x4E),
)
