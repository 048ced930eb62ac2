"""Tensor copies (gfx1250): the descriptor of one warp's tile is computed from views and atom state, then issued.

Here and not in the conversion to target ops, because the tile's shape and place are in the views' layouts.
"""

from itertools import product as cartesian
from typing import Any

from flydsl import layout as la
from flydsl.atoms import tdm
from flydsl.atoms.copy_ops import SHARED, CopyAtom
from flydsl.diag import PassFailed
from flydsl.dialects import laws
from flydsl.ir import ir
from flydsl.layout import leaf
from flydsl.layout.int_tuple import leaves
from flydsl.layout.view import CoordTensor, MemRef, element_bits
from flydsl.passes.fly_layout_lowering.lowering import PASS, Lowering

_GROUP_SIZES = (4, 8, 4, 4, 8)


def emit(low: Lowering, op: ir.Operation, atom_value: ir.Value, atom: CopyAtom, src: Any, dst: Any) -> None:
    """Issue the copies of `fx.copy` with a tensor atom: one, or for a tiled atom one per iteration of mode 0."""
    atom.op.check_spaces(_space(src), _space(dst))
    is_load = _space(dst) == SHARED
    shared, tensor = (dst, src) if is_load else (src, dst)
    state = _state(low, atom_value)
    if isinstance(atom.op, tdm.TDM):
        views = [_raw_view(low, atom.op, tensor, shared, state)]
    else:
        views = _tiled_views(low, op, atom.op, tensor, shared, state)
    name = "rocdl.tensor.load.to.lds" if is_load else "rocdl.tensor.store.from.lds"
    for view in views:
        groups = [_vector(low, words, n) for words, n in zip(tdm.pack_descriptor(view), _GROUP_SIZES, strict=True)]
        low.editor.op(name, (), groups, {"cachePolicy": ir.IntegerAttr.get(low.types.i32, atom.op.cache)})


def _space(view: Any) -> str:
    return view.ptr.space if isinstance(view, MemRef) else "global"


def _state(low: Lowering, atom: ir.Value) -> dict[str, la.Sym]:
    """Return the state fields set on an atom value as leaves, the last setting of each; bits become i32."""
    state: dict[str, la.Sym] = {}
    owner = atom.owner
    while isinstance(owner, (ir.Operation, ir.OpView)) and owner.operation.name == "fly.atom_set_value":
        op = owner.operation
        field, value = ir.StringAttr(op.attributes["field"]).value, op.operands[1]
        if field not in state:
            state[field] = _leaf(low, value)
        owner = op.operands[0].owner
    return state


def _leaf(low: Lowering, value: ir.Value) -> Any:
    owner = value.owner
    if isinstance(owner, (ir.Operation, ir.OpView)) and owner.operation.name == "arith.constant":
        return int(ir.IntegerAttr(owner.operation.attributes["value"]).value)
    if value.type == low.types.i1:
        value = low.editor.value("arith.extui", low.types.i32, [value])
    return la.Sym(64 if value.type == low.types.i64 else 32, 1, value)


def _address(low: Lowering, ptr: Any) -> la.Sym:
    is_shared = ptr.space == SHARED
    type_ = low.types.i32 if is_shared else low.types.i64
    value = low.editor.value("fly.ptrtoint", type_, [low.builder.materialise(ptr)])
    return la.Sym(32 if is_shared else 64, 1, value)


def _raw_view(low: Lowering, op: tdm.TDM, tensor: MemRef, shared: MemRef, state: dict) -> tdm.TileView:
    """The tile is the LDS view's shape; extents and strides are the atom's state."""
    shape = shared.layout.shape if isinstance(shared.layout.shape, tuple) else (shared.layout.shape,)
    tile = [la.size(mode) for mode in shape]
    if len(tile) != op.rank or any(type(n) is not int for n in tile):
        problem = f"{op.short} moves a static tile of {op.rank} dimensions, the LDS view is {shared.layout}"
        raise PassFailed(pass_name=PASS, problem=problem)
    extents = [state.pop(f"extent_{i}", tdm.UNBOUNDED) for i in range(op.rank)]
    strides = [state.pop(f"stride_{i}", 0) for i in range(op.rank - 1)]
    warp = 0
    if op.warps > 1:
        warp = la.Sym(32, 1, low.editor.value("rocdl.wave.id", low.types.i32))
    addresses = _address(low, tensor.ptr), _address(low, shared.ptr)
    return tdm.tdm_view(op, tensor.ptr.elem, tile, extents, strides, *addresses, warp, **state)


