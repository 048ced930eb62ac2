"""The records that describe a chip; the chips themselves are in the family modules beside this one.

Sources, named in the family modules by these letters:
  [L] LLVM, AMDGPU backend user guide and `AMDGPUBaseInfo` (register totals, granules, LDS blocks, ELF flags);
      tests/unit/rocm/test_arch.py compares the register and LDS numbers with what LLVM itself prints.
  [I] AMD's instruction-set manual of the family (instructions, counters, LDS banks).
  [P] AMD's product pages (which card or accelerator is which chip).
"""

from __future__ import annotations

from dataclasses import field

from flydsl.utils.record import record


@record
class LdsFacts:
    """Local data share of one workgroup.

    Units    `bytes`: what one workgroup may allocate; `pool_bytes`: what the workgroups that are
             resident together share (twice `bytes` where two compute units form one processor)
    """

    bytes: int
    pool_bytes: int
    granule_bytes: int
    banks: int
    bank_bytes: int = 4

    def allocated(self, used_bytes: int) -> int:
        """Return what the hardware sets aside for `used_bytes`."""
        return -(-used_bytes // self.granule_bytes) * self.granule_bytes


@record
class RegisterFacts:
    """Register file of one SIMD, in registers per lane at the chip's default wave size."""

    vgprs: int
    vgpr_granule: int
    vgprs_addressable: int
    sgprs_addressable: int
    sgpr_granule: int
    sgprs: int | None = None
    agprs_addressable: int = 0

    def allocated_vgprs(self, vgprs: int, agprs: int = 0) -> int:
        """Return the VGPRs set aside for one wave.

        With accumulation registers both kinds share one file; AGPRs start at a multiple of 4.
        """
        used = max(vgprs, 1) if not agprs else -(-vgprs // 4) * 4 + agprs
        return -(-used // self.vgpr_granule) * self.vgpr_granule


@record
class WaitcntFields:
    """Bit fields of the one-word `s_waitcnt`; each counter is a tuple of (bit, width) pieces, low first."""

    vmcnt: tuple[tuple[int, int], ...]
    expcnt: tuple[tuple[int, int], ...]
    lgkmcnt: tuple[tuple[int, int], ...]

    def largest(self, counter: str) -> int:
        """Return the largest value of `counter`, which means: do not wait on it."""
        return (1 << sum(width for _, width in getattr(self, counter))) - 1

    def encode(self, **counts: int) -> int:
        """Return the instruction's immediate; a counter that is not named does not wait.

        Raises   ValueError: a count that does not fit its field
        """
        word = 0
        for counter in ("vmcnt", "expcnt", "lgkmcnt"):
            most = self.largest(counter)
            value = counts.pop(counter, most)
            if not 0 <= value <= most:
                raise ValueError(f"{counter} must be in [0, {most}] on this target, got {value}")
            for bit, width in getattr(self, counter):
                word |= (value & ((1 << width) - 1)) << bit
                value >>= width
        if counts:
            raise ValueError(f"no such wait counter: {', '.join(sorted(counts))}")
        return word


@record
class BufferFacts:
    """Fourth word of a buffer descriptor."""

    flags: int
    has_oob_select: bool

    def word(self, bounded: bool = True) -> int:
        """Return the word for raw buffers: 4-byte elements, out-of-range checks on when `bounded`."""
        if not self.has_oob_select:
            return self.flags
        return self.flags | (3 if bounded else 2) << 28


@record
class CodeObjectFacts:
    """What the ELF file of a kernel says about its chip."""

    mach: int
    triple: str = "amdgcn-amd-amdhsa"
    version: int = 6


@record
class Chip:
    """One compile target.

    `features` holds names that atoms and lowerings test for, see `arch.FEATURES`.
    """

    name: str
    family: str
    products: tuple[str, ...]
    wave_size: int
    wave_sizes: tuple[int, ...]
    waves_per_simd: int
    simds: int
    lds: LdsFacts
    registers: RegisterFacts
    buffer: BufferFacts
    code_object: CodeObjectFacts
    waitcnt: WaitcntFields | None
    features: frozenset[str] = field(repr=False)
    max_workgroup: int = 1024

    def __post_init__(self) -> None:
        assert self.wave_size in self.wave_sizes, self
        assert self.lds.bytes % self.lds.granule_bytes == 0, self.lds

    def has(self, feature: str) -> bool:
        """Return whether the chip has `feature`.

        Raises   KeyError: a name that is no feature of any chip (a typing mistake in our tables)
        """
        if feature not in FEATURES:
            raise KeyError(f"unknown chip feature {feature!r}; see flydsl.arch.FEATURES")
        return feature in self.features

    @property
    def mcpu(self) -> str:
        """The name LLVM and the assembler use."""
        return self.name

    def occupancy(self, vgprs: int, agprs: int = 0, lds_bytes: int = 0, workgroup: int = 256) -> int:
        """Return the most waves that can be resident on one SIMD.

        Shapes   workgroup: threads per workgroup; vgprs, agprs per lane; lds_bytes per workgroup
        Law      never grows when a kernel uses more of anything
        """
        by_registers = self.registers.vgprs // self.registers.allocated_vgprs(vgprs, agprs)
        waves = min(self.waves_per_simd, by_registers)
        if lds_bytes:
            groups = self.lds.pool_bytes // self.lds.allocated(lds_bytes)
            group_waves = -(-workgroup // self.wave_size)
            waves = min(waves, -(-groups * group_waves // self.simds))
        return waves


FEATURES: dict[str, str] = {
    "agpr": "accumulation registers beside the VGPRs",
    "async_lds": "global_load_async_to_lds with its own counter",
    "bf16_alu": "bf16 arithmetic on the vector ALU",
    "bf16_cvt_pk": "v_cvt_pk_bf16_f32",
    "bf16_global_atomics": "packed bf16 atomic add on global memory",
    "clusters": "workgroup clusters",
    "cvt_scale_pk8": "scaled conversions of eight values",
    "cvt_scalef32": "scaled conversions of small floats",
    "dpp_row_bcast": "DPP row_bcast and whole-wave shifts (gfx9)",
    "dpp_row_share": "DPP row_share and row_xmask",
    "ds_load_tr": "ds_load_tr*: transposing LDS reads (gfx1250)",
    "ds_read_tr": "ds_read_b64_tr_b*: transposing LDS reads (gfx950)",
    "f64_matrix": "f64 matrix instructions",
    "fp8_cvt": "conversions between f32 and 8-bit floats",
    "fp8_fnuz": "8-bit floats are FNUZ",
    "fp8_ocp": "8-bit floats are OCP",
    "global_load_tr": "transposing global loads",
    "lds_dma": "buffer or global load to LDS, 1, 2 or 4 bytes per lane",
    "lds_dma_b128": "buffer or global load to LDS, 12 or 16 bytes per lane",
    "mfma": "MFMA matrix instructions",
    "mfma_double_k": "MFMA with twice the depth (gfx950)",
    "mfma_scale": "MFMA on fp8/fp6/fp4 with block scales",
    "mfma_xf32": "MFMA on xf32",
    "packed_f32": "two f32 operations in one VALU instruction",
    "permlane_swap": "v_permlane16_swap, v_permlane32_swap",
    "permlanex16": "v_permlane16, v_permlanex16",
    "split_barrier": "s_barrier_signal, s_barrier_wait",
    "tanh": "v_tanh",
    "tdm": "tensor data mover",
    "wait_counters": "one wait instruction per counter (s_wait_loadcnt ...)",
    "wmma": "WMMA matrix instructions",
    "wmma_gfx11": "WMMA, operands of 16 elements doubled over the half waves",
    "wmma_gfx12": "WMMA, operands of 8 elements, incl. 8-bit floats",
    "wmma_gfx1250": "WMMA of gfx1250, depth 32 to 128",
    "wmma_scale": "WMMA on fp8/fp6/fp4 with block scales",
}
