"""gfx1250: tensor DMA as copy atoms, scaled WMMA.

`make_tdm_atom` describes a raw global tensor by extents and strides held in the atom's state; `make_tiled_tdm_atom`
derives the atom from a tensor and its LDS layout and moves through a coordinate tensor. Completion:
`s_wait_tensorcnt`.
"""

from typing import Any

from flydsl import atoms
from flydsl.atoms import tdm, tdm_tiled
from flydsl.atoms.errors import AtomError
from flydsl.expr import algebra
from flydsl.expr.atoms import CopyAtom, make_copy_atom
from flydsl.expr.int_tuples import get_scalar, int_tuple
from flydsl.expr.layouts import make_composed_layout, make_layout
from flydsl.expr.pointers import ptrtoint
from flydsl.expr.rocdl.atoms import WMMAScale, _checked
from flydsl.expr.tensors import Tensor, get_iter, get_layout, make_view
from flydsl.expr.values import FlyValue, build, wrap
from flydsl.layout import ComposedLayout, Tile
from flydsl.layout import Layout as PlainLayout
from flydsl.utils.record import record

__all__ = [
    "TDM", "TensorLoad", "TensorStore", "WMMAScale", "make_tdm_atom", "make_tiled_tdm_atom", "tdm_partition",
]  # fmt: skip


def TDM(
    rank: int,
    num_warps: int,
    pad_interval: int = 0,
    pad_amount: int = 0,
    cache_modifier: int = 0,
    atomic_barrier: bool = False,
    early_timeout: bool = False,
) -> tdm.TDM:
    """Return the tensor copy of a tile of `rank` 1 to 5, shared out over `num_warps` warps; padding in LDS elements."""
    op = tdm.TDM(rank, num_warps, pad_interval, pad_amount, cache_modifier, atomic_barrier, early_timeout)
    return _checked(op)


@record
class TensorLoad:
    """Direction of a tiled atom: from the tensor to LDS."""

    cache_modifier: int = 0
    direction = "load"


@record
class TensorStore:
    """Direction of a tiled atom: from LDS to the tensor."""

    cache_modifier: int = 0
    direction = "store"


def make_tdm_atom(
    tensor: Tensor,
    tensor_extents: Any,
    strides: Any = None,
    *,
    num_warps: int,
    pad_interval: int = 0,
    pad_amount: int = 0,
    cache_modifier: int = 0,
    atomic_barrier: bool = False,
    early_timeout: bool = False,
) -> CopyAtom:
    """Return the atom for tiles of a global tensor.

    Shapes   tensor_extents, strides: one entry per dimension, outermost first; an extent None does not clamp, a stride
             None is the tensor's own; the innermost stride is not used
    """
    extents = list(tensor_extents)
    op = TDM(len(extents), num_warps, pad_interval, pad_amount, cache_modifier, atomic_barrier, early_timeout)
    atom = make_copy_atom(op, tensor.dtype)
    for i, extent in enumerate(extents):
        atom = atom.set_value(f"extent_{i}", tdm.UNBOUNDED if extent is None else extent)
    for i in range(len(extents) - 1):
        given = None if strides is None else strides[i]
        atom = atom.set_value(f"stride_{i}", _own_stride(tensor, i, len(extents)) if given is None else given)
    return atom


def _own_stride(tensor: Tensor, i: int, rank: int) -> Any:
    layout = get_layout(tensor)
    if tensor.plain.layout.rank != rank:
        raise AtomError(
            reason=f"a tensor of layout `{tensor.plain.layout}` has not the {rank} dimensions of its extents"
        )
    return get_scalar(build("fly.get", (algebra.get_stride(layout),), (i,)))


def make_tiled_tdm_atom(
    op: TensorLoad | TensorStore,
    tensor: Tensor,
    smem_layout: FlyValue,
    tdm_tile: Any,
    num_warps: int = 1,
    *,
    init_boundary_check: bool = True,
    atomic_barrier: bool = False,
    internal_type: Any = None,
) -> tuple[CopyAtom, Tensor]:
    """Return (the atom of one warp's share, the tensor of coordinates); padding follows from `smem_layout`.

    Shapes   tdm_tile: one extent per dimension, all warps together
    Raises   AtomError: more than five dimensions, warps that do not divide the tile, LDS ordered unlike the tensor
    """
    plain = int_tuple(tdm_tile).plain if not isinstance(getattr(tdm_tile, "plain", None), Tile) else tdm_tile.plain
    tile = plain if isinstance(plain, Tile) else Tile(tuple(plain) if isinstance(plain, tuple) else (plain,))
    atom, coords = tdm_tiled.make_tiled_tdm_atom(
        op.direction,
        tensor.plain,
        smem_layout.plain,
        tile,
        num_warps,
        cache_modifier=op.cache_modifier,
        atomic_barrier=atomic_barrier,
        init_boundary_check=init_boundary_check,
    )
    shape = algebra.get_shape(get_layout(tensor))
    layout = make_layout(shape, wrap(coords.layout.stride))
    made = wrap(atoms.CopyAtom(_checked(atom.op), atom.val_bits))
    if not init_boundary_check:
        made = made.set_value("boundary_check", False)
    return _with_tensor(made, tensor), make_view(wrap(coords.base), layout)