def _tiled_views(low: Lowering, op: ir.Operation, atom: Any, coords: CoordTensor, shared: MemRef, state: dict) -> list:
    """One view per iteration: the coordinate tensor says where in the tensor, the LDS view where in LDS."""
    if "tensor_base" not in state:
        problem = f"the atom at {op.location} comes from no tensor; make it with make_tiled_tdm_atom"
        raise PassFailed(pass_name=PASS, problem=problem)
    atom_size = atom.values(0)
    calls = list(zip(_calls(coords.layout, atom_size), _calls(shared.layout, atom_size), strict=True))
    return [_tiled_view(low, atom, laws.at(coords, there), laws.at(shared, here), state) for there, here in calls]


def _calls(layout: Any, count: int) -> list[tuple]:
    """Return the coordinates of the first element of every copy: mode 0 holds whole atoms, other modes are iterated."""
    shape = layout.shape if isinstance(layout.shape, tuple) else (layout.shape,)
    sizes = [la.size(mode) for mode in shape]
    if len(sizes) == 1:
        return [(first,) if isinstance(layout.shape, tuple) else first for first in range(0, sizes[0], count)]
    rests = [tuple(reversed(r)) for r in cartesian(*(range(n) for n in reversed(sizes[1:])))]
    return [(first, *rest) for rest in rests for first in range(0, sizes[0], count)]


def _tiled_view(low: Lowering, atom: Any, coord: Any, pointer: Any, state: dict) -> tdm.TileView:
    rank, elem_bits = len(atom.shape), element_bits(atom.elem)
    place = coord if isinstance(coord, tuple) else (coord,)
    sizes, strides = _tensor_dimensions(atom, state)
    moved: Any = 0
    for c, stride in zip(place, strides, strict=True):
        moved = leaf.add(moved, leaf.mul(_wide(low, c), stride))
    is_checked = state.get("boundary_check", 1)
    extents = []
    for c, extent in zip(place, sizes, strict=True):
        rest = leaf.sub(extent, leaf.minimum(c, extent))
        extents.append(_checked(low, is_checked, rest))
    byte = leaf.add(state["tensor_base"], leaf.mul(moved, elem_bits // 8))
    timeout = state.get("early_timeout", 0)
    return tdm.TileView(
        elem_bits,
        tuple(reversed(atom.shape)),
        tuple(extents),
        tuple(strides[1:rank]),
        byte,
        _address(low, pointer),
        tdm.padding_codes(atom.pad_interval, atom.pad_amount, elem_bits),
        workgroup_mask=state.get("workgroup_mask", 0),
        atomic_barrier=atom.atomic_barrier,
        atomic_barrier_addr=state.get("atomic_barrier_addr", 0),
        early_timeout=timeout,
    )


def _tensor_dimensions(atom: Any, state: dict) -> tuple[list[Any], list[Any]]:
    """Return (extents, strides) of the tensor along the tile's dimensions, innermost first.

    Leaves of the tensor that follow one another in memory are one dimension: the step of scale 1 has its stride. A
    dimension that no leaf counts repeats what lies below it.
    """
    rank = len(atom.shape)
    extents: list[Any] = [1] * rank
    strides: list[Any] = [0] * rank
    is_counted = [False] * rank
    for i, basis in enumerate(leaves(atom.tensor2tdm)):
        if not isinstance(basis, la.Basis):
            continue
        at = rank - 1 - basis.modes[0]
        extents[at] = leaf.mul(extents[at], state[f"tensor_extent_{i}"])
        is_counted[at] = True
        if basis.value == 1:
            strides[at] = state.get(f"tensor_stride_{i}", 1)
    for at, extent in enumerate(reversed(atom.shape)):
        if not is_counted[at]:
            extents[at] = extent
    return extents, strides


def _wide(low: Lowering, x: Any) -> Any:
    return la.Sym(64, x.div, low.builder.integer(x.value, 64)) if isinstance(x, la.Sym) else x


def _checked(low: Lowering, is_checked: Any, extent: Any) -> Any:
    if isinstance(is_checked, int):
        return extent if is_checked else tdm.UNBOUNDED
    zero = low.editor.constant(low.types.i32, 0)
    predicate = {"predicate": ir.IntegerAttr.get(low.types.i64, 1)}
    bit = low.editor.value("arith.cmpi", low.types.i1, [is_checked.value, zero], predicate)
    operands = [bit, low.builder.leaf(extent, 32), low.editor.constant(low.types.i32, tdm.UNBOUNDED)]
    return la.Sym(32, 1, low.editor.value("arith.select", low.types.i32, operands))


def _vector(low: Lowering, words: tuple, n: int) -> ir.Value:
    i32 = low.types.i32
    values = [low.builder.leaf(w, 32) for w in words]
    return low.editor.value("vector.from_elements", low.types.vector(n, i32), values)
