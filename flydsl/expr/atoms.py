"""Atoms and tiled operations of `fx`: one hardware instruction with its lane map, and its repetition over threads and
values.

An atom is static: its type says all, except for *state* such as a scale or an offset, which is set with `set_value`
and costs one op. What a thread of a tiled copy or tiled MMA gets of a tensor is a partition: the algebra is in
`flydsl.atoms`, here it is folded or emitted.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from flydsl.atoms import MFMA, CopyOp, MmaOp
from flydsl.atoms import copy_atom as plain_copy_atom
from flydsl.atoms import tiled_copy as tc
from flydsl.atoms import tiled_mma as tm
from flydsl.atoms.copy_ops import SHARED
from flydsl.atoms.copy_ops import CopyAtom as PlainCopyAtom
from flydsl.diag import AtomExpected, AtomOperation, StateValue, user_span
from flydsl.dialects import laws
from flydsl.dialects.atom_values import MMA_OPS
from flydsl.expr.enum import MmaOperand
from flydsl.expr.fly_types import element_name
from flydsl.expr.int_tuples import IntTuple, as_int, int_tuple
from flydsl.expr.layout_errors import user_error
from flydsl.expr.layouts import Layout, Tile, make_tile
from flydsl.expr.numeric.base import Numeric
from flydsl.expr.numeric.base import raw as raw_scalar
from flydsl.expr.numeric.cast import from_python_value
from flydsl.expr.numeric.classes import Boolean, Int32, Int64
from flydsl.expr.pointers import Pointer, ptrtoint
from flydsl.expr.tensors import Tensor, alloca, expect_tensor
from flydsl.expr.values import FlyValue, Rebuilder, build, emit_as, expect, register_law, shown, wrap
from flydsl.ir import ir
from flydsl.ir.trace import active
from flydsl.layout.errors import LayoutError

register_law(
    "fly.tiled_copy_partition_src", lambda tiled, view, thread: laws.partition_copy(tiled, view, thread, "src")
)
register_law(
    "fly.tiled_copy_partition_dst", lambda tiled, view, thread: laws.partition_copy(tiled, view, thread, "dst")
)
register_law("fly.tiled_copy_retile", laws.retile)
register_law("fly.tiled_mma_partition", laws.partition_mma, lambda params: {"operand": ir.StringAttr.get(params[0])})

_WIDTH_CLASS = {"i1": Boolean, "i32": Int32, "i64": Int64}


class _Atom(FlyValue):
    """What copy and MMA atoms share: state fields."""

    __slots__ = ("_state",)

    @property
    def state(self) -> dict[str, ir.Value]:
        """The raw values of the state fields that are set."""
        return getattr(self, "_state", None) or {}

    def set_value(self, field: str | Mapping[str, Any], value: Any = None) -> Any:
        """Return the atom with a state field set, or with all fields of a mapping."""
        if isinstance(field, Mapping):
            atom = self
            for name, v in field.items():
                atom = atom.set_value(name, v)
            return atom
        kind = self._operation().check_state(field)
        raw_value = state_value(kind, value, field)
        atom = emit_as("fly.atom_set_value", self.plain, (self._raw(), raw_value), {"field": ir.StringAttr.get(field)})
        atom._state = {**self.state, field: raw_value}
        return atom

    def _operation(self) -> CopyOp | MmaOp:
        raise NotImplementedError

    def __extract_to_ir_values__(self) -> list[ir.Value]:
        return list(self.state.values())

    @classmethod
    def _rebuild(cls, values: Sequence[ir.Value], exemplar: _Atom) -> _Atom:
        atom = wrap(exemplar.plain)
        for field, value in zip(exemplar.state, values, strict=True):
            atom = atom.set_value(field, value)
        return atom


def state_value(kind: str, value: Any, field: str) -> ir.Value:
    """Return the raw integer of a state field: any 32-bit (64-bit) value is taken by its bits, an LDS pointer by its address."""
    wanted = _WIDTH_CLASS.get(kind)
    if wanted is None:
        raise StateValue(field=field, kind=kind, got=shown(value))
    if isinstance(value, IntTuple):
        value = value.to_py_value()
    if isinstance(value, Pointer):
        if value.plain.space != SHARED:
            raise StateValue(field=field, kind=kind, got=str(value))
        value = ptrtoint(value)
    bitcast = getattr(value, "bitcast", None)
    if hasattr(value, "numel") and bitcast is not None:
        if value.numel * value.dtype.width != wanted.width:
            raise StateValue(field=field, kind=kind, got=str(value))
        return raw_scalar(bitcast(wanted)[0])
    try:
        x = from_python_value(value)
    except (TypeError, ValueError):
        raise StateValue(field=field, kind=kind, got=shown(value)) from None
    if x.is_float:
        if x.width != wanted.width:
            raise StateValue(field=field, kind=kind, got=type(x).__name__)
        return raw_scalar(x.bitcast(wanted))
    return raw_scalar(x if x.__class__ is wanted else x.to(wanted))


class CopyAtom(_Atom, plains=(PlainCopyAtom,)):
    """A copy instruction on values of some width."""

    __slots__ = ()

    def _operation(self) -> CopyOp:
        return self.plain.op

    @property
    def thr_layout(self) -> Layout:
        """The threads that work together on one copy."""
        return wrap(self.plain.thr_layout)

    thr_id = thr_layout

    @property
    def layout_src_tv(self) -> Layout:
        """(thread, value) of the source."""
        return wrap(self.plain.layout_src)

    @property
    def layout_dst_tv(self) -> Layout:
        """(thread, value) of the destination."""
        return wrap(self.plain.layout_dst)

    @property
    def layout_ref_tv(self) -> Layout:
        """(thread, value) in the numbering by which the two are compared."""
        return wrap(self.plain.layout_ref)

    @property
    def val_bits(self) -> int:
        """Width of a value in bits."""
        return self.plain.val_bits


class MmaAtom(_Atom, plains=MMA_OPS):
    """A matrix instruction: d = a * b + c on one tile of (m, n, k)."""

    __slots__ = ()

    def _operation(self) -> MmaOp:
        return self.plain

    @property
    def thr_layout(self) -> Layout:
        """The lanes that work together on one product."""
        return wrap(self.plain.thr_layout)

    thr_id = thr_layout

    @property
    def shape_mnk(self) -> IntTuple:
        """Extents of one product."""
        return wrap(tuple(self.plain.shape_mnk))

    @property
    def layout_A_tv(self) -> Layout:
        """(lane, value) -> column-major index in (M, K)."""
        return wrap(self.plain.layout("A"))

    @property
    def layout_B_tv(self) -> Layout:
        """(lane, value) -> column-major index in (N, K)."""
        return wrap(self.plain.layout("B"))

    @property
    def layout_C_tv(self) -> Layout:
        """(lane, value) -> column-major index in (M, N)."""
        return wrap(self.plain.layout("C"))


class _Tiled(FlyValue):
    """What tiled copies and tiled MMAs share: an atom that may have state."""

    __slots__ = ("_atom",)

    _atom_class: type[_Atom]

    @property
    def state(self) -> dict[str, ir.Value]:
        """The raw values of the atom's state fields that are set."""
        return self.atom.state

    @property
    def atom(self) -> Any:
        """The atom that is repeated."""
        atom = getattr(self, "_atom", None)
        return wrap(self.plain.atom) if atom is None else atom

    def _with_atom(self, atom: _Atom) -> Any:
        tiled = wrap(self.plain)
        tiled._atom = atom
        return tiled

    def set_value(self, field: str | Mapping[str, Any], value: Any = None) -> Any:
        """Return the tiled operation whose atom has a state field set."""
        return self._with_atom(self.atom.set_value(field, value))

    def __extract_to_ir_values__(self) -> list[ir.Value]:
        return self.atom.__extract_to_ir_values__()

    @classmethod
    def _rebuild(cls, values: Sequence[ir.Value], exemplar: _Tiled) -> _Tiled:
        return exemplar._with_atom(exemplar.atom.__construct_from_ir_values__(values)) if values else exemplar


