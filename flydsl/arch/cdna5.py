"""gfx1250 (FlyDSL's namespace for it is `cdna5`): wave32, large LDS, tensor data mover, clusters."""

from __future__ import annotations

from flydsl.arch.facts import Chip, CodeObjectFacts, LdsFacts, RegisterFacts
from flydsl.arch.rdna3 import BUFFER

# [L] 320 kB in blocks of 512 dwords. The number of banks is not published: 64 as on gfx950 is assumed.
LDS = LdsFacts(bytes=327680, pool_bytes=327680, granule_bytes=2048, banks=64)

# [L] up to 1,024 VGPRs for one wave (selected 256 at a time).
REGISTERS = RegisterFacts(
    vgprs=1024,
    vgpr_granule=16,
    vgprs_addressable=1024,
    sgprs_addressable=106,
    sgpr_granule=128,
)

GFX1250 = Chip(
    name="gfx1250",
    family="cdna5",
    products=("MI450",),
    wave_size=32,
    wave_sizes=(32,),
    waves_per_simd=16,
    simds=4,
    lds=LDS,
    registers=REGISTERS,
    buffer=BUFFER,
    waitcnt=None,
    code_object=CodeObjectFacts(mach=0x49),
    features=frozenset(
        {
            "async_lds",
            "bf16_alu",
            "bf16_cvt_pk",
            "bf16_global_atomics",
            "clusters",
            "cvt_scale_pk8",
            "dpp_row_share",
            "ds_load_tr",
            "fp8_cvt",
            "fp8_ocp",
            "global_load_tr",
            "packed_f32",
            "permlane_swap",
            "permlanex16",
            "split_barrier",
            "tanh",
            "tdm",
            "wait_counters",
            "wmma",
            "wmma_gfx1250",
            "wmma_scale",
        }
    ),
)

CHIPS = (GFX1250,)
