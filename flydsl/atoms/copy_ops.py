"""Copy atoms: what a user names to move data, with widths, memories, lane maps, state and
printed form.

A `CopyOp` is the operation, a `CopyAtom` the operation on values of some bit width. `key`
selects the rules in `targets/`; `copy_rows` has the instructions. Tensor DMA is in `tdm`.
"""

from __future__ import annotations

from functools import cache
from typing import ClassVar

from flydsl import arch as chips
from flydsl.layout import Layout, recast_layout
from flydsl.utils.record import record

from .elements import bit_width, is_float, is_int, split_vector
from .errors import (
    OutOfRange,
    UnknownStateField,
    UnsupportedAtomic,
    UnsupportedChip,
    UnsupportedSpaces,
    UnsupportedWidth,
    WidthMismatch,
    one_of,
)
from .matrix_rows import chips_with

GENERIC, GLOBAL, SHARED, REGISTER = "generic", "global", "shared", "register"
BUFFER = "#fly_rocdl.buffer_desc"
_POINTERS = (GLOBAL, SHARED, REGISTER, GENERIC)


@record
class CopyOp:
    """Base of the copy operations; `bits` is what one thread moves.

    Shapes   tv layouts map (thread, value) to the position in what the atom's threads move
             together; `ref` is the numbering that source and destination are compared by
    """

    key: ClassVar[str] = ""
    name: ClassVar[str] = ""
    feature: ClassVar[str] = ""
    spaces: ClassVar[tuple[tuple[str, str], ...]] = ()
    state_fields: ClassVar[dict[str, str]] = {}
    is_asynchronous: ClassVar[bool] = False
    is_whole_tile: ClassVar[bool] = False
    threads: ClassVar[int] = 1

    @property
    def thr_layout(self) -> Layout:
        """Threads that work together on one copy."""
        return Layout(self.threads, 1)

    def values(self, val_bits: int) -> int:
        """Return the values of `val_bits` that one thread moves (0: the atom is too narrow for
        one).
        """
        return self.bits // val_bits

    def tv_src(self, val_bits: int) -> Layout:
        """Return (thread, value) of the source -> position."""
        return Layout((1, self.values(val_bits)), (1, 1))

    def tv_dst(self, val_bits: int) -> Layout:
        """Return (thread, value) of the destination -> position."""
        return self.tv_src(val_bits)

    def tv_ref(self, val_bits: int) -> Layout:
        """Return (thread, value) in the numbering of the tiled copy -> position."""
        return self.tv_src(val_bits)

    @property
    def parameters(self) -> str:
        """What stands between the angle brackets of the printed form."""
        return str(self.bits)

    @property
    def text(self) -> str:
        """The printed type: `!fly.universal_copy<128>`."""
        return f"!{self.name}<{self.parameters}>"

    @property
    def short(self) -> str:
        """The form in messages and reprs, without the dialect's prefix."""
        return self.text.removeprefix("!fly_").removeprefix("!fly.")

    def __str__(self) -> str:
        return self.text

    def check(self, arch: str | None = None) -> CopyOp:
        """Return the operation itself when the chip has it.

        Raises   UnsupportedChip
        """
        if arch is not None and self.feature and not chips.get(arch).has(self.feature):
            raise UnsupportedChip(
                atom=self.short, feature=self.feature, arch=arch, supported=chips_with(self.feature)
            )
        return self

    def check_spaces(self, src: str, dst: str) -> None:
        """Refuse memories that the instruction does not connect.

        Raises   UnsupportedSpaces: lists the possible pairs
        """
        if (src, dst) not in self.spaces:
            raise UnsupportedSpaces(
                atom=self.short,
                src=src,
                dst=dst,
                supported=tuple(f"{s} to {d}" for s, d in self.spaces),
            )

    def check_element(self, elem_bits: int) -> int:
        """Return the values per thread; refuse an element that does not divide the atom's
        width.

        Raises   WidthMismatch
        """
        if elem_bits > self.bits or self.bits % elem_bits:
            raise WidthMismatch(atom=self.short, bits=self.bits, elem_bits=elem_bits)
        return self.bits // elem_bits

    def check_state(self, field: str) -> str:
        """Return the type of a state field.

        Raises   UnknownStateField
        """
        if field not in self.state_fields:
            raise UnknownStateField(
                atom=self.short, field=field, supported=tuple(self.state_fields)
            )
        return self.state_fields[field]


