"""RDNA3 and 3.5: gfx1100, gfx1101, gfx1102, gfx1151."""

from __future__ import annotations

from flydsl.arch.facts import (
    BufferFacts,
    Chip,
    CodeObjectFacts,
    LdsFacts,
    RegisterFacts,
    WaitcntFields,
)

# [I] RDNA3 section 12.1: 128 kB per processor of two compute units, 32 banks for each unit.
# [L] one workgroup may take 64 kB, in blocks of 128 dwords.
LDS = LdsFacts(bytes=65536, pool_bytes=131072, granule_bytes=512, banks=32)

# [L] wave32 numbers; SGPRs are not a limit: each wave has its own 128.
FULL_REGISTERS = RegisterFacts(
    vgprs=1536,
    vgpr_granule=24,
    vgprs_addressable=256,
    sgprs_addressable=106,
    sgpr_granule=128,
)
SMALL_REGISTERS = RegisterFacts(
    vgprs=1024,
    vgpr_granule=16,
    vgprs_addressable=256,
    sgprs_addressable=106,
    sgpr_granule=128,
)

# [I] RDNA3 section 5.6.
WAITCNT = WaitcntFields(vmcnt=((10, 6),), expcnt=((0, 3),), lgkmcnt=((4, 6),))

# [I] RDNA3 table of the buffer descriptor: as on CDNA, with bit 24 and a choice of range check.
BUFFER = BufferFacts(flags=7 << 12 | 4 << 15 | 1 << 24, has_oob_select=True)

FEATURES = frozenset({"dpp_row_share", "permlanex16", "wmma", "wmma_gfx11"})


def _chip(name: str, products: tuple[str, ...], registers: RegisterFacts, mach: int) -> Chip:
    return Chip(
        name=name,
        family="rdna3",
        products=products,
        wave_size=32,
        wave_sizes=(32, 64),
        waves_per_simd=16,
        simds=4,
        lds=LDS,
        registers=registers,
        buffer=BUFFER,
        waitcnt=WAITCNT,
        code_object=CodeObjectFacts(mach=mach),
        features=FEATURES,
    )


CHIPS = (
    _chip("gfx1100", ("RX 7900 XTX", "PRO W7900"), FULL_REGISTERS, 0x41),
    _chip("gfx1101", ("RX 7800 XT", "PRO W7700"), FULL_REGISTERS, 0x46),
    _chip("gfx1102", ("RX 7600",), SMALL_REGISTERS, 0x47),
    _chip("gfx1151", ("Ryzen AI Max",), FULL_REGISTERS, 0x4A),
)