class TiledCopy(_Tiled, plains=(tc.TiledCopy,)):
    """A copy atom repeated over the threads and values of a tile."""

    __slots__ = ()

    @property
    def tile_mn(self) -> Tile:
        """Extents of the tile."""
        return wrap(self.plain.tile)

    @property
    def layout_tv_tiled(self) -> Layout:
        """(thread, value) -> column-major index in the tile."""
        return wrap(self.plain.layout_tv)

    @property
    def layout_src_tv_tiled(self) -> Layout:
        """(thread, (value of the atom, rest)) -> index in the tile, for the source."""
        return wrap(self.plain.layout_src_tv)

    @property
    def layout_dst_tv_tiled(self) -> Layout:
        """(thread, (value of the atom, rest)) -> index in the tile, for the destination."""
        return wrap(self.plain.layout_dst_tv)

    def get_slice(self, thr_idx: Any) -> ThrCopy:
        """Return the part of one thread."""
        return ThrCopy(self, thr_idx)

    thr_slice = get_slice


class TiledMma(_Tiled, plains=(tm.TiledMma,)):
    """An MMA atom repeated over waves and a permuted tile."""

    __slots__ = ()

    @property
    def mma_atom(self) -> MmaAtom:
        """The atom that is repeated."""
        return self.atom

    @property
    def atom_layout(self) -> Layout:
        """(M, N, K) -> number of the wave."""
        return wrap(self.plain.atom_layout)

    @property
    def permutation_mnk(self) -> Tile:
        """How each mode is permuted before it is dealt out; `*` keeps it."""
        return wrap(self.plain.permutation_mnk)

    @property
    def tile_size_mnk(self) -> IntTuple:
        """Extents of what all waves compute in one step."""
        return wrap(tuple(self.plain.tile_size_mnk))

    @property
    def thr_layout_vmnk(self) -> Layout:
        """(lane, wave M, wave N, wave K) -> thread."""
        return wrap(self.plain.thr_layout_vmnk)

    @property
    def tv_layout_A_tiled(self) -> Layout:
        """(thread, value) -> column-major index in the tile of A."""
        return wrap(self.plain.tv_layout("A"))

    @property
    def tv_layout_B_tiled(self) -> Layout:
        """(thread, value) -> column-major index in the tile of B."""
        return wrap(self.plain.tv_layout("B"))

    @property
    def tv_layout_C_tiled(self) -> Layout:
        """(thread, value) -> column-major index in the tile of C."""
        return wrap(self.plain.tv_layout("C"))

    def get_slice(self, thr_idx: Any) -> ThrMma:
        """Return the part of one thread."""
        return ThrMma(self, thr_idx)

    thr_slice = get_slice

    def make_fragment_A(self, a: Tensor, *, stages: int | None = None) -> Tensor:
        """Return registers for one thread's part of a whole tile of A; `stages` appends a mode of copies."""
        return _fragment(self, "A", a, stages)

    def make_fragment_B(self, b: Tensor, *, stages: int | None = None) -> Tensor:
        """Return registers for one thread's part of a whole tile of B; `stages` appends a mode of copies."""
        return _fragment(self, "B", b, stages)

    def make_fragment_C(self, c: Tensor, *, stages: int | None = None) -> Tensor:
        """Return registers of the accumulator's type for one thread's part of a whole tile of C."""
        return _fragment(self, "C", c, stages)