def _check_width(op: CopyOp, allowed: tuple[int, ...]) -> None:
    if op.bits not in allowed:
        raise UnsupportedWidth(atom=op.short, bits=op.bits, supported=allowed)


@record
class UniversalCopy(CopyOp):
    """A plain load or store of `bits` between any two memories that pointers reach."""

    bits: int

    key: ClassVar[str] = "universal_copy"
    name: ClassVar[str] = "fly.universal_copy"
    spaces: ClassVar[tuple[tuple[str, str], ...]] = tuple(
        (s, d) for s in _POINTERS for d in _POINTERS
    )

    def __post_init__(self) -> None:
        if type(self.bits) is not int or self.bits <= 0:
            raise OutOfRange(
                subject="bits of UniversalCopy", expected="a positive int", value=self.bits
            )


@record
class BufferCopy(CopyOp):
    """A load or store through a buffer descriptor: out-of-range loads give 0, stores are
    dropped.
    """

    bits: int
    cache: int = 0

    key: ClassVar[str] = "buffer_copy"
    name: ClassVar[str] = "fly_rocdl.cdna3.buffer_copy"
    spaces: ClassVar[tuple[tuple[str, str], ...]] = ((BUFFER, REGISTER), (REGISTER, BUFFER))
    state_fields: ClassVar[dict[str, str]] = {"soffset": "i32"}
    widths: ClassVar[tuple[int, ...]] = (8, 16, 32, 64, 96, 128)

    def __post_init__(self) -> None:
        _check_width(self, self.widths)
        if type(self.cache) is not int or self.cache < 0:
            raise OutOfRange(
                subject="cache modifier", expected="a non-negative int", value=self.cache
            )

    @property
    def parameters(self) -> str:
        return f"{self.bits}, cache = {self.cache}" if self.cache else str(self.bits)


@record
class BufferCopyLDS(CopyOp):
    """DMA from a buffer to LDS: lane l writes at the wave's LDS address + l * bits/8; counted
    by vmcnt.
    """

    bits: int

    key: ClassVar[str] = "buffer_copy_lds"
    name: ClassVar[str] = "fly_rocdl.cdna3.buffer_copy_lds"
    feature: ClassVar[str] = "lds_dma"
    spaces: ClassVar[tuple[tuple[str, str], ...]] = ((BUFFER, SHARED),)
    state_fields: ClassVar[dict[str, str]] = {"soffset": "i32", "imm_offset": "i32"}
    widths: ClassVar[tuple[int, ...]] = (32, 128)

    def __post_init__(self) -> None:
        _check_width(self, self.widths)

    def check(self, arch: str | None = None) -> CopyOp:
        super().check(arch)
        if arch is not None and self.bits > 32 and not chips.get(arch).has("lds_dma_b128"):
            raise UnsupportedChip(
                atom=self.short,
                feature="lds_dma_b128",
                arch=arch,
                supported=chips_with("lds_dma_b128"),
            )
        return self


@record
class BufferLoadAsyncLDS(BufferCopyLDS):
    """gfx950: the same DMA, grouped by asyncmark and awaited by wait_asyncmark."""

    key: ClassVar[str] = "buffer_load_async_lds"
    name: ClassVar[str] = "fly_rocdl.cdna4.buffer_load_async_lds"
    feature: ClassVar[str] = "lds_dma_b128"
    widths: ClassVar[tuple[int, ...]] = (32, 96, 128)
    is_asynchronous: ClassVar[bool] = True


