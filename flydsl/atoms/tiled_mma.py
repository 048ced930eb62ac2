"""Tiled MMA: an MMA atom repeated over waves and a permuted tile, and how it deals out its
operands.

Like `tiled_copy`, all on layouts: results are `(layout, offset)`, leaves and thread numbers may
be dynamic. Steps for an operand (say A over (M, K)): permute each mode, cut it by the atom's
shape, put the atom's lane map in place of the cut-out tile, deal what remains to the waves.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any

from flydsl.layout import (
    ComposedLayout,
    Layout,
    Tile,
    append,
    column_major,
    composition,
    get_flat_coord,
    logical_divide,
    make_fragment_layout_like,
    make_tile,
    right_inverse,
    size,
    slice_,
    take,
    tiled_product,
    zipped_divide,
)
from flydsl.layout.int_tuple import IntTuple
from flydsl.layout.layout import from_modes, layout_modes, on_outer
from flydsl.layout.memo import operation
from flydsl.layout.modes import slice_with_offset
from flydsl.utils.record import record

from .copy_ops import CopyAtom
from .errors import AtomError, one_of
from .mma_ops import MmaOp
from .tiled_copy import TiledCopy, make_tiled_copy

LayoutLike = Layout | ComposedLayout
_MODES = {"A": (0, 2), "B": (1, 2), "C": (0, 1), "D": (0, 1)}


@record
class TiledMma:
    """`atom_layout` (M, N, K) numbers the waves; `permutation` is a Tile of up to three
    entries, or None.
    """

    atom: MmaOp
    atom_layout: Layout
    permutation: Tile | None = None

    def __post_init__(self) -> None:
        if self.atom_layout.rank != 3 or not self.atom_layout.is_static:
            raise AtomError(
                reason=f"the layout of the atoms has three static modes (M, N, K), "
                f"got `{self.atom_layout}`"
            )
        if self.permutation is not None and self.permutation.rank > 3:
            raise AtomError(
                reason=f"a permutation has at most three entries (M, N, K), got {self.permutation}"
            )

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.atom, self.atom_layout, self.permutation))

    @property
    def text(self) -> str:
        """The printed type; a permutation that keeps every mode is left out."""
        tail = "" if self.permutation is None else f", !fly.tile<{self.permutation}>"
        return f"!fly.tiled_mma<!fly.mma_atom<{self.atom.text}>, !fly.layout<{self.atom_layout}>{tail}>"

    def __str__(self) -> str:
        return self.text

    @cached_property
    def permutation_mnk(self) -> Tile:
        """The permutation with all three entries."""
        given = () if self.permutation is None else self.permutation.modes
        return Tile((*given, *[None] * (3 - len(given))))

    @cached_property
    def tile_size_mnk(self) -> tuple[int, int, int]:
        """Extents of what all waves compute in one step."""
        return tuple(self._tile_extent(i) for i in range(3))

    def tile_entry(self, mode: int) -> Layout | int:
        """Return what a mode of a tensor is cut by first: its permutation, else the extent of all waves."""
        entry = self.permutation_mnk.modes[mode]
        return self.atom.shape_mnk[mode] * size(self.atom_layout[mode]) if entry is None else entry

    def _tile_extent(self, mode: int) -> int:
        entry = self.tile_entry(mode)
        return size(entry) if isinstance(entry, Layout) else entry

    @cached_property
    def thr_layout_vmnk(self) -> Layout:
        """(lane, wave M, wave N, wave K) -> thread number."""
        return tiled_product(self.atom.thr_layout, self.atom_layout)

    @cached_property
    def threads(self) -> int:
        """Number of threads."""
        return size(self.thr_layout_vmnk)

    def tv_layout(self, operand: str) -> Layout:
        """Return (thread, (atom value, rest values)) -> column-major index in the operand's
        tile.
        """
        return _tv_layout(self, operand)

    def tile_shape(self, operand: str) -> tuple[int, int]:
        """Return the operand's two extents of the tile."""
        one_of("operand", operand, _MODES)
        return tuple(self.tile_size_mnk[i] for i in _MODES[operand])


@lru_cache(maxsize=4096)
def make_tiled_mma(atom: MmaOp, atom_layout: Layout, permutation: Any = None) -> TiledMma:
    """Return the tiled MMA; `permutation` is a Tile, a tuple of its entries or None."""
    if permutation is not None and not isinstance(permutation, Tile):
        permutation = make_tile(*permutation)
    return TiledMma(atom, atom_layout, permutation)