class _Slice:
    """One thread of a tiled operation: knows the operation and the thread's number."""

    __slots__ = ("_tiled", "thr_idx")

    def __init__(self, tiled: Any, thr_idx: Any):
        self._tiled = tiled
        self.thr_idx = int_tuple(thr_idx)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._tiled, name)

    def set_value(self, field: str | Mapping[str, Any], value: Any = None) -> Any:
        """Return the same thread of the operation whose atom has a state field set."""
        return type(self)(self._tiled.set_value(field, value), self.thr_idx)

    def __extract_to_ir_values__(self) -> list[ir.Value]:
        return [*self._tiled.__extract_to_ir_values__(), *self.thr_idx.leaf_values()]

    def __ir_value_count__(self) -> int:
        return len(self._tiled.atom.state) + (0 if self.thr_idx.is_static else 1)

    __construct_from_ir_values__ = Rebuilder()

    @classmethod
    def _rebuild(cls, values: Sequence[ir.Value], exemplar: _Slice) -> _Slice:
        count = len(values) - (0 if exemplar.thr_idx.is_static else 1)
        tiled = exemplar._tiled.__construct_from_ir_values__(values[:count])
        return type(exemplar)(tiled, exemplar.thr_idx.__construct_from_ir_values__(values[count:]))


class ThrCopy(_Slice):
    """One thread of a tiled copy."""

    __slots__ = ()

    def partition_S(self, src: Tensor) -> Tensor:
        """Return what this thread reads of `src`: ((atom value, rest value), rest of each mode...)."""
        return tiled_copy_partition_src(self._tiled, src, self.thr_idx)

    def partition_D(self, dst: Tensor) -> Tensor:
        """Return what this thread writes of `dst`: ((atom value, rest value), rest of each mode...)."""
        return tiled_copy_partition_dst(self._tiled, dst, self.thr_idx)

    def retile(self, t: Tensor) -> Tensor:
        """Return a fragment seen in this copy's value grouping; no data is moved."""
        return tiled_copy_retile(self._tiled, t)


