"""The products: repeat a layout (the block) as another layout (the tiler) says.

Law   the block is kept in mode 0; every copy is a shifted block; copies do not overlap when the
tiler is injective
"""

from __future__ import annotations

from typing import Any

from . import leaf
from .compose import canonical_pair, compose_pair, refuse_carries, scaled
from .divide import regroup
from .errors import LayoutError, NotStatic, OperandType, RankMismatch
from .int_tuple import (
    IntTuple,
    as_modes,
    ceil_div,
    int_tuple_product_each,
    make_int_tuple,
    product,
    to_str,
    tuple_rank,
)
from .inverse import gap_leaves
from .layout import (
    ComposedLayout,
    Layout,
    compact_column_major,
    expect_layout,
    from_modes,
    layout_modes,
    make_ordered_layout,
    on_outer,
    ordered_layout,
)
from .measure import size
from .memo import operation


def _expect_tiler(tiler: Any) -> None:
    if type(tiler) is not Layout:
        raise OperandType(f"the tiler must be a plain layout, not {type(tiler).__name__}")


@operation
def logical_product(block: Any, tiler: Layout) -> Any:
    """Return (block, copies): copies = composition(gaps of block, tiler).

    The gaps are complement(block, size(block) * cosize(tiler)); the ragged end of a gap stays
    unused.
    """
    if type(block) is ComposedLayout:
        return on_outer(logical_product, block, tiler)
    (bs, bd), (cs, cd) = _product_pairs(block, tiler)
    return Layout((bs, cs), (bd, cd))


def _product_pairs(block: Layout, tiler: Layout) -> tuple[tuple, tuple]:
    """Return (shape, stride) of the block and of its copies."""
    expect_layout(block)
    _expect_tiler(tiler)
    merged = _room(block, tiler)
    copies = compose_pair(merged, tiler.shape, tiler.stride)
    if len(merged[0]) > 1:
        refuse_carries(merged, (tiler.flat(),), copies)
    return canonical_pair(block.shape, block.stride), copies


def _room(block: Layout, tiler: Layout) -> tuple[list, list]:
    """Return the leaves of the places for copies; a tiler which never leaves index 0 needs none."""
    reach: Any = 1
    for s, d in zip(*tiler.flat()):
        if type(s) is type(d) is type(reach) is int:
            reach += (s - 1) * d
        elif not (type(d) is int and d == 0 or type(s) is int and s == 1):
            reach = leaf.add(reach, leaf.mul(leaf.sub(s, 1), d))
    block.flat()
    if type(reach) is int and reach == 1:
        return [1], [0]
    shapes, strides = gap_leaves(block, leaf.mul(product(block.shape), reach), False)
    return (shapes, strides) if shapes else ([1], [0])


@operation
def zipped_product(block: Any, tiler: Layout) -> Any:
    """Return ((block), (copies)): as `logical_product`."""
    return logical_product(block, tiler)


@operation
def tiled_product(block: Any, tiler: Layout) -> Any:
    """Return ((block), copies0, copies1, ...)."""
    return on_outer(lambda l: regroup(logical_product(l, tiler), flat=False), block)


@operation
def flat_product(block: Any, tiler: Layout) -> Any:
    """Return (block0, ..., copies0, ...)."""
    return on_outer(lambda l: regroup(logical_product(l, tiler), flat=True), block)


def _interleaved(block: Any, tiler: Layout, block_first: bool) -> Any:
    if type(block) is ComposedLayout:
        return on_outer(_interleaved, block, tiler, block_first)
    expect_layout(block)
    _expect_tiler(tiler)
    rank = max(tuple_rank(block.shape), tuple_rank(tiler.shape))
    if rank > 1:
        block, tiler = _padded(block, rank), _padded(tiler, rank)
    first, second = _product_pairs(block, tiler)
    if not block_first:
        first, second = second, first
    (fs, fd), (ss, sd) = first, second
    if rank == 1 and (type(fs) is not tuple or tuple_rank(fs) != tuple_rank(ss)):
        return Layout((fs, ss), (fd, sd))
    return Layout(tuple(zip(fs, ss)), tuple(zip(fd, sd)))


def _padded(layout: Layout, rank: int) -> Layout:
    """Return the layout filled up with modes 1:0."""
    more = rank - tuple_rank(layout.shape)
    if more == 0:
        return layout
    return Layout(as_modes(layout.shape) + (1,) * more, as_modes(layout.stride) + (0,) * more)


@operation
def blocked_product(block: Any, tiler: Layout) -> Any:
    """Return ((block0, copies0), (block1, copies1), ...); the lower rank is filled up with 1:0."""
    return _interleaved(block, tiler, True)


@operation
def raked_product(block: Any, tiler: Layout) -> Any:
    """Return ((copies0, block0), (copies1, block1), ...): neighbours are copies, not block
    elements.
    """
    return _interleaved(block, tiler, False)


@operation
def _tile_to_shape(block: Any, target: IntTuple, order: IntTuple) -> Any:
    if type(block) is ComposedLayout:
        return on_outer(_tile_to_shape, block, target, order)
    expect_layout(block)
    extents = int_tuple_product_each.uncached(target)
    if type(extents) is tuple and len(extents) > tuple_rank(block.shape):
        block = _padded(block, len(extents))
    sizes = int_tuple_product_each.uncached(block.shape)
    if type(extents) is tuple and type(sizes) is not tuple:
        sizes = (sizes,)
    copies = ordered_layout.uncached(ceil_div.uncached(extents, sizes), order)
    try:
        return _interleaved(block, copies, True)
    except LayoutError as error:
        error.within("blocked_product", (block, copies))
        raise


def tile_to_shape(block: Any, target_shape: Any, order: Any) -> Any:
    """Return the blocked product of `block` with as many copies as cover the target shape, in
    `order`.
    """
    try:
        return _tile_to_shape(block, target_shape, order)
    except OperandType:  # lists and the like, which the memo cannot look up
        return _tile_to_shape(block, make_int_tuple(target_shape), make_int_tuple(order))


@operation
def make_fragment_layout_like(layout: Any) -> Layout:
    """Return the register layout of a layout: mode 0 compact, the other modes after it by
    ascending stride.

    A second mode which is alone is spliced in; equal strides share their place (see
    `make_ordered_layout`).
    """
    expect_layout(layout)
    while type(layout) is ComposedLayout:
        layout = layout.outer
    layout.flat()
    if not layout.is_static_shape:
        raise NotStatic(f"registers need static extents, got {to_str(layout.shape)}")
    if tuple_rank(layout.shape) > 1 and size(layout.shape[0]) == 0:
        raise RankMismatch("an empty mode has no fragment")
    if tuple_rank(layout.shape) == 1:
        return Layout(layout.shape, compact_column_major(layout.shape))
    first = Layout(*canonical_pair(layout.shape[0], compact_column_major(layout.shape[0])))
    shape, stride = layout.shape[1:], layout.stride[1:]
    if len(shape) == 1:
        shape, stride = shape[0], stride[0]
    rest = make_ordered_layout(shape, stride) if type(shape) is tuple else Layout(shape, 1)
    rest = scaled(rest, size(first))
    return from_modes([first] + layout_modes(Layout(*canonical_pair(rest.shape, rest.stride))))
