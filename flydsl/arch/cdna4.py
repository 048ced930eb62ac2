"""CDNA4: gfx950."""

from __future__ import annotations

from flydsl.arch.cdna3 import BUFFER, CDNA_FEATURES, REGISTERS, WAITCNT
from flydsl.arch.facts import Chip, CodeObjectFacts, LdsFacts

# [I] CDNA4 section 11.1: 64 banks of 640 dwords. [L] blocks of 320 dwords.
LDS = LdsFacts(bytes=163840, pool_bytes=163840, granule_bytes=1280, banks=64)

GFX950 = Chip(
    name="gfx950",
    family="cdna4",
    products=("MI350X", "MI355X"),
    wave_size=64,
    wave_sizes=(64,),
    waves_per_simd=8,
    simds=4,
    lds=LDS,
    registers=REGISTERS,
    buffer=BUFFER,
    waitcnt=WAITCNT,
    code_object=CodeObjectFacts(mach=0x4F),
    features=CDNA_FEATURES
    | {
        "bf16_cvt_pk",
        "cvt_scalef32",
        "ds_read_tr",
        "fp8_ocp",
        "lds_dma_b128",
        "mfma_double_k",
        "mfma_scale",
        "permlane_swap",
    },
)

CHIPS = (GFX950,)