def _with_tensor(atom: CopyAtom, tensor: Tensor) -> CopyAtom:
    """Return the atom that knows the tensor's address, and extent and stride of each of its leaves."""
    atom = atom.set_value("tensor_base", ptrtoint(get_iter(tensor)))
    layout = get_layout(tensor)
    paths = _leaf_paths(tensor.plain.layout.shape)
    for name, modes in (("extent", algebra.get_shape(layout)), ("stride", algebra.get_stride(layout))):
        for i, path in enumerate(paths):
            atom = atom.set_value(f"tensor_{name}_{i}", get_scalar(build("fly.get", (modes,), (path,))))
    return atom


def _leaf_paths(shape: Any, path: tuple[int, ...] = ()) -> list[tuple[int, ...]]:
    """Return where the leaves are, left to right."""
    if not isinstance(shape, tuple):
        return [path]
    return [leaf for i, mode in enumerate(shape) for leaf in _leaf_paths(mode, (*path, i))]


def tdm_partition(
    atom: CopyAtom, warp_coord: Any, warp_layout: FlyValue, stensor: Tensor, gtensor: Tensor
) -> tuple[Tensor, Tensor]:
    """Return this warp's parts (shared, global), each ((atom, iteration), rest...).

    Shapes   mode 0 of both tensors is the tile that all warps move together; warp_layout maps `warp_coord` to a warp
    Raises   AtomError: mode 0 is no multiple of the cooperative tile; warp_layout is no bijection
    """
    smem = stensor.plain.layout
    values, warps = atom.plain.op.values(atom.plain.val_bits), tdm_tiled.size(warp_layout.plain)
    tdm_tiled.tdm_partition(atom.plain, 0, warp_layout.plain, smem, gtensor.plain.layout)  # refuses what does not fit
    total = tdm_tiled.size(smem[0])
    outer = smem[0].outer if isinstance(smem, ComposedLayout) else smem[0]
    chunks = PlainLayout((values, warps, total // (values * warps)), (1, values, values * warps))
    order = wrap(tdm_tiled.composition(tdm_tiled.right_inverse(tdm_tiled.make_layout_like(outer)), chunks))
    place = algebra.crd2idx(int_tuple(warp_coord), warp_layout)
    return _warp_part(stensor, order, place), _warp_part(gtensor, order, place)


def _warp_part(tensor: Tensor, order: FlyValue, place: FlyValue) -> Tensor:
    layout = get_layout(tensor)
    outer = algebra.composed_get_outer(layout) if isinstance(layout.plain, ComposedLayout) else layout
    cut = algebra.composition(_mode(outer, 0), order)
    offset = algebra.crd2idx(place, _mode(cut, 1))
    part = _paired(algebra.coalesce(_mode(cut, 0)), algebra.coalesce(_mode(cut, 2)))
    result = _as_mode(part)
    for i in range(1, outer.plain.rank):
        result = algebra.append(result, _mode(outer, i))
    if isinstance(layout.plain, ComposedLayout):
        moved = build("fly.int_tuple_add", (algebra.composed_get_offset(layout), offset))
        return make_view(get_iter(tensor), make_composed_layout(algebra.composed_get_inner(layout), moved, result))
    return make_view(build("fly.add_offset", (get_iter(tensor), offset)), result)


def _mode(layout: FlyValue, i: int) -> FlyValue:
    return build("fly.get", (layout,), (i,))


def _paired(first: FlyValue, second: FlyValue) -> FlyValue:
    return algebra.append(_as_mode(first), second)


def _as_mode(layout: FlyValue) -> FlyValue:
    """Return the layout of rank 1 whose only mode is `layout`."""
    shape, stride = algebra.get_shape(layout), algebra.get_stride(layout)
    return make_layout(int_tuple((shape,)), int_tuple((stride,)))
