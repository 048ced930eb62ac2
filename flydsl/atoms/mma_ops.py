"""MMA atoms: what a user names to get one matrix instruction, with shapes, lane maps, state and
printed form.

An atom is a frozen record. It refuses operand types at construction, and shapes or chips in
`row(arch)`, which finds the instruction. `key` selects the rules in `targets/`. Neighbours:
`matrix_rows` has the instructions, `parse` reads the printed form back.
"""

from __future__ import annotations

import functools
from functools import cache
from typing import ClassVar

from flydsl import arch as chips
from flydsl.layout import Layout, size
from flydsl.utils.record import record

from . import lane_maps
from .elements import FORMAT_CODE, MATRIX_KIND, bit_width, is_int
from .errors import OutOfRange, UnknownStateField, UnsupportedShape, UnsupportedTypes, one_of
from .matrix_rows import ROWS, MatrixRow, find


@record
class MmaOp:
    """Base of the MMA atoms: d = a * b + c on one tile of (m, n, k).

    Shapes   tv layouts map (thread, value) to the linear index in (M,K), (N,K), (M,N)
    """

    m: int
    n: int
    k: int
    a: str
    b: str
    acc: str

    key: ClassVar[str] = ""
    name: ClassVar[str] = ""
    wave_size: ClassVar[int] = 1

    @property
    def shape_mnk(self) -> tuple[int, int, int]:
        """Extents of one product."""
        return self.m, self.n, self.k

    @property
    def thr_layout(self) -> Layout:
        """Lanes that work together on one product."""
        return Layout(self.wave_size, 1)

    @property
    def layout_a(self) -> Layout:
        """(thread, value) -> index in (M, K)."""
        return self._find().layout_a

    @property
    def layout_b(self) -> Layout:
        """(thread, value) -> index in (N, K)."""
        return self._find().layout_b

    @property
    def layout_c(self) -> Layout:
        """(thread, value) -> index in (M, N), of C and D."""
        return self._find().layout_c

    def layout(self, operand: str) -> Layout:
        """Return the map of operand "A", "B", "C" or "D"."""
        one_of("operand", operand, "ABCD")
        return {"A": self.layout_a, "B": self.layout_b}.get(operand) or self.layout_c

    @property
    def values_per_thread(self) -> tuple[int, int, int]:
        """Elements of A, B, C in one lane."""
        return _values_per_thread(self)

    def registers_of(self, operand: str, elem: str) -> int:
        """Return how many registers elements `elem` hold one lane's operand "A", "B", "C" or "D".

        Kernels keep 4-, 6- and 8-bit data packed in integers: 32 values of f4 are 4 i32.
        """
        return _registers_of(self, operand, elem)

    @property
    def state_fields(self) -> dict[str, str]:
        """Operands beside the data, name -> element type; set per call or on the atom."""
        return {}

    def check_state(self, name: str) -> str:
        """Return the type of a state field.

        Raises   UnknownStateField
        """
        if name not in self.state_fields:
            raise UnknownStateField(atom=self.short, field=name, supported=tuple(self.state_fields))
        return self.state_fields[name]

    @property
    def _options(self) -> str:
        return ""

    @property
    def text(self) -> str:
        """The printed type: `!fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32>`."""
        return f"!{self.name}<{self.m}x{self.n}x{self.k}, ({self.a}, {self.b}) -> {self.acc}{self._options}>"

    @property
    def short(self) -> str:
        """The form in messages and reprs, without the dialect's prefix."""
        return self.text.removeprefix("!fly_").removeprefix("!fly.")

    def __str__(self) -> str:
        return self.text

    @property
    def kinds(self) -> tuple[str, str, str]:
        """What the instruction decodes: fp8 for both spellings of an 8-bit float, i8 for any
        signedness.
        """
        return MATRIX_KIND[self.a], MATRIX_KIND[self.b], MATRIX_KIND[self.acc]

    def row(self, arch: str | None = None) -> MatrixRow | None:
        """Return the instruction; None for atoms that need none.

        Raises   UnsupportedShape: lists what `arch` has for these element types
        """
        row = self._find()
        if row is None or arch is not None and chips.get(arch).name not in row.chips:
            raise UnsupportedShape(
                atom=self.short, arch=arch or "any chip", supported=self._alternatives(arch)
            )
        return row

    def check(self, arch: str | None = None) -> MmaOp:
        """Return the atom itself when `arch` has its instruction, else refuse like `row`."""
        self.row(arch)
        return self

    def check_making(self, arch: str) -> MmaOp:
        """Return the atom itself where it may be made for `arch`, else refuse like `row`."""
        return self.check(arch)

    def _find(self) -> MatrixRow | None:
        raise NotImplementedError

    def _alternatives(self, arch: str | None) -> tuple[str, ...]:
        family = _same_kinds(self.kinds)
        chip = chips.get(arch).name if arch is not None else None
        return tuple(
            dict.fromkeys(
                f"{r.m}x{r.n}x{r.k}{self._other_family(r)}"
                for r in family
                if r.blocks == 1 and (chip is None and r.chips or chip in r.chips)
            )
        )


    def _other_family(self, row: MatrixRow) -> str:
        """Return the name of the atom that has `row`, in brackets, where it is another class than this one."""
        name = {"mfma": "MFMA", "wmma": "WMMA", "mfma_scale": "MFMA_Scale", "wmma_scale": "WMMAScale"}.get(row.family, "")
        return "" if type(self).__name__ in (name, name.replace("_", "")) or not name else f" (fx.rocdl.{name})"


