"""One row per matrix instruction: shape, operand kinds and registers, names in rocdl, LLVM and
ISA.

The rows are data. `mma_ops` has the atoms built on them; lowering and simulation rules live in
`targets/` and are found by `family`. Which chip has a row is asked of `arch` by `feature`; rows
with the feature `gfx90a` belong to no chip we compile for and exist because the reference
lowers to them. Sources: LLVM's AMDGPU intrinsics for names and registers
(tests/unit/atoms/test_isa_names.py compiles each), AMD's instruction-set manuals (CDNA3,
section 7) for shapes and blocks.
"""

from __future__ import annotations

from functools import cache

from flydsl import arch as chips
from flydsl.layout import Layout, size
from flydsl.utils.record import record

from . import lane_maps
from .elements import mangled, vector
from .errors import AtomError, UnsupportedChip

# Elements per lane -> register type, per operand kind. Only kinds whose type does not follow
# from the count
# alone are special: 8-bit data go in 32- or 64-bit integers, 6- and 4-bit data in vectors of
# 32-bit words.
_ELEMENT_BITS = {
    "f64": 64,
    "f32": 32,
    "xf32": 32,
    "f16": 16,
    "bf16": 16,
    "fp8": 8,
    "bf8": 8,
    "i8": 8,
    "i4": 4,
    "fp6": 6,
    "bf6": 6,
    "fp4": 4,
    "i32": 32,
}


@record
class MatrixRow:
    """One instruction; `family` is the key of its rules: mfma, mfma_scale, smfmac, wmma, wmma_scale.

    Shapes   m, n, k of one product; `blocks` independent products; registers of A, B, C as MLIR
             types
    """

    family: str
    rocdl: str
    intrinsic: str
    isa: str
    m: int
    n: int
    k: int
    a: str
    b: str
    acc: str
    regs: tuple[str, str, str]
    feature: str
    blocks: int = 1
    overloads: str = ""  # which of d, a, b give LLVM's name its suffix
    operands: str = ""  # order of the intrinsic's arguments, see `mma_calls`
    scale_type: str = ""
    opsel_result: bool = False

    @property
    def wave_size(self) -> int:
        """Lanes that take part."""
        return 64 if self.family.startswith(("mfma", "smfmac")) else 32

    @property
    def llvm_name(self) -> str:
        """The intrinsic's name with its overload suffix."""
        reg = {"d": self.regs[2], "a": self.regs[0], "b": self.regs[1]}
        return ".".join([self.intrinsic, *(mangled(reg[o]) for o in self.overloads)])

    @property
    def rocdl_types(self) -> str:
        """The type of the rocdl op, data and scale operands only."""
        scales = [self.scale_type] * 2 if self.scale_type else []
        return f"({', '.join([*self.regs, *scales])}) -> {self.regs[2]}"

    @property
    def python_name(self) -> str:
        """The name under `fx.rocdl`."""
        return self.rocdl.removeprefix("rocdl.").replace(".", "_")

    @property
    def values_per_lane(self) -> tuple[int, int, int]:
        """Elements of A, B, C in one lane."""
        return tuple(_value_count(t) for t in (self.layout_a, self.layout_b, self.layout_c))

    @property
    def layout_a(self) -> Layout:
        """(lane, value) -> index in (M, K), blocks last."""
        return self._operand(self.m, self.a)

    @property
    def layout_b(self) -> Layout:
        """(lane, value) -> index in (N, K), blocks last."""
        if self.family == "smfmac" and self.feature == _DOUBLE_K:
            return lane_maps.mfma_operand_in_two_runs(self.n, self.k)
        return self._operand(self.n, self.b)

    def register_map(self, operand: str) -> Layout:
        """Return what the hardware takes register elements of operand "A" or "B" for.

        That is the layout, except for scaled MFMA and WMMA with 8-bit elements: there the layout is
        the reference's, which numbers k otherwise (in the order of registers; in runs of 8), and the
        hardware's order counts where scales or a narrower partner meet it.
        """
        rows, kind = (self.m, self.a) if operand == "A" else (self.n, self.b)
        if self.scale_type and _ELEMENT_BITS[kind] == 8:
            if self.family == "mfma_scale":
                return lane_maps.mfma_operand_in_two_runs(rows, self.k)
            return lane_maps.wmma_operand(rows, self.k, 16)
        return self.layout_a if operand == "A" else self.layout_b

    def _operand(self, rows: int, kind: str) -> Layout:
        if self.family.startswith(("mfma", "smfmac")):
            return lane_maps.mfma_operand(rows, self.k, self.blocks)
        if self.feature == "wmma_gfx11":
            return lane_maps.wmma_operand_doubled(rows, self.k)
        run = wmma_run(self.feature, kind, self.k, self.family)
        if rows == 32:
            return lane_maps.wmma_operand_stacked(rows, self.k, run)
        return lane_maps.wmma_operand(rows, self.k, run)

    @property
    def layout_c(self) -> Layout:
        """(lane, value) -> index in (M, N), blocks last; C and D share it."""
        if self.family.startswith(("mfma", "smfmac")):
            run = 1 if self.acc == "f64" else 4
            return lane_maps.mfma_accumulator(self.m, self.n, self.blocks, run)
        if self.feature == "wmma_gfx11":
            return lane_maps.wmma_accumulator_interleaved(self.m, self.n)
        return lane_maps.wmma_accumulator(self.m, self.n)

    @property
    def chips(self) -> tuple[str, ...]:
        """The names of the chips that have this instruction."""
        return chips_with(self.feature)

    def on(self, arch: str | None) -> MatrixRow:
        """Return the row itself where the chip has it (or no chip is named).

        Raises   UnsupportedChip
        """
        if arch is not None and chips.get(arch).name not in self.chips:
            raise UnsupportedChip(
                atom=self.rocdl, feature=self.feature, arch=arch, supported=self.chips
            )
        return self