class ThrMma(_Slice):
    """One thread of a tiled MMA."""

    __slots__ = ()

    def partition_A(self, a: Tensor) -> Tensor:
        """Return this thread's part of A: (value, rest M, rest K, ...)."""
        return tiled_mma_partition("A", self._tiled, a, self.thr_idx)

    def partition_B(self, b: Tensor) -> Tensor:
        """Return this thread's part of B: (value, rest N, rest K, ...)."""
        return tiled_mma_partition("B", self._tiled, b, self.thr_idx)

    def partition_C(self, c: Tensor) -> Tensor:
        """Return this thread's part of C: (value, rest M, rest N, ...)."""
        return tiled_mma_partition("C", self._tiled, c, self.thr_idx)


# --- making atoms --------------------------------------------------------------------------------------------------


def make_copy_atom(copy_op_type: CopyOp, elem_type: Any) -> CopyAtom:
    """Return the atom of a copy operation on an element type: a scalar class, an IR type or a width in bits."""
    if not isinstance(copy_op_type, CopyOp):
        raise AtomOperation(
            op="make_copy_atom", kind="copy", example="fx.UniversalCopy128b()", got=_shown_op(copy_op_type)
        )
    return wrap(plain_copy_atom(copy_op_type, _bits(elem_type)))


def _bits(elem: Any) -> int | str:
    if isinstance(elem, (int, IntTuple)):
        return as_int(elem, "the value width of an atom")
    if isinstance(elem, Numeric):
        return as_int(elem, "the value width of an atom")
    return element_name(elem, "the element type of an atom")


def _shown_op(x: Any) -> str:
    if callable(x) and not isinstance(x, type):
        return f"the function {getattr(x, '__name__', x)} (call it)"
    return x.short if isinstance(x, (CopyOp, MmaOp)) else shown(x)


def make_mma_atom(mma_op_type: MmaOp) -> MmaAtom:
    """Return the atom of a matrix operation, refused where the chip has no such instructions."""
    if not isinstance(mma_op_type, MmaOp):
        raise AtomOperation(
            op="make_mma_atom",
            kind="matrix",
            example="fx.rocdl.MFMA(16, 16, 16, fx.Float16)",
            got=_shown_op(mma_op_type),
        )
    trace = active.trace
    if trace is not None and isinstance(mma_op_type, MFMA) and mma_op_type.reads_as_fnuz(trace.arch):
        _warn_of_fnuz(mma_op_type, trace.arch)
    return wrap(mma_op_type if trace is None else mma_op_type.check_making(trace.arch))


def _warn_of_fnuz(op: MFMA, arch: str) -> None:
    """Say at the user's line that the chip decodes OCP codes as FNUZ: other numbers."""
    text = f"{arch} reads the operands of {op.short} as FNUZ, not OCP: convert the data to fx.Float8E4M3FNUZ for this chip"
    place = user_span()
    file, line = (place.file, place.line) if place else ("<kernel>", 1)
    warnings.warn_explicit(text, UserWarning, file, line)


def atom_set_value(atom: Any, field: str | Mapping[str, Any], value: Any = None) -> Any:
    """Return an atom, or tiled operation, with a state field set."""
    return expect(atom, (CopyAtom, MmaAtom, TiledCopy, TiledMma), "the atom of atom_set_value").set_value(field, value)


def copy_atom_of(x: Any, what: str) -> CopyAtom:
    """Return a copy atom, or that of a tiled copy."""
    if x.__class__ is CopyAtom:
        return x
    if x.__class__ is TiledCopy:
        return x.atom
    raise AtomExpected(op=what, kind="CopyAtom or TiledCopy", got=shown(x) if not isinstance(x, ThrCopy) else "ThrCopy")