@cache
def _same_kinds(kinds: tuple[str, str, str]) -> tuple[MatrixRow, ...]:
    return tuple(r for r in ROWS if (r.a, r.b, r.acc) == kinds)


_MFMA_FLOATS = ("f16", "bf16", "f32", "tf32", "f8E4M3FNUZ", "f8E5M2FNUZ", "f8E4M3FN", "f8E5M2")
_EIGHT_BIT_INTS = ("i8", "si8", "ui8")
_OCP = ("f8E4M3FN", "f8E5M2")


def _refuse_types(op: MmaOp, supported: tuple[str, ...]) -> None:
    raise UnsupportedTypes(atom=op.short, a=op.a, b=op.b, acc=op.acc, supported=supported)


def _refuse_shape(op: MmaOp, arch: str) -> None:
    raise UnsupportedShape(atom=op.short, arch=arch, supported=op._alternatives(None))


@cache
def _registers_of(op: MmaOp, operand: str, elem: str) -> int:
    index = "ABC".index("C" if operand == "D" else operand)
    own = (op.a, op.b, op.acc)[index]
    return op.values_per_thread[index] * bit_width(own) // bit_width(elem)


@functools.lru_cache(maxsize=4096)
def _values_per_thread(op: MmaOp) -> tuple[int, int, int]:
    return size(op.layout_a[1]), size(op.layout_b[1]), size(op.layout_c[1])


@record
class MFMA(MmaOp):
    """CDNA matrix instruction, wave64: f64, f32, xf32 (`tf32`), f16, bf16, i8, fp8 and bf8."""

    key: ClassVar[str] = "mfma"
    name: ClassVar[str] = "fly_rocdl.cdna3.mfma"
    wave_size: ClassVar[int] = 64

    def __post_init__(self) -> None:
        if self.m != self.n:
            _refuse_shape(self, "CDNA")
        ints = self.a in _EIGHT_BIT_INTS and self.b in _EIGHT_BIT_INTS
        floats = (
            self.a in _MFMA_FLOATS
            and self.b in _MFMA_FLOATS
            and (self.a == self.b or bit_width(self.a) == bit_width(self.b) == 8)
        )
        doubles = self.a == self.b == self.acc == "f64"
        if not (ints and self.acc == "i32" or floats and self.acc == "f32" or doubles):
            _refuse_types(
                self,
                (
                    "equal 16- or 32-bit floats -> f32",
                    "8-bit floats in any mix -> f32",
                    "8-bit integers -> i32",
                    "f64 -> f64",
                ),
            )
        if self.m not in (4, 16, 32):
            _refuse_shape(self, "CDNA")

    @property
    def layout_a(self) -> Layout:
        return lane_maps.mfma_operand(self.m, self.k)

    @property
    def layout_b(self) -> Layout:
        return lane_maps.mfma_operand(self.n, self.k)

    @property
    def layout_c(self) -> Layout:
        return lane_maps.mfma_accumulator(self.m, self.n, run=1 if self.acc == "f64" else 4)

    def _find(self) -> MatrixRow | None:
        return find("mfma", self.shape_mnk, self.kinds)

    def check_making(self, arch: str) -> MFMA:
        """Return the atom itself where some chip has it and `arch` has MFMA: kernels make atoms for several chips and use
        those of one, where `check` judges.
        """
        row, chip = self._find(), chips.get(arch).name
        if row is None or not row.chips or not any(r.family == "mfma" and chip in r.chips for r in ROWS):
            return self.check(arch)
        return self

    def reads_as_fnuz(self, arch: str) -> bool:
        """Return whether OCP operands are decoded as FNUZ by the chip, which deserves a
        warning.
        """
        return (self.a in _OCP or self.b in _OCP) and chips.get(arch).has("fp8_fnuz")