def _value_count(layout: Layout) -> int:
    return size(layout[1])


def wmma_run(feature: str, kind: str, k: int, family: str) -> int:
    """Return how many consecutive k a lane of WMMA holds at a time (gfx12 and gfx1250)."""
    if feature == "wmma_gfx12" or kind == "f32":
        return k // 2
    return 32 if family == "wmma_scale" and _ELEMENT_BITS[kind] < 8 else 8


@cache
def chips_with(feature: str) -> tuple[str, ...]:
    """Return the names of the chips that have `feature`; none for a feature of chips we do not
    compile for.
    """
    if feature not in chips.FEATURES:
        return ()
    return tuple(name for name in chips.names() if chips.get(name).has(feature))


V2F32, V8F32 = "vector<2xf32>", "vector<8xf32>"
V4F16, V8F16, V16F16 = "vector<4xf16>", "vector<8xf16>", "vector<16xf16>"
V8BF16, V16BF16 = "vector<8xbf16>", "vector<16xbf16>"
V2I16, V4I16, V8I16, V16I16 = "vector<2xi16>", "vector<4xi16>", "vector<8xi16>", "vector<16xi16>"
V2I32, V4I32, V8I32 = "vector<2xi32>", "vector<4xi32>", "vector<8xi32>"
_DOUBLE_K, _GFX90A = "mfma_double_k", "gfx90a"
_G11, _G12, _G1250 = "wmma_gfx11", "wmma_gfx12", "wmma_gfx1250"


def _acc(kind: str, count: int) -> str:
    return vector(count, kind)