def deal(tiled: TiledMma, operand: str, layout: LayoutLike) -> LayoutLike:
    """Return the layout as ((lane, (wave, wave)), atom value, rest of each mode, extra
    modes...).
    """
    one_of("operand", operand, _MODES)
    return on_outer(_deal, layout, tiled, operand)


@operation
def _deal(layout: Layout, tiled: TiledMma, operand: str) -> Layout:
    if layout.rank < 2:
        raise AtomError(
            reason=f"operand {operand} has two modes or more, got the layout `{layout}`"
        )
    picked = _MODES[operand]
    permuted = logical_divide(layout, make_tile(*(tiled.tile_entry(i) for i in picked)))
    atom_shape = tuple(tiled.atom.shape_mnk[i] for i in picked)
    divided = zipped_divide(permuted, make_tile(*atom_shape))
    lanes, values = layout_modes(composition(divided[0], tiled.atom.layout(operand)))
    waves, rests = [], []
    rest_modes = layout_modes(divided[1])
    for mode, which in zip(rest_modes, picked):
        wave, rest = layout_modes(logical_divide(mode, Layout(size(tiled.atom_layout[which]), 1)))
        waves.append(wave)
        rests.append(rest)
    thread = from_modes([lanes, from_modes(waves)])
    return from_modes([thread, values, *rests, *rest_modes[2:]])


def wave_coord(tiled: TiledMma, operand: str, thread: Any) -> IntTuple:
    """Return (lane, (wave, wave)) of a thread as the operand's thread mode wants it."""
    flat = get_flat_coord(thread, tiled.thr_layout_vmnk)
    first, second = _MODES[operand]
    return flat[0], (flat[1 + first], flat[1 + second])


def partition(
    tiled: TiledMma, operand: str, layout: LayoutLike, thread: Any
) -> tuple[LayoutLike, Any]:
    """Return (layout, offset) of one thread's part of an operand: (value, rest of each mode,
    extra...).
    """
    dealt = deal(tiled, operand, layout)
    coord = (wave_coord(tiled, operand, thread), *[None] * (dealt.rank - 1))
    if isinstance(dealt, ComposedLayout):
        return slice_(dealt, coord), 0
    return slice_with_offset(dealt, coord)


def partition_shape(tiled: TiledMma, operand: str, shape: IntTuple) -> IntTuple:
    """Return the shape of one thread's part of an operand of this shape."""
    return deal(tiled, operand, column_major(shape)).shape[1:]


def fragment_layout(
    tiled: TiledMma, operand: str, layout: LayoutLike, stages: int | None = None
) -> Layout:
    """Return the register layout of an operand's part: values adjacent, then the modes by strides.

    With `stages` the last mode counts that many copies, in place of the tensor's modes beyond the
    operand's two.
    """
    part, _ = partition(tiled, operand, layout, 0)
    return staged_fragment(part, stages)


def staged_fragment(part: LayoutLike, stages: int | None) -> Layout:
    """Return the register layout of a part (value, rest, rest, extra...), with `stages` copies."""
    if stages is None:
        return make_fragment_layout_like(part)
    fragment = make_fragment_layout_like(take(part, 0, 3))
    return append(fragment, Layout(stages, size(fragment) if stages != 1 else 0))


@lru_cache(maxsize=4096)
def _tv_layout(tiled: TiledMma, operand: str) -> Layout:
    dealt = _dealt_tile(tiled, operand)
    threads = composition(vmnk_to_tile(tiled, operand), right_inverse(tiled.thr_layout_vmnk))
    return from_modes([threads, from_modes([dealt[1], from_modes(dealt[2:])])])


def _dealt_tile(tiled: TiledMma, operand: str) -> list[Layout]:
    return layout_modes(_deal(column_major(tiled.tile_shape(operand)), tiled, operand))


def vmnk_to_tile(tiled: TiledMma, operand: str) -> Layout:
    """Return (lane, wave M, wave N, wave K) -> where that thread's values begin in the operand's tile.

    The waves along the mode that the operand lacks have stride 0: they share its elements.
    """
    lanes, waves = layout_modes(_dealt_tile(tiled, operand)[0])
    by_mode = dict(zip(_MODES[operand], layout_modes(waves)))
    return from_modes(
        [lanes, *(by_mode.get(i) or Layout(size(tiled.atom_layout[i]), 0) for i in range(3))]
    )


def make_tiled_copy_operand(atom: CopyAtom, tiled: TiledMma, operand: str) -> TiledCopy:
    """Return the tiled copy that fills or drains an operand of a tiled MMA."""
    extents = tiled.tile_shape(operand)
    return make_tiled_copy(
        atom, tiled.tv_layout(operand), Tile(tuple(Layout(e, 1) for e in extents))
    )
