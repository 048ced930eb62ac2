"""CDNA3: gfx942."""

from __future__ import annotations

from flydsl.arch.facts import (
    BufferFacts,
    Chip,
    CodeObjectFacts,
    LdsFacts,
    RegisterFacts,
    WaitcntFields,
)

# [I] CDNA3 section 11.1: 32 banks of 512 dwords. [L] blocks of 128 dwords.
LDS = LdsFacts(bytes=65536, pool_bytes=65536, granule_bytes=512, banks=32)

# [L] 512 registers per lane, VGPRs and AGPRs in one file; 800 SGPRs per SIMD.
REGISTERS = RegisterFacts(
    vgprs=512,
    vgpr_granule=8,
    vgprs_addressable=256,
    agprs_addressable=256,
    sgprs=800,
    sgprs_addressable=102,
    sgpr_granule=16,
)

# [I] CDNA3 section 4.4: vmcnt has its two high bits at the top of the word.
WAITCNT = WaitcntFields(vmcnt=((0, 4), (14, 2)), expcnt=((4, 3),), lgkmcnt=((8, 4),))

# [I] CDNA3 table of the buffer descriptor: number format float, data format 32.
BUFFER = BufferFacts(flags=7 << 12 | 4 << 15, has_oob_select=False)

CDNA_FEATURES = frozenset(
    {
        "agpr",
        "bf16_global_atomics",
        "dpp_row_bcast",
        "f64_matrix",
        "fp8_cvt",
        "lds_dma",
        "mfma",
        "packed_f32",
    }
)

GFX942 = Chip(
    name="gfx942",
    family="cdna3",
    products=("MI300A", "MI300X", "MI325X"),
    wave_size=64,
    wave_sizes=(64,),
    waves_per_simd=8,
    simds=4,
    lds=LDS,
    registers=REGISTERS,
    buffer=BUFFER,
    waitcnt=WAITCNT,
    code_object=CodeObjectFacts(mach=0x4C),
    features=CDNA_FEATURES | {"fp8_fnuz", "mfma_xf32"},
)

CHIPS = (GFX942,)