def mma_atom_of(x: Any, what: str) -> MmaAtom:
    """Return an MMA atom, or that of a tiled MMA.

    Raises   AtomExpected; UnsupportedShape: the chip does not have it
    """
    if x.__class__ is not MmaAtom and x.__class__ is not TiledMma:
        raise AtomExpected(op=what, kind="MmaAtom or TiledMma", got=shown(x) if not isinstance(x, ThrMma) else "ThrMma")
    atom = x if x.__class__ is MmaAtom else x.atom
    if active.trace is not None:
        atom.plain.check(active.trace.arch)
    return atom


# --- tiled copies --------------------------------------------------------------------------------------------------


def make_tiled_copy(copy_atom: CopyAtom, layout_thr_val: Layout, tile_mn: Any) -> TiledCopy:
    """Return the tiled copy of an explicit (thread, value) layout of a tile."""
    atom = copy_atom_of(copy_atom, "make_tiled_copy")
    tv = expect(layout_thr_val, Layout, "the thread-value layout of make_tiled_copy")
    tile = tile_mn if isinstance(tile_mn, Tile) else make_tile(*_modes(tile_mn))
    return _tiled(tc.make_tiled_copy(atom.plain, tv.plain, tile.plain), atom)


def _modes(tile: Any) -> Sequence[Any]:
    if isinstance(tile, IntTuple):
        return tile.to_py_value() if not tile.is_leaf else (tile,)
    return tile if isinstance(tile, (tuple, list)) else (tile,)


def _tiled(plain: Any, atom: _Atom) -> Any:
    tiled = wrap(plain)
    if atom.state:
        tiled._atom = atom
    return tiled


def make_tiled_copy_tv(atom: CopyAtom, thr_layout: Layout, val_layout: Layout) -> TiledCopy:
    """Return the tiled copy in which every thread of `thr_layout` moves the values of `val_layout`."""
    copy_atom = copy_atom_of(atom, "make_tiled_copy_tv")
    thr = expect(thr_layout, Layout, "thr_layout of make_tiled_copy_tv")
    val = expect(val_layout, Layout, "val_layout of make_tiled_copy_tv")
    try:
        return _tiled(tc.make_tiled_copy_tv(copy_atom.plain, thr.plain, val.plain), copy_atom)
    except LayoutError as error:
        raise user_error(error, "make_tiled_copy_tv") from None


def _operand_copy(copy_atom: CopyAtom, tiled_mma: TiledMma, operand: str) -> TiledCopy:
    name = f"make_tiled_copy_{operand}"
    atom = copy_atom_of(copy_atom, name)
    mma = expect(tiled_mma._tiled if isinstance(tiled_mma, ThrMma) else tiled_mma, TiledMma, f"tiled_mma of {name}")
    return _tiled(tm.make_tiled_copy_operand(atom.plain, mma.plain, operand), atom)


def make_tiled_copy_A(copy_atom: CopyAtom, tiled_mma: TiledMma) -> TiledCopy:
    """Return the tiled copy that fills operand A of a tiled MMA."""
    return _operand_copy(copy_atom, tiled_mma, "A")


def make_tiled_copy_B(copy_atom: CopyAtom, tiled_mma: TiledMma) -> TiledCopy:
    """Return the tiled copy that fills operand B of a tiled MMA."""
    return _operand_copy(copy_atom, tiled_mma, "B")


def make_tiled_copy_C(copy_atom: CopyAtom, tiled_mma: TiledMma) -> TiledCopy:
    """Return the tiled copy that fills or drains the accumulator of a tiled MMA."""
    return _operand_copy(copy_atom, tiled_mma, "C")


def tiled_copy_partition_src(tiled_copy: TiledCopy, src: Tensor, thr_int_tuple: Any) -> Tensor:
    """Return what one thread of a tiled copy reads of `src`."""
    tiled = expect(tiled_copy, TiledCopy, "the tiled copy of a partition")
    t = expect_tensor(src, "the tensor of partition_S")
    return build("fly.tiled_copy_partition_src", (tiled, t, int_tuple(thr_int_tuple)))