@record
class MFMAScale(MmaOp):
    """gfx950 matrix instruction on 8-, 6- and 4-bit floats with one E8M0 scale per 32 values of
    k.
    """

    opsel_a: int = 0
    opsel_b: int = 0

    key: ClassVar[str] = "mfma_scale"
    name: ClassVar[str] = "fly_rocdl.cdna4.mfma_scale"
    wave_size: ClassVar[int] = 64
    last_opsel: ClassVar[int] = 3  # which byte of the scale register

    def __post_init__(self) -> None:
        _check_scaled(self)
        if (self.m, self.n, self.k) not in ((16, 16, 128), (32, 32, 64)):
            _refuse_shape(self, "gfx950")

    @property
    def _options(self) -> str:
        return f", opselA = {self.opsel_a}, opselB = {self.opsel_b}"

    @property
    def layout_a(self) -> Layout:
        return lane_maps.mfma_operand(self.m, self.k)

    @property
    def layout_b(self) -> Layout:
        return lane_maps.mfma_operand(self.n, self.k)

    @property
    def layout_c(self) -> Layout:
        return lane_maps.mfma_accumulator(self.m, self.n)

    @property
    def state_fields(self) -> dict[str, str]:
        return {"scale_a": "i32", "scale_b": "i32"}

    def _find(self) -> MatrixRow | None:
        return find("mfma_scale", self.shape_mnk, self.kinds, scale_type="i32")


def _check_scaled(op: MFMAScale | WMMAScale) -> None:
    if op.a not in FORMAT_CODE or op.b not in FORMAT_CODE or op.acc != "f32":
        _refuse_types(op, (f"any mix of {', '.join(FORMAT_CODE)} -> f32",))
    last = op.last_opsel
    for subject in ("opsel_a", "opsel_b"):
        if getattr(op, subject) not in range(last + 1):
            raise OutOfRange(
                subject=subject, expected=f"in [0, {last}]", value=getattr(op, subject)
            )


WMMA_GENERATIONS = {"gfx11": "wmma_gfx11", "gfx120x": "wmma_gfx12", "gfx1250": "wmma_gfx1250"}


def wmma_generation(arch: str) -> str | None:
    """Return the printed generation of WMMA on a chip, None where there is no WMMA."""
    chip = chips.get(arch)
    return next((gen for gen, feature in WMMA_GENERATIONS.items() if chip.has(feature)), None)


@record
class WMMA(MmaOp):
    """RDNA and gfx1250 matrix instruction, wave32; `gen` says whose: gfx11, gfx120x or gfx1250."""

    gen: str = "gfx11"
    sign_a: bool = False
    sign_b: bool = False
    clamp: bool = False
    mod_c: int = 0

    key: ClassVar[str] = "wmma"
    wave_size: ClassVar[int] = 32

    def __post_init__(self) -> None:
        one_of("WMMA generation", self.gen, WMMA_GENERATIONS)
        known = self.a in MATRIX_KIND and self.b in MATRIX_KIND and self.acc in MATRIX_KIND
        if not known or not any((r.a, r.b, r.acc) == self.kinds for r in self._rows()):
            _refuse_types(
                self, tuple(dict.fromkeys(f"({r.a}, {r.b}) -> {r.acc}" for r in self._rows()))
            )
        if self._find() is None:
            raise UnsupportedShape(
                atom=self.short,
                arch=self.gen,
                supported=tuple(
                    dict.fromkeys(
                        f"{r.m}x{r.n}x{r.k}"
                        for r in self._rows()
                        if (r.a, r.b, r.acc) == self.kinds
                    )
                ),
            )
        if (self.sign_a or self.sign_b or self.clamp) and not is_int(self.a):
            raise OutOfRange(
                subject="sign_a, sign_b and clamp",
                expected="left out for float operands",
                value=(self.sign_a, self.sign_b, self.clamp),
            )

    def _rows(self) -> list[MatrixRow]:
        """The instructions an atom can name: not those whose 16-bit result needs an op-sel of
        its own.
        """
        feature = WMMA_GENERATIONS[self.gen]
        return [
            r
            for r in ROWS
            if r.family == "wmma"
            and r.feature in (feature, feature + "_iu4")
            and not r.operands.endswith("opsel")
        ]

    @property
    def name(self) -> str:
        """The printed name of the type."""
        return f"fly_rocdl.{self.gen}.wmma"

    @property
    def _options(self) -> str:
        flags = (("signA", self.sign_a), ("signB", self.sign_b), ("clamp", self.clamp))
        text = "".join(f", {name} = {str(value).lower()}" for name, value in flags)
        return text + (f", modC = {self.mod_c}" if self.mod_c else "")

    def _find(self) -> MatrixRow | None:
        return find("wmma", self.shape_mnk, self.kinds, WMMA_GENERATIONS[self.gen])

    def row(self, arch: str | None = None) -> MatrixRow:
        row = self._find()
        if arch is not None and not chips.get(arch).has(WMMA_GENERATIONS[self.gen]):
            raise UnsupportedShape(atom=self.short, arch=arch, supported=self._alternatives(arch))
        return row