@record
class GlobalLoadAsyncLDS(BufferCopyLDS):
    """gfx950: DMA from global memory to LDS, grouped by asyncmark and awaited by
    wait_asyncmark.
    """

    key: ClassVar[str] = "global_load_async_lds"
    name: ClassVar[str] = "fly_rocdl.cdna4.global_load_async_lds"
    feature: ClassVar[str] = "lds_dma_b128"
    widths: ClassVar[tuple[int, ...]] = (32, 96, 128)
    spaces: ClassVar[tuple[tuple[str, str], ...]] = ((GLOBAL, SHARED),)
    state_fields: ClassVar[dict[str, str]] = {}
    is_asynchronous: ClassVar[bool] = True


_GRANULES: dict[tuple[int, int], str] = {
    (16, 64): "vector<4xi16>",
    (8, 64): "vector<2xi32>",
    (4, 64): "vector<2xi32>",
    (6, 96): "vector<3xi32>",
}


@record
class LDSReadTrans(CopyOp):
    """gfx950: 16 lanes read 16 rows of LDS and receive them transposed in units of
    `granularity` bits.
    """

    granularity: int
    bits: int

    key: ClassVar[str] = "lds_read_trans"
    name: ClassVar[str] = "fly_rocdl.cdna4.lds_read_trans"
    feature: ClassVar[str] = "ds_read_tr"
    spaces: ClassVar[tuple[tuple[str, str], ...]] = ((SHARED, REGISTER),)
    threads: ClassVar[int] = 16

    def __post_init__(self) -> None:
        if (self.granularity, self.bits) not in _GRANULES:
            raise UnsupportedWidth(
                atom=self.short,
                bits=self.bits,
                supported=tuple(f"{bits} bits in units of {unit}" for unit, bits in _GRANULES),
            )

    @property
    def parameters(self) -> str:
        return f"trans = {self.granularity}b, {self.bits}"

    @property
    def register_type(self) -> str:
        """What the instruction returns."""
        return _GRANULES[self.granularity, self.bits]

    def tv_src(self, val_bits: int) -> Layout:
        n = self._values(val_bits)
        return Layout((self.threads, n), (n, 1))

    def tv_dst(self, val_bits: int) -> Layout:
        self._values(val_bits)
        units, unit = self.bits // self.granularity, self.granularity
        if val_bits <= unit:
            per = unit // val_bits
            return Layout((self.threads, (per, units)), (per, (1, self.threads * per)))
        by_unit = Layout((self.threads, (1, units)), (1, (1, self.threads)))
        return recast_layout(by_unit, unit, val_bits)

    tv_ref = tv_dst

    def _values(self, val_bits: int) -> int:
        unit = self.granularity
        if self.bits % val_bits or unit % val_bits and val_bits % unit:
            raise WidthMismatch(atom=self.short, bits=self.bits, elem_bits=val_bits)
        return self.bits // val_bits


ATOMIC_OPS = ("add", "max", "min", "and", "or", "inc", "dec")
_FLOAT_RMW = {"add": "fadd", "max": "fmax", "min": "fmin"}
_INT_RMW = {
    "add": "add",
    "max": "max",
    "min": "min",
    "and": "and",
    "or": "or",
    "inc": "uinc_wrap",
    "dec": "udec_wrap",
}


@record
class UniversalAtomic(CopyOp):
    """A read-modify-write of one value in global memory or LDS, relaxed, in the given scope."""

    op: str
    elem: str
    scope: str = ""

    key: ClassVar[str] = "universal_atomic"
    name: ClassVar[str] = "fly.universal_atomic"
    spaces: ClassVar[tuple[tuple[str, str], ...]] = ((REGISTER, GLOBAL), (REGISTER, SHARED))

    def __post_init__(self) -> None:
        one_of("atomic operation", self.op, ATOMIC_OPS)
        bit_width(self.elem)
        if split_vector(self.elem)[0] > 1:
            raise UnsupportedAtomic(
                atom=self.short,
                op=self.op,
                elem=self.elem,
                supported=("single floats and integers (packed pairs: BufferAtomicPkAdd)",),
            )

    @property
    def bits(self) -> int:
        """Width of the value."""
        return bit_width(self.elem)

    @property
    def parameters(self) -> str:
        return f"{self.op}, {self.elem}" + (f', "{self.scope}"' if self.scope else "")

    @property
    def rmw(self) -> str:
        """The kind of LLVM's `atomicrmw`; unsigned types compare as unsigned.

        Raises   UnsupportedAtomic: floats take add, max and min only
        """
        if is_float(self.elem):
            if self.op not in _FLOAT_RMW:
                raise UnsupportedAtomic(
                    atom=self.short, op=self.op, elem=self.elem, supported=("integers",)
                )
            return _FLOAT_RMW[self.op]
        kind = _INT_RMW[self.op]
        return "u" + kind if self.op in ("max", "min") and self.elem.startswith("ui") else kind

    def check(self, arch: str | None = None) -> CopyOp:
        _ = self.rmw  # raises for an op and type without an instruction
        return super().check(arch)


