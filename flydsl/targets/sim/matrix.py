"""Matrix instructions: per-lane registers to matrices by the instruction's lane map, one product, and back.

Products and sums are f64, rounded once to the accumulator: within the bound of any order that the hardware may use,
and exact for integers.
Operands are packed once per definition; accumulators stay matrices along a chain of instructions and are unpacked
when something else
reads them. Inputs that are denormal are honoured, no result is flushed. EXEC is ignored, as by the instructions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from flydsl.targets.sim.floats import h_f64_to_bf16
from flydsl.targets.sim.numeric import BF16
from flydsl.targets.sim.small_floats import BITS, chip_format, decode_e8m0, decode_table, unpack_codes

ACC_TYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": BF16, "i32": np.int32}
_F16_TO_F64 = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float64)


@dataclass(frozen=True, eq=False)
class LaneMap:
    """Where a matrix's elements are: `pack[b, row, col]` is lane * values + value, `unpack` its inverse."""

    pack: np.ndarray
    unpack: np.ndarray
    values: int


@dataclass(frozen=True, eq=False)
class MatrixPlan:
    """One instruction on one chip: shapes, element kinds and lane maps."""

    name: str
    arch: str
    m: int
    n: int
    k: int
    blocks: int
    a: str
    b: str
    acc: str
    lanes: int
    map_a: LaneMap
    map_b: LaneMap
    map_c: LaneMap
    family: str
    opsel_result: bool


def lane_map(layout: Any, rows: int, cols: int, blocks: int, lanes: int, is_transposed: bool = False) -> LaneMap:
    """Return the map of a (lane, value) -> row + rows * col + rows * cols * block layout.

    B is packed transposed, as (k, n): a product with a transposed view takes twice as long.
    """
    total = rows * cols * blocks
    values = max(1, _layout_values(layout))
    target = np.array([[layout(lane, v) for v in range(values)] for lane in range(lanes)], np.int64).reshape(-1)
    source = np.full(total, -1, np.int64)
    source[target] = np.arange(lanes * values)
    assert (source >= 0).all(), "the lane map does not cover the matrix"
    pack = source.reshape(blocks, cols, rows)
    pack = pack if is_transposed else pack.transpose(0, 2, 1)
    position = np.arange(total).reshape(blocks, rows, cols).transpose(0, 2, 1).reshape(-1)
    return LaneMap(np.ascontiguousarray(pack), position[target].reshape(lanes, values), values)


def _layout_values(layout: Any) -> int:
    from flydsl.layout import size

    return int(size(layout[1]))


def broadcast_a(where: LaneMap, cbsz: int, abid: int) -> LaneMap:
    """Return the map of A where each group of 2**cbsz blocks reads the A of its block `abid`.

    Source   CDNA3 instruction set, section 7 (matrix instructions: CBSZ, ABID)
    """
    blocks = np.arange(len(where.pack))
    return replace(where, pack=where.pack[(blocks & -(1 << cbsz)) + abid])


def permute_b(where: LaneMap, pattern: int) -> LaneMap:
    """Return the map of B where lanes read the registers of the lanes that BLGP names.

    1 and 2: the lower or upper 32 lanes twice. 3: rotated by 16 lanes. 4 to 7: 16 lanes four times.
    Source   CDNA3 instruction set, section 7 (matrix instructions: BLGP)
    """
    lanes = np.arange(64)
    if pattern in (1, 2):
        source = lanes % 32 + 32 * (pattern - 1)
    elif pattern == 3:
        source = (lanes + 16) % 64
    else:
        source = lanes % 16 + 16 * (pattern - 4)
    lane, value = np.divmod(where.pack, where.values)
    return replace(where, pack=source[lane] * where.values + value)