@record
class WMMAScale(MmaOp):
    """gfx1250 matrix instruction on 8-, 6- and 4-bit floats with a scale per 32 or 16 values of
    k.
    """

    opsel_a: int = 0
    opsel_b: int = 0
    mod_c: int = 0
    reuse_a: bool = False
    reuse_b: bool = False
    block_size: int = 32

    key: ClassVar[str] = "wmma_scale"
    name: ClassVar[str] = "fly_rocdl.gfx1250.wmma_scale"
    wave_size: ClassVar[int] = 32
    last_opsel: ClassVar[int] = 1  # which half wave holds the scales

    def __post_init__(self) -> None:
        one_of("block_size", self.block_size, (16, 32))
        _check_scaled(self)
        four_bit = self.a == self.b == "f4E2M1FN"
        if self.shape_mnk != (16, 16, 128) and not (four_bit and self.shape_mnk == (32, 16, 128)):
            _refuse_shape(self, "gfx1250")

    @property
    def _options(self) -> str:
        return (
            f", opselA = {self.opsel_a}, opselB = {self.opsel_b}, modC = {self.mod_c}, "
            f"reuseA = {str(self.reuse_a).lower()}, reuseB = {str(self.reuse_b).lower()}, "
            f"blockSize = {self.block_size}"
        )

    @property
    def state_fields(self) -> dict[str, str]:
        scale = "i32" if self.block_size == 32 else "i64"
        return {"scale_a": scale, "scale_b": scale}

    def _find(self) -> MatrixRow | None:
        return find(
            "wmma_scale",
            self.shape_mnk,
            self.kinds,
            scale_type="i32" if self.block_size == 32 else "i64",
        )


@record
class UniversalFMA(MmaOp):
    """One multiply and add of one thread, on any chip: d = a * b + c."""

    key: ClassVar[str] = "fma"
    name: ClassVar[str] = "fly.universal_fma"

    def __post_init__(self) -> None:
        if self.shape_mnk != (1, 1, 1):
            _refuse_shape(self, "any chip")
        if not (self.a == self.b == self.acc) or self.a not in ("f64", "f32", "f16", "bf16"):
            _refuse_types(self, ("f64", "f32", "f16", "bf16, the same for all three"))

    @classmethod
    def of(cls, elem: str) -> UniversalFMA:
        """Return the atom for one element type."""
        return cls(1, 1, 1, elem, elem, elem)

    @property
    def layout_a(self) -> Layout:
        return Layout((1, 1), (1, 1))

    layout_b = layout_a
    layout_c = layout_a

    def row(self, arch: str | None = None) -> None:
        if arch is not None:
            chips.get(arch)
        return None


def mfma(
    m: int,
    n: int,
    k: int,
    a: str,
    acc: str | None = None,
    *,
    b: str | None = None,
    arch: str | None = None,
) -> MFMA:
    """Return the MFMA atom; accumulator f32 for floats (f64 for f64), i32 must be named;
    checked on `arch`.
    """
    if acc is None:
        acc = "f64" if a == "f64" else "f32"
    op = MFMA(m, n, k, a, b or a, acc)
    return op.check(arch) if arch else op


def wmma(
    arch: str,
    m: int,
    n: int,
    k: int,
    a: str,
    acc: str | None = None,
    *,
    b: str | None = None,
    sign_a: bool = False,
    sign_b: bool = False,
    clamp: bool = False,
    mod_c: int = 0,
) -> WMMA:
    """Return the WMMA atom of the chip.

    Raises   UnsupportedShape: the chip has no WMMA, or not this shape
    """
    gen = wmma_generation(arch)
    if gen is None:
        raise UnsupportedShape(
            atom=f"WMMA {m}x{n}x{k}",
            arch=arch,
            supported=("MFMA",) if chips.get(arch).has("mfma") else (),
        )
    try:
        return WMMA(m, n, k, a, b or a, acc or "f32", gen, sign_a, sign_b, clamp, mod_c)
    except UnsupportedTypes as e:
        e.extra_notes += (f"the target is {arch}",)
        raise


def supported(arch: str) -> tuple[MatrixRow, ...]:
    """Return every matrix instruction of a chip."""
    chip = chips.get(arch).name
    return tuple(r for r in ROWS if chip in r.chips)