@record
class BufferAtomic(CopyOp):
    """A read-modify-write through a buffer descriptor; out-of-range ones are dropped.

    The instructions are fixed in signedness: max compares integers as signed, min as unsigned.
    """

    op: str
    elem: str

    key: ClassVar[str] = "buffer_atomic"
    name: ClassVar[str] = "fly_rocdl.cdna3.buffer_atomic"
    spaces: ClassVar[tuple[tuple[str, str], ...]] = ((REGISTER, BUFFER),)
    state_fields: ClassVar[dict[str, str]] = {"soffset": "i32"}

    def __post_init__(self) -> None:
        one_of("atomic operation", self.op, ATOMIC_OPS)
        bit_width(self.elem)

    @property
    def bits(self) -> int:
        """Width of the value; of both values of a packed pair."""
        return bit_width(self.elem)

    @property
    def parameters(self) -> str:
        return f"{self.op}, {self.elem}"

    @property
    def instruction(self) -> str:
        """The tail of rocdl's name: fadd, fmax, smax or umin.

        Raises   UnsupportedAtomic
        """
        scalar = split_vector(self.elem)[1]
        kinds = {"add": (is_float, "fadd"), "min": (is_int, "umin")}
        if self.op == "max":
            return "fmax" if is_float(scalar) else "smax"
        accepts, name = kinds.get(self.op, (None, ""))
        if accepts is None or not accepts(scalar):
            listed = {"add": "floats and packed pairs of floats", "min": "integers"}.get(
                self.op, "nothing"
            )
            raise UnsupportedAtomic(
                atom=self.short, op=self.op, elem=self.elem, supported=(listed,)
            )
        return name

    def check(self, arch: str | None = None) -> CopyOp:
        _ = self.instruction  # raises where there is none
        return super().check(arch)


@record
class CopyAtom:
    """A copy operation on values of `val_bits` bits."""

    op: CopyOp
    val_bits: int

    def __post_init__(self) -> None:
        if type(self.val_bits) is not int or self.val_bits <= 0:
            raise OutOfRange(
                subject="value width", expected="a positive number of bits", value=self.val_bits
            )

    @property
    def text(self) -> str:
        """The printed type: `!fly.copy_atom<!fly.universal_copy<128>, 16>`."""
        return f"!fly.copy_atom<{self.op.text}, {self.val_bits}>"

    @property
    def short(self) -> str:
        """The form in messages: `copy_atom<universal_copy<128>, 16>`."""
        return f"copy_atom<{self.op.short}, {self.val_bits}>"

    def __str__(self) -> str:
        return self.text

    @property
    def thr_layout(self) -> Layout:
        """Threads that work together on one copy."""
        return self.op.thr_layout

    @property
    def layout_src(self) -> Layout:
        """(thread, value) of the source."""
        return self.op.tv_src(self.val_bits)

    @property
    def layout_dst(self) -> Layout:
        """(thread, value) of the destination."""
        return self.op.tv_dst(self.val_bits)

    @property
    def layout_ref(self) -> Layout:
        """(thread, value) in the numbering of the tiled copy."""
        return self.op.tv_ref(self.val_bits)

    @property
    def state_fields(self) -> dict[str, str]:
        """State of the operation, name -> element type."""
        return self.op.state_fields


@cache
def copy_atom(op: CopyOp, elem: str | int) -> CopyAtom:
    """Return the atom of `op` on an element type or a bit width."""
    return CopyAtom(op, elem if isinstance(elem, int) else bit_width(elem))