def tiled_copy_partition_dst(tiled_copy: TiledCopy, dst: Tensor, thr_int_tuple: Any) -> Tensor:
    """Return what one thread of a tiled copy writes of `dst`."""
    tiled = expect(tiled_copy, TiledCopy, "the tiled copy of a partition")
    t = expect_tensor(dst, "the tensor of partition_D")
    return build("fly.tiled_copy_partition_dst", (tiled, t, int_tuple(thr_int_tuple)))


def tiled_copy_retile(tiled_copy: TiledCopy, t: Tensor) -> Tensor:
    """Return a fragment seen in the value grouping of a tiled copy."""
    tiled = expect(tiled_copy, TiledCopy, "the tiled copy of retile")
    return build("fly.tiled_copy_retile", (tiled, expect_tensor(t, "the fragment of retile")))


# --- tiled MMA -----------------------------------------------------------------------------------------------------


def make_tiled_mma(mma_atom: MmaAtom, atom_layout: Layout, permutation: Any = None) -> TiledMma:
    """Return the MMA atom repeated over waves; `permutation` is a tile of (M, N, K) extents or layouts, None keeps a
    mode.
    """
    atom = mma_atom_of(mma_atom, "make_tiled_mma")
    waves = expect(atom_layout, Layout, "atom_layout of make_tiled_mma")
    if permutation is not None and not isinstance(permutation, Tile):
        permutation = make_tile(*_modes(permutation))
    tile = None if permutation is None else permutation.plain
    return _tiled(tm.make_tiled_mma(atom.plain, waves.plain, tile), atom)


def operand_name(operand_id: Any) -> str:
    """Return "A", "B" or "C" of an MmaOperand, its number or its name; D has the layout of C."""
    name = operand_id if isinstance(operand_id, str) else MmaOperand(int(operand_id)).name
    return "C" if name == "D" else name


def tiled_mma_partition(operand_id: Any, tiled_mma: TiledMma, t: Tensor, coord: Any) -> Tensor:
    """Return one thread's part of operand A, B or C of a tiled MMA: (value, rest of each mode...)."""
    name = operand_name(operand_id)
    tiled = expect(tiled_mma, TiledMma, "the tiled MMA of a partition")
    tensor = expect_tensor(t, f"the tensor of partition_{name}")
    return build("fly.tiled_mma_partition", (tiled, tensor, int_tuple(coord)), (name,))


def tiled_mma_partition_shape(operand_id: Any, tiled_mma: TiledMma, shape: Any) -> IntTuple:
    """Return the shape of one thread's part of an operand of this shape."""
    tiled = expect(tiled_mma, TiledMma, "the tiled MMA of a partition")
    try:
        return wrap(tm.partition_shape(tiled.plain, operand_name(operand_id), int_tuple(shape).plain))
    except LayoutError as error:
        raise user_error(error, "tiled_mma_partition_shape") from None


def mma_make_fragment(operand_id: Any, tiled_mma: TiledMma, input: Tensor, *, stages: int | None = None) -> Tensor:
    """Return registers for a part that is partitioned already: values adjacent, then the modes by their strides."""
    tiled = expect(tiled_mma, TiledMma, "the tiled MMA of a fragment")
    part = expect_tensor(input, "the partition of a fragment").plain.layout
    return _alloca_operand(tiled, operand_name(operand_id), part, stages)


def _fragment(tiled: TiledMma, operand: str, t: Tensor, stages: int | None) -> Tensor:
    layout = expect_tensor(t, f"the tensor of make_fragment_{operand}").plain.layout
    try:
        part, _ = tm.partition(tiled.plain, operand, layout, 0)
    except LayoutError as error:
        raise user_error(error, f"make_fragment_{operand}") from None
    return _alloca_operand(tiled, operand, part, stages)


def _alloca_operand(tiled: TiledMma, operand: str, part: Any, stages: int | None) -> Tensor:
    op = tiled.plain.atom
    elem = {"A": op.a, "B": op.b, "C": op.acc}[operand]
    name = f"make_fragment_{operand}"
    count = None if stages is None else as_int(stages, "stages")
    try:
        layout = tm.staged_fragment(part, count)
    except LayoutError as error:
        raise user_error(error, name) from None
    return alloca(elem, layout, name)