@cache
def h_plan(
    name: str,
    arch: str,
    regs: tuple[str, str],
    formats: tuple[str, str] | None = None,
    controls: tuple[int, int, int] = (0, 0, 0),
) -> MatrixPlan:
    """Return the plan of a matrix op by its rocdl or intrinsic name; `controls` are CBSZ, ABID and BLGP.

    Raises   AtomError: no such instruction; UnsupportedChip
    """
    from flydsl.atoms.matrix_rows import by_rocdl_name, rows_named  # only kernels with matrix ops load the tables

    row = by_rocdl_name(name, arch, regs)
    if formats is not None:
        same = [r for r in rows_named(name) if (r.a, r.b) == formats]
        row = same[0].on(arch) if same else replace(row, a=formats[0], b=formats[1])
    lanes = row.wave_size
    map_a = lane_map(row.register_map("A"), row.m, row.k, row.blocks, lanes)
    map_b = lane_map(row.register_map("B"), row.n, row.k, row.blocks, lanes, is_transposed=True)
    map_c = lane_map(row.layout_c, row.m, row.n, row.blocks, lanes)
    cbsz, abid, blgp = controls
    map_a = broadcast_a(map_a, cbsz, abid) if cbsz else map_a
    map_b = permute_b(map_b, blgp) if blgp else map_b
    return MatrixPlan(
        name, arch, row.m, row.n, row.k, row.blocks, row.a, row.b, row.acc, lanes, map_a, map_b, map_c, row.family,
        row.opsel_result
    )  # fmt: skip


class Acc:
    """An accumulator as matrices (g, waves, blocks, m, n); `lanes()` gives the registers."""

    __slots__ = ("_lanes", "matrix", "plan")

    def __init__(self, matrix: np.ndarray, plan: MatrixPlan):
        self.matrix = matrix
        self.plan = plan
        self._lanes: np.ndarray | None = None

    def lanes(self) -> np.ndarray:
        """Return the registers, (g, threads, values)."""
        if self._lanes is None:
            g, w = self.matrix.shape[:2]
            flat = self.matrix.reshape(g, w, -1).take(self.plan.map_c.unpack.reshape(-1), axis=2)
            self._lanes = flat.reshape(g, w * self.plan.lanes, self.plan.map_c.values)
        return self._lanes