def _mfma(
    names: str,
    m: int,
    n: int,
    k: int,
    a: str,
    b: str,
    acc: str,
    reg: str,
    feature: str = "mfma",
    blocks: int = 1,
) -> MatrixRow:
    llvm, isa = names.split()
    d = _acc(acc, m * n * blocks // 64)
    return MatrixRow(
        "mfma",
        f"rocdl.mfma.{llvm}",
        f"llvm.amdgcn.mfma.{llvm}",
        f"v_mfma_{isa}",
        m,
        n,
        k,
        a,
        b,
        acc,
        (reg, reg, d),
        feature,
        blocks,
        operands="a b c cbsz abid blgp",
    )


# fmt: off
MFMA_ROWS: tuple[MatrixRow, ...] = (
    # f32
    _mfma("f32.32x32x1f32 f32_32x32x1_2b_f32", 32, 32, 1, "f32", "f32", "f32", "f32", blocks=2),
    _mfma("f32.16x16x1f32 f32_16x16x1_4b_f32", 16, 16, 1, "f32", "f32", "f32", "f32", blocks=4),
    _mfma("f32.4x4x1f32 f32_4x4x1_16b_f32", 4, 4, 1, "f32", "f32", "f32", "f32", blocks=16),
    _mfma("f32.32x32x2f32 f32_32x32x2_f32", 32, 32, 2, "f32", "f32", "f32", "f32"),
    _mfma("f32.16x16x4f32 f32_16x16x4_f32", 16, 16, 4, "f32", "f32", "f32", "f32"),
    # f16
    _mfma("f32.32x32x4f16 f32_32x32x4_2b_f16", 32, 32, 4, "f16", "f16", "f32", V4F16, blocks=2),
    _mfma("f32.16x16x4f16 f32_16x16x4_4b_f16", 16, 16, 4, "f16", "f16", "f32", V4F16, blocks=4),
    _mfma("f32.4x4x4f16 f32_4x4x4_16b_f16", 4, 4, 4, "f16", "f16", "f32", V4F16, blocks=16),
    _mfma("f32.32x32x8f16 f32_32x32x8_f16", 32, 32, 8, "f16", "f16", "f32", V4F16),
    _mfma("f32.16x16x16f16 f32_16x16x16_f16", 16, 16, 16, "f16", "f16", "f32", V4F16),
    _mfma("f32.32x32x16.f16 f32_32x32x16_f16", 32, 32, 16, "f16", "f16", "f32", V8F16, _DOUBLE_K),
    _mfma("f32.16x16x32.f16 f32_16x16x32_f16", 16, 16, 32, "f16", "f16", "f32", V8F16, _DOUBLE_K),
    # bf16; the forms without 1k take two values per lane and ended with gfx90a
    _mfma("f32.32x32x4bf16.1k f32_32x32x4_2b_bf16", 32, 32, 4, "bf16", "bf16", "f32", V4I16, blocks=2),
    _mfma("f32.16x16x4bf16.1k f32_16x16x4_4b_bf16", 16, 16, 4, "bf16", "bf16", "f32", V4I16, blocks=4),
    _mfma("f32.4x4x4bf16.1k f32_4x4x4_16b_bf16", 4, 4, 4, "bf16", "bf16", "f32", V4I16, blocks=16),
    _mfma("f32.32x32x8bf16.1k f32_32x32x8_bf16", 32, 32, 8, "bf16", "bf16", "f32", V4I16),
    _mfma("f32.16x16x16bf16.1k f32_16x16x16_bf16", 16, 16, 16, "bf16", "bf16", "f32", V4I16),
    _mfma("f32.32x32x16.bf16 f32_32x32x16_bf16", 32, 32, 16, "bf16", "bf16", "f32", V8BF16, _DOUBLE_K),
    _mfma("f32.16x16x32.bf16 f32_16x16x32_bf16", 16, 16, 32, "bf16", "bf16", "f32", V8BF16, _DOUBLE_K),
    _mfma("f32.32x32x2bf16 f32_32x32x2bf16", 32, 32, 2, "bf16", "bf16", "f32", V2I16, _GFX90A, 2),
    _mfma("f32.16x16x2bf16 f32_16x16x2bf16", 16, 16, 2, "bf16", "bf16", "f32", V2I16, _GFX90A, 4),
    _mfma("f32.4x4x2bf16 f32_4x4x2bf16", 4, 4, 2, "bf16", "bf16", "f32", V2I16, _GFX90A, 16),
    _mfma("f32.32x32x4bf16 f32_32x32x4bf16", 32, 32, 4, "bf16", "bf16", "f32", V2I16, _GFX90A),
    _mfma("f32.16x16x8bf16 f32_16x16x8bf16", 16, 16, 8, "bf16", "bf16", "f32", V2I16, _GFX90A),
    # xf32: f32 data of which the instruction reads 19 bits
    _mfma("f32.32x32x4.xf32 f32_32x32x4_xf32", 32, 32, 4, "xf32", "xf32", "f32", V2F32, "mfma_xf32"),
    _mfma("f32.16x16x8.xf32 f32_16x16x8_xf32", 16, 16, 8, "xf32", "xf32", "f32", V2F32, "mfma_xf32"),
    # f64
    _mfma("f64.16x16x4f64 f64_16x16x4_f64", 16, 16, 4, "f64", "f64", "f64", "f64", "f64_matrix"),
    _mfma("f64.4x4x4f64 f64_4x4x4_4b_f64", 4, 4, 4, "f64", "f64", "f64", "f64", "f64_matrix", 4),
    # i8
    _mfma("i32.32x32x4i8 i32_32x32x4_2b_i8", 32, 32, 4, "i8", "i8", "i32", "i32", blocks=2),
    _mfma("i32.16x16x4i8 i32_16x16x4_4b_i8", 16, 16, 4, "i8", "i8", "i32", "i32", blocks=4),
    _mfma("i32.4x4x4i8 i32_4x4x4_16b_i8", 4, 4, 4, "i8", "i8", "i32", "i32", blocks=16),
    _mfma("i32.32x32x16.i8 i32_32x32x16_i8", 32, 32, 16, "i8", "i8", "i32", "i64"),
    _mfma("i32.16x16x32.i8 i32_16x16x32_i8", 16, 16, 32, "i8", "i8", "i32", "i64"),
    _mfma("i32.32x32x32.i8 i32_32x32x32_i8", 32, 32, 32, "i8", "i8", "i32", V4I32, _DOUBLE_K),
    _mfma("i32.16x16x64.i8 i32_16x16x64_i8", 16, 16, 64, "i8", "i8", "i32", V4I32, _DOUBLE_K),
    _mfma("i32.32x32x8i8 i32_32x32x8i8", 32, 32, 8, "i8", "i8", "i32", "i32", _GFX90A),
    _mfma("i32.16x16x16i8 i32_16x16x16i8", 16, 16, 16, "i8", "i8", "i32", "i32", _GFX90A),
    # fp8 and bf8 in any mix
    *(_mfma(f"f32.{s}x{s}x{k}.{a}.{b} f32_{s}x{s}x{k}_{a}_{b}", s, s, k, a, b, "f32", "i64")
      for s, k in ((32, 16), (16, 32)) for a in ("fp8", "bf8") for b in ("fp8", "bf8")),
)
# fmt: on



def _smfmac(
    m: int, k: int, a: str, b: str, acc: str, reg_a: str, reg_b: str, feature: str = "mfma"
) -> MatrixRow:
    kinds = f"{a}.{b}" if a in ("fp8", "bf8") else a
    return MatrixRow(
        "smfmac",
        f"rocdl.smfmac.{acc}.{m}x{m}x{k}.{kinds}",
        f"llvm.amdgcn.smfmac.{acc}.{m}x{m}x{k}.{kinds}",
        f"v_smfmac_{acc}_{m}x{m}x{k}_{kinds.replace('.', '_')}",
        m,
        m,
        k,
        a,
        b,
        acc,
        (reg_a, reg_b, _acc(acc, m * m // 64)),
        feature,
        operands="a b c index cbsz abid",
    )


_EIGHT_BITS = (("i8", "i8", "i32"), *((a, b, "f32") for a in ("fp8", "bf8") for b in ("fp8", "bf8")))
# Sparse A: registers hold two of every four k. Layouts are those of the whole matrix, which the
# simulator expands A to; the raw ops take the index register that says which two.
SMFMAC_ROWS: tuple[MatrixRow, ...] = (
    *(_smfmac(m, k, "f16", "f16", "f32", V4F16, V8F16) for m, k in ((16, 32), (32, 16))),
    *(_smfmac(m, k, "bf16", "bf16", "f32", V4I16, V8I16) for m, k in ((16, 32), (32, 16))),
    *(_smfmac(m, k, *kinds, V2I32, V4I32) for m, k in ((16, 64), (32, 32)) for kinds in _EIGHT_BITS),
    *(_smfmac(m, k, "f16", "f16", "f32", V8F16, V16F16, _DOUBLE_K) for m, k in ((16, 64), (32, 32))),
    *(_smfmac(m, k, "bf16", "bf16", "f32", V8BF16, V16BF16, _DOUBLE_K) for m, k in ((16, 64), (32, 32))),
    *(
        _smfmac(m, k, *kinds, V4I32, V8I32, _DOUBLE_K)
        for m, k in ((16, 128), (32, 64))
        for kinds in _EIGHT_BITS
    ),
)

SMALL_FLOATS = ("fp8", "bf8", "fp6", "bf6", "fp4")


def _mfma_scale(m: int, k: int, a: str, b: str) -> MatrixRow:
    name = f"f32.{m}x{m}x{k}.f8f6f4"
    words = {kind: _ELEMENT_BITS[kind] for kind in (a, b)}  # 32 values of n bits fill n words
    regs = (vector(words[a], "i32"), vector(words[b], "i32"), _acc("f32", m * m // 64))
    return MatrixRow(
        "mfma_scale",
        f"rocdl.mfma.scale.{name}",
        f"llvm.amdgcn.mfma.scale.{name}",
        f"v_mfma_scale_f32_{m}x{m}x{k}_f8f6f4",
        m,
        m,
        k,
        a,
        b,
        "f32",
        regs,
        "mfma_scale",
        overloads="ab",
        operands="a b c fmt_a fmt_b opsel_a scale_a opsel_b scale_b",
        scale_type="i32",
    )


MFMA_SCALE_ROWS: tuple[MatrixRow, ...] = tuple(
    _mfma_scale(m, k, a, b)
    for m, k in ((16, 128), (32, 64))
    for a in SMALL_FLOATS
    for b in SMALL_FLOATS
)


def _wmma(
    llvm: str,
    k: int,
    a: str,
    b: str,
    acc: str,
    reg: str,
    d: str,
    feature: str,
    operands: str,
    opsel_result: bool = False,
) -> MatrixRow:
    return MatrixRow(
        "wmma",
        f"rocdl.wmma.{llvm}",
        f"llvm.amdgcn.wmma.{llvm.replace('_', '.')}",
        "v_wmma_" + llvm.replace(".", "_"),
        16,
        16,
        k,
        a,
        b,
        acc,
        (reg, reg, d),
        feature,
        overloads="da",
        operands=operands,
        opsel_result=opsel_result,
    )


_INT = "sign_a a sign_b b c clamp"
_FLOAT_1250 = "a b mod_c c reuse_a reuse_b"

# fmt: off
WMMA_GFX11_ROWS: tuple[MatrixRow, ...] = (
    _wmma("f32.16x16x16.f16", 16, "f16", "f16", "f32", V16F16, V8F32, _G11, "a b c"),
    _wmma("f32.16x16x16.bf16", 16, "bf16", "bf16", "f32", V16I16, V8F32, _G11, "a b c"),
    _wmma("f16.16x16x16.f16", 16, "f16", "f16", "f16", V16F16, V16F16, _G11,
          "a b c opsel", opsel_result=True),
    _wmma("bf16.16x16x16.bf16", 16, "bf16", "bf16", "bf16", V16I16, V16I16, _G11,
          "a b c opsel", opsel_result=True),
    _wmma("i32.16x16x16.iu8", 16, "i8", "i8", "i32", V4I32, V8I32, _G11, _INT),
    _wmma("i32.16x16x16.iu4", 16, "i4", "i4", "i32", V2I32, V8I32, _G11, _INT),
)

WMMA_GFX12_ROWS: tuple[MatrixRow, ...] = (
    _wmma("f32.16x16x16.f16", 16, "f16", "f16", "f32", V8F16, V8F32, _G12, "a b c"),
    _wmma("f32.16x16x16.bf16", 16, "bf16", "bf16", "f32", V8I16, V8F32, _G12, "a b c"),
    _wmma("f16.16x16x16.f16", 16, "f16", "f16", "f16", V8F16, V8F16, _G12,
          "a b c opsel"),
    _wmma("bf16.16x16x16.bf16", 16, "bf16", "bf16", "bf16", V8I16, V8I16, _G12,
          "a b c opsel"),
    _wmma("i32.16x16x16.iu8", 16, "i8", "i8", "i32", V2I32, V8I32, _G12, _INT),
    _wmma("i32.16x16x16.iu4", 16, "i4", "i4", "i32", "i32", V8I32, _G12, _INT),
    _wmma("i32.16x16x32.iu4", 32, "i4", "i4", "i32", V2I32, V8I32, _G12, _INT),
    *(_wmma(f"f32.16x16x16.{a}_{b}", 16, a, b, "f32", V2I32, V8F32, _G12, "a b c")
      for a in ("fp8", "bf8") for b in ("fp8", "bf8")),
)

WMMA_GFX1250_ROWS: tuple[MatrixRow, ...] = (
    _wmma("f32.16x16x4.f32", 4, "f32", "f32", "f32", V2F32, V8F32, _G1250, _FLOAT_1250),
    _wmma("f32.16x16x32.f16", 32, "f16", "f16", "f32", V16F16, V8F32, _G1250, _FLOAT_1250),
    _wmma("f16.16x16x32.f16", 32, "f16", "f16", "f16", V16F16, V8F16, _G1250, _FLOAT_1250),
    _wmma("f32.16x16x32.bf16", 32, "bf16", "bf16", "f32", V16BF16, V8F32, _G1250, _FLOAT_1250),
    _wmma("bf16.16x16x32.bf16", 32, "bf16", "bf16", "bf16", V16BF16, V8BF16, _G1250,
          _FLOAT_1250),
    _wmma("i32.16x16x64.iu8", 64, "i8", "i8", "i32", V8I32, V8I32, _G1250,
          "sign_a a sign_b b c reuse_a reuse_b clamp"),
    # The reference lowers this one; no published gfx1250 instruction answers to it (the oracle
    # has no ISA either).
    _wmma("i32.16x16x32.iu4", 32, "i4", "i4", "i32", V2I32, V8I32, "wmma_gfx1250_iu4", _INT),
    *(_wmma(f"{d}.16x16x{k}.{a}_{b}", k, a, b, d, vector(k // 8, "i32"), vector(8, d), _G1250, _FLOAT_1250)
      for k in (64, 128) for d in ("f32", "f16") for a in ("fp8", "bf8") for b in ("fp8", "bf8")),
)
# fmt: on


def _wmma_scale(m: int, a: str, b: str, block: int) -> MatrixRow:
    prefix = "scale" if block == 32 else "scale16"
    tail = f"f32.{m}x16x128." + ("f8f6f4" if m == 16 else "f4")
    fmts = ("fmt_a ", "fmt_b ") if m == 16 else ("", "")
    regs = (
        vector(m // 16 * 2 * _ELEMENT_BITS[a], "i32"),
        vector(2 * _ELEMENT_BITS[b], "i32"),
        vector(m // 2, "f32"),
    )
    return MatrixRow(
        "wmma_scale",
        f"rocdl.wmma.{prefix}.{tail}",
        f"llvm.amdgcn.wmma.{prefix}.{tail}",
        f"v_wmma_{prefix}_{tail.replace('.', '_')}",
        m,
        16,
        128,
        a,
        b,
        "f32",
        regs,
        "wmma_scale",
        overloads="dab",
        scale_type="i32" if block == 32 else "i64",
        operands=f"{fmts[0]}a {fmts[1]}b mod_c c opsel_a scale_fmt_a scale_a "
        "opsel_b scale_fmt_b scale_b reuse_a reuse_b",
    )


WMMA_SCALE_ROWS: tuple[MatrixRow, ...] = tuple(
    _wmma_scale(m, a, b, block)
    for block in (32, 16)
    for m, kinds in ((16, SMALL_FLOATS), (32, ("fp4",)))
    for a in kinds
    for b in kinds
)

ROWS: tuple[MatrixRow, ...] = (
    MFMA_ROWS
    + MFMA_SCALE_ROWS
    + WMMA_GFX11_ROWS
    + WMMA_GFX12_ROWS
    + WMMA_GFX1250_ROWS
    + WMMA_SCALE_ROWS
)

_GENERATION = {"wmma_gfx1250_iu4": "wmma_gfx1250"}


@cache
def _by(attribute: str) -> dict[str, tuple[MatrixRow, ...]]:
    table: dict[str, list[MatrixRow]] = {}
    for row in ROWS + SMFMAC_ROWS:
        table.setdefault(getattr(row, attribute), []).append(row)
    return {name: tuple(rows) for name, rows in table.items()}


def rows_named(name: str) -> tuple[MatrixRow, ...]:
    """Return all rows behind a rocdl op, intrinsic (with or without suffix), ISA or `fx.rocdl`
    name.
    """
    for attribute in ("rocdl", "intrinsic", "llvm_name", "isa", "python_name"):
        if rows := _by(attribute).get(name):
            return rows
    return ()


def by_rocdl_name(
    name: str, arch: str | None = None, regs: tuple[str, ...] | None = None
) -> MatrixRow:
    """Return the row of a matrix op, by its rocdl, intrinsic or mnemonic name.

    `arch` decides between generations that share a name; `regs` (types of A and B) between
    operand formats of the scaled forms; without them the first form is returned, which has the
    widest operands.

    Raises   AtomError: no such instruction; UnsupportedChip: the chip lacks it
    """
    rows = rows_named(name)
    if not rows:
        raise AtomError(reason=f"`{name}` is not a matrix instruction of the tables")
    if arch is not None:
        chip = chips.get(arch).name
        rows = tuple(r for r in rows if chip in r.chips) or (rows[0].on(arch),)
    if regs is not None:
        rows = tuple(r for r in rows if r.regs[:2] == tuple(regs[:2])) or rows
    return rows[0]


@cache
def _by_shape() -> dict[tuple, tuple[MatrixRow, ...]]:
    table: dict[tuple, list[MatrixRow]] = {}
    for row in ROWS:
        key = (row.family, row.m, row.n, row.k, row.a, row.b, row.acc)
        table.setdefault(key, []).append(row)
    return {key: tuple(rows) for key, rows in table.items()}


def find(
    family: str,
    shape: tuple[int, int, int],
    kinds: tuple[str, str, str],
    feature: str = "",
    scale_type: str = "",
) -> MatrixRow | None:
    """Return the single-block row of a family, shape and kinds, newest chip first where two
    take the same.
    """
    for row in _by_shape().get((family, *shape, *kinds), ()):
        if (
            row.blocks == 1
            and (not feature or _GENERATION.get(row.feature, row.feature) == feature)
            and row.scale_type in ("", scale_type)
        ):
            return row
    return None