def as_lanes(machine: Any, x: Any, lanes: int) -> np.ndarray:
    """Return an operand as (g, waves, lanes * values), with lanes that share a value written out."""
    if x.ndim <= 1:
        x = x[None, None]
    g, b, v = x.shape
    if b != machine.B:
        x = np.broadcast_to(x, (g, machine.B, v))
    return x.reshape(g, machine.B // lanes, lanes * v)


def decode(bits: np.ndarray, kind: str, arch: str) -> np.ndarray:
    """Return lane values as f64 (integers: exact) from storage of element kind `kind`."""
    if kind == "f16":
        return _F16_TO_F64.take(bits.view(np.uint16))
    if kind in ("f32", "f64", "bf16"):
        return bits.astype(np.float64)
    if kind == "xf32":
        return (bits.view(np.int32) & np.int32(-8192)).view(np.float32).astype(np.float64)
    return decode_table(chip_format(kind, arch), "f8").take(bits)


def storage(x: Any, kind: str, count: int) -> np.ndarray:
    """Return a register operand as an array of storage items (f16, bf16, f32, f64, or codes), `count` per lane."""
    if kind in ("f32", "f64", "xf32"):
        return x if x.ndim in (1, 3) else x[..., None]
    whole = x if x.ndim in (1, 3) else x[..., None]
    if kind == "f16":
        return whole if whole.dtype == np.float16 else _recast(whole, np.float16)
    if kind == "bf16":
        return whole if whole.dtype == BF16 else _recast(whole, BF16)
    codes = _recast(whole, np.uint8)
    return unpack_codes(codes, BITS[kind], count)


def _recast(x: np.ndarray, dtype: Any) -> np.ndarray:
    return np.ascontiguousarray(x).view(dtype)


def signed_codes(codes: np.ndarray, bits: int, is_signed: bool) -> np.ndarray:
    """Return integer codes as f64 values."""
    if not is_signed:
        return codes.astype(np.float64)
    shift = 8 - bits
    return (codes << np.uint8(shift)).view(np.int8).astype(np.float64) / (1 << shift)


def pack(machine: Any, plan: MatrixPlan, x: Any, kind: str, where: LaneMap, is_signed: bool = True) -> np.ndarray:
    """Return an operand as f64 matrices (g, waves, blocks, rows, k)."""
    items = as_lanes(machine, storage(x, kind, where.values), plan.lanes)
    shape = (*items.shape[:2], *where.pack.shape)
    ordered = items.take(where.pack.reshape(-1), axis=2)
    if kind in ("i8", "i4"):
        return signed_codes(ordered, BITS[kind], is_signed).reshape(shape)
    return decode(ordered, kind, plan.arch).reshape(shape)


def h_pack_a(machine: Any, plan: MatrixPlan, x: Any, is_signed: bool = True) -> np.ndarray:
    """Return A as (g, waves, blocks, m, k)."""
    return pack(machine, plan, x, plan.a, plan.map_a, is_signed)


def h_pack_a_sparse(machine: Any, plan: MatrixPlan, x: Any, index: Any, cbsz: int, abid: int) -> np.ndarray:
    """Return the sparse A of v_smfmac as (g, waves, blocks, m, k): two of every four k are in registers, the others 0.

    Two bits of the lane's index say where each register element stands in its four. With `cbsz` 0, `abid` picks the
    set of index bits, otherwise the first set counts. Elements with one place between them are added, as a product
    with the selected elements of B would be.
    Source   CDNA3 instruction set, section 7 (sparse matrix instructions); AMD's matrix instruction calculator
    """
    values = plan.map_a.values // 2
    items = as_lanes(machine, storage(x, plan.a, values), plan.lanes)
    shape = (*items.shape[:2], plan.lanes, values // 2, 2)
    decoded = signed_codes(items, BITS[plan.a], True) if plan.a == "i8" else decode(items, plan.a, plan.arch)
    whole = index if index.ndim == 2 else np.broadcast_to(index, (1, 1))
    words = as_lanes(machine, whole[..., None].view(np.uint32), plan.lanes)[..., None]
    sets = max(1, 32 // (2 * values))
    first = 0 if cbsz else 2 * values * (abid % sets)
    places = (words >> (first + 2 * np.arange(values, dtype=np.uint32)).astype(np.uint32)) & np.uint32(3)
    places = np.broadcast_to(
        places.reshape(*places.shape[:2], *shape[2:]), np.broadcast_shapes(places.shape[:2] + shape[2:], shape)
    )
    pairs = np.broadcast_to(decoded.reshape(shape), places.shape)
    dense = ((places[..., None] == np.arange(4)) * pairs[..., None]).sum(axis=-2)
    flat = dense.reshape(*dense.shape[:2], plan.lanes * plan.map_a.values)
    return flat.take(plan.map_a.pack.reshape(-1), axis=2).reshape(*flat.shape[:2], *plan.map_a.pack.shape)


def h_pack_b(machine: Any, plan: MatrixPlan, x: Any, is_signed: bool = True) -> np.ndarray:
    """Return B as (g, waves, blocks, k, n)."""
    return pack(machine, plan, x, plan.b, plan.map_b, is_signed)


def pack_c(machine: Any, plan: MatrixPlan, c: Any) -> Any:
    """Return C as matrices; accumulators of the same lane map already are."""
    if isinstance(c, Acc):
        if c.plan is plan or c.plan.map_c is plan.map_c or np.array_equal(c.plan.map_c.pack, plan.map_c.pack):
            return c.matrix
        c = c.lanes()
    dtype = ACC_TYPES[plan.acc]
    whole = c if c.ndim in (1, 3) else c[..., None]
    whole = whole if whole.dtype == dtype else _recast(whole, dtype)
    if whole.strides[-1] == 0 and whole.ndim == 1:
        return whole[0]  # one uniform value
    items = as_lanes(machine, whole, plan.lanes)
    return items.take(plan.map_c.pack.reshape(-1), axis=2).reshape(*items.shape[:2], *plan.map_c.pack.shape)


def finish(plan: MatrixPlan, product: np.ndarray, c: Any, clamp: bool = False) -> np.ndarray:
    """Return product + C rounded once to the accumulator type."""
    if plan.acc == "i32":
        total = product.astype(np.int64) + c
        if clamp:
            total = np.clip(total, -(1 << 31), (1 << 31) - 1)
        return total.astype(np.int32)
    try:
        product += c
    except ValueError:  # the operands are the same for all workgroups or waves, C is not
        product = product + c
    if plan.acc == "f64":
        return product
    if plan.acc == "bf16":
        return h_f64_to_bf16(product)
    return product.astype(ACC_TYPES[plan.acc])


def h_mma(machine: Any, plan: MatrixPlan, a: np.ndarray, b: np.ndarray, c: Any) -> Acc:
    """Return A * B + C for packed A and B."""
    return Acc(finish(plan, a @ b, pack_c(machine, plan, c)), plan)


def h_mma_modified(
    machine: Any, plan: MatrixPlan, a: np.ndarray, b: np.ndarray, c: Any, mod_c: int, clamp: bool
) -> Acc:
    """`h_mma` with the negate (1) and absolute (2) bits of C, or integer clamping."""
    matrix = pack_c(machine, plan, c)
    if mod_c & 2:
        matrix = np.abs(matrix)
    if mod_c & 1:
        matrix = -matrix
    return Acc(finish(plan, a @ b, matrix, clamp), plan)


def h_mma_halves(machine: Any, plan: MatrixPlan, a: np.ndarray, b: np.ndarray, c: Any, opsel: bool) -> np.ndarray:
    """16-bit results of gfx11: they fill the low or the high half of each register; the other halves keep C."""
    registers = c if c.ndim == 3 else np.broadcast_to(c[None, None], (1, machine.B, c.shape[-1]))
    dtype = ACC_TYPES[plan.acc]
    halves = registers if registers.dtype == dtype else _recast(registers, dtype)
    start = 1 if opsel else 0
    result = h_mma(machine, plan, a, b, np.ascontiguousarray(halves[..., start::2])).lanes()
    out = np.array(np.broadcast_to(halves, (*result.shape[:2], halves.shape[-1])))
    out[..., start::2] = result
    return out.view(registers.dtype)


def h_pack_scaled(machine: Any, plan: MatrixPlan, side: str, x: Any, scale: Any, opsel: int) -> np.ndarray:
    """A or B of gfx950's scaled MFMA: byte `opsel` of lane row + rows * b scales k = 32 b to 32 b + 31 of its row."""
    kind, where, rows = (plan.a, plan.map_a, plan.m) if side == "a" else (plan.b, plan.map_b, plan.n)
    matrix = pack(machine, plan, x, kind, where)
    code = (scale.view(np.uint32) >> np.uint32(8 * opsel)) & np.uint32(255)
    factor = np.asarray(decode_e8m0(np.asarray(code)))
    whole = factor if factor.ndim == 2 else np.broadcast_to(factor, (1, 1))
    per_lane = as_lanes(machine, whole[..., None], plan.lanes)
    blocks = per_lane.reshape(*per_lane.shape[:2], plan.lanes // rows, rows).swapaxes(-1, -2)
    factors = np.repeat(blocks, plan.k // (plan.lanes // rows), axis=-1)[:, :, None]
    return matrix * (factors if side == "a" else factors.swapaxes(-1, -2))


def h_pack_block_scaled(machine: Any, plan: MatrixPlan, side: str, x: Any, scale: Any, half: int) -> np.ndarray:
    """A or B of gfx1250's scaled WMMA: lane `row` (of half wave `half`) holds one byte per block of k for its row."""
    kind, where, rows = (plan.a, plan.map_a, plan.m) if side == "a" else (plan.b, plan.map_b, plan.n)
    matrix = pack(machine, plan, x, kind, where)
    whole = scale if scale.ndim == 2 else np.broadcast_to(scale, (1, 1))
    codes = as_lanes(machine, _recast(whole[..., None], np.uint8), plan.lanes)
    per_lane = codes.reshape(*codes.shape[:2], plan.lanes, -1)
    first = 0 if rows == plan.lanes else rows * half
    factors = np.repeat(decode_e8m0(per_lane[:, :, first : first + rows]), plan.k // per_lane.shape[-1], axis=-1)
    factors = factors[:, :, None]
    return matrix * (factors if side == "a" else factors.swapaxes(-1, -2))
