"""Where we differ from the reference on purpose: one entry per reason, recognised by what the
record says.

A deviation names a rule, never single records; `docs/atoms.md` lists the reasons.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from flydsl.diag.base import UserError
from flydsl.layout import (
    CoordTensor,
    Layout,
    LayoutError,
    MemRef,
    NotDivisible,
    Ptr,
    Tile,
    composition,
    cosize,
    make_identity_layout,
    parse,
    right_inverse,
    size,
    take,
)
from flydsl.layout.int_tuple import coord_add
from flydsl.layout.layout import from_modes
from flydsl.utils.record import record

from . import tiled_copy, tiled_mma
from .copy_ops import BufferCopy
from .elements import bit_width
from .errors import AtomError
from .parse import parse_copy_atom, parse_tiled_copy, parse_tiled_mma
from .tdm import compute_warp_distribution, padding_codes, warp_coord
from .tiled_copy import TiledCopy


@record
class Deviation:
    """A rule we do not follow: what the reference does, and why not."""

    name: str
    reference: str
    why: str
    covers: Callable[[dict, str, Any, Any], bool]


def _static_mma_thread(r: dict, field: str, ours: Any, recorded: Any) -> bool:
    if (
        r.get("kind") != "mma"
        or not field.startswith("partition_")
        or not field.endswith("_static")
    ):
        return False
    operand = field[len("partition_")]
    tiled, layout = parse_tiled_mma(r["tiled"]), parse(r["tensors"][operand])
    wave, lane = divmod(r["thr"], size(tiled.atom.thr_layout))
    second, first = divmod(wave, size(tiled.atom_layout[1 if operand == "B" else 0]))
    dealt = tiled_mma.deal(tiled, operand, layout)
    for number in (r["thr"], (lane, (first, second))):  # they differ where a tensor is shorter than the tile
        part, moved = tiled_copy.take_thread(dealt, number)
        if recorded == str(CoordTensor(coord_add(0, moved), part)):
            return True
    return False


def _rectangular_f4(r: dict, field: str, ours: Any, recorded: Any) -> bool:
    if r.get("kind") == "mma":
        tall = parse_tiled_mma(r["tiled"]).atom.shape_mnk[:2] == (32, 16)
        return tall and ("_A" in field or "_C" in field)
    tall = (r.get("m"), r.get("n")) == (32, 16)
    return tall and (field, recorded) in _OF_RECTANGULAR_F4


_OF_RECTANGULAR_F4 = (
    ("tv_layout_A", "(32,128):(1,32)"),
    ("tv_layout_C", "((16,2),16):((16,16),1)"),
)


def _half_result(r: dict, field: str, ours: Any, recorded: Any) -> bool:
    if r.get("kind") == "mma":
        op = parse_tiled_mma(r["tiled"]).atom
        is_half = getattr(op, "gen", "") == "gfx1250" and op.acc in ("f16", "bf16")
        return is_half and "_C" in field
    is_half = r.get("family") == "wmma_gfx1250" and r["acc"] in ("f16", "bf16")
    return is_half and (field, recorded) == ("tv_layout_C", "((16,2),(4,2)):((16,8),(2,1))")


def _waves_along_k(r: dict, field: str, ours: Any, recorded: Any) -> bool:
    if r.get("kind") != "mma" or field not in _OF_C_COPY:
        return False
    tiled = parse_tiled_mma(r["tiled"])
    without_k = take(tiled_mma.vmnk_to_tile(tiled, "C"), 0, 3)
    threads = composition(without_k, right_inverse(tiled.thr_layout_vmnk))
    wrong = from_modes([threads, tiled.tv_layout("C")[1]])
    copy = tiled_copy.make_tiled_copy(
        parse_copy_atom(r["copy_atom_C"]),
        wrong,
        Tile(tuple(Layout(e, 1) for e in tiled.tile_shape("C"))),
    )
    if field == "props_C":
        return recorded == str(wrong)
    if field == "make_tiled_copy_C":
        return recorded == copy.text
    tensor = parse(r["tensors"]["C"])
    if field == "copy_C_retile":
        fragment = tiled_copy.retile(copy, tiled_mma.fragment_layout(tiled, "C", tensor))
        return recorded == str(MemRef(Ptr(r["acc"], "register"), fragment))
    layout, moved = tiled_copy.partition(copy, "src", tensor, r["thr"])
    return recorded == str(CoordTensor(coord_add(0, moved), layout))


_OF_C_COPY = ("props_C", "make_tiled_copy_C", "copy_C_partition_S_static", "copy_C_retile")


def _partial_byte(r: dict, field: str, ours: Any, recorded: Any) -> bool:
    return r.get("family") == "universal_copy" and r["bits"] % 8 != 0 and field == "accepted"


def _i96(r: dict, field: str, ours: Any, recorded: Any) -> bool:
    return r.get("family") == "buffer_copy" and r["bits"] == 96 and field in ("llvm", "isa")


_LDS_DMA = ("cdna3.buffer_copy_lds", "cdna4.buffer_load_async_lds", "cdna4.global_load_async_lds")


def _lds_dma_width(r: dict, field: str, ours: Any, recorded: Any) -> bool:
    return (
        r.get("family") in _LDS_DMA
        and (field, ours) == ("accepted", False)
        and r.get("isa") is None
        and (r["bits"] > 32 or r["family"] != _LDS_DMA[0])
        and r["chip"] == "gfx942"
    )


def _wide_buffer(r: dict, field: str, ours: Any, recorded: Any) -> bool:
    return (
        r.get("family") == "buffer_copy"
        and (field, ours) == ("accepted", False)
        and r["bits"] not in BufferCopy.widths
    )


def _unsigned_atomic(r: dict, field: str, ours: Any, recorded: Any) -> bool:
    return (
        r.get("family") == "universal_atomic"
        and field == "memory_ops"
        and r["atomic"] in ("max", "min")
        and ", ui" in r["op"]
    )


def _padding_fields(r: dict, field: str, ours: Any, recorded: Any) -> bool:
    if not r.get("family", "").startswith("cdna5.tensor") or (field, ours) != ("accepted", False) or "atom" not in r:
        return False
    op = parse_copy_atom(r["atom"]).op
    try:
        padding_codes(op.pad_interval, op.pad_amount, bit_width(op.elem))
    except AtomError:
        return True
    return False


def _padding_pitch(r: dict, field: str, ours: Any, recorded: Any) -> bool:
    """The LDS address of a warp's share as if every innermost row were padded once."""
    if r.get("family") != "gfx1250.tdm" or not field.startswith("descriptor") or not r["pad"][1]:
        return False
    warps, shares = compute_warp_distribution(r["tile"], r["warps"])
    starts = [p * s for p, s in zip(warp_coord(int(field[11:-1]), warps), shares)]
    pitch, offset = 1, 0
    for start, extent in zip(reversed(starts), reversed(r["tile"])):
        offset += start * pitch
        pitch *= extent + (r["pad"][1] if pitch == 1 else 0)
    address = f"0x{0x2400 + offset * bit_width(r['elem']) // 8:08x}"
    return [[ours[0][0], address, *ours[0][2:]], *ours[1:]] == recorded


def _more_warps_than_elements(r: dict, field: str, ours: Any, recorded: Any) -> bool:
    if r.get("family") != "gfx1250.tdm" or (field, ours, recorded) != ("accepted", False, True):
        return False
    try:
        compute_warp_distribution(r["tile"], r["warps"])
    except AtomError:
        return True
    return False


def _signed_memory(r: dict, field: str, ours: Any, recorded: Any) -> bool:
    signed = r.get("elem", "").startswith(("si", "ui"))
    return signed and r.get("lowering") == "failed" and (field, ours) == ("accepted", True)


def _buffer_to_memory(r: dict, field: str, ours: Any, recorded: Any) -> bool:
    return (
        r.get("family") == "buffer_copy"
        and (field, ours) == ("accepted", False)
        and "register" not in (r["src"], r["dst"])
    )


def _state_beyond_rank(r: dict, field: str, ours: Any, recorded: Any) -> bool:
    known = {f"extent_{i}" for i in range(5)} | {f"stride_{i}" for i in range(4)}
    return (
        r.get("family") == "gfx1250.tdm"
        and (field, ours, recorded) == ("accepted", False, True)
        and bool(r.get("extra"))
        and all(name in known for name, _, _ in r["extra"])
    )


def _tiled_copy_of(r: dict, field: str) -> TiledCopy | None:
    """Return the tiled copy that a field of a record is about."""
    if r.get("kind") == "copy":
        return parse_tiled_copy(r["tiled"])
    if r.get("kind") == "mma" and field.startswith("copy_"):
        operand = field[len("copy_")]
        atom = parse_copy_atom(r["copy_atom_C" if operand == "C" else "copy_atom"])
        return tiled_mma.make_tiled_copy_operand(atom, parse_tiled_mma(r["tiled"]), operand)
    return None


def _atom_does_not_fit(r: dict, field: str, ours: Any, recorded: Any) -> bool:
    tiled = _tiled_copy_of(r, field) if ours is None else None
    if tiled is None:
        return False
    values = size(tiled.atom.layout_ref[1])
    return values == 0 or size(tiled.layout_tv[1]) % values != 0


def _tile_carries(r: dict, field: str, ours: Any, recorded: Any) -> bool:
    tiled = _tiled_copy_of(r, field) if ours is None else None
    if tiled is None:
        return False
    if cosize(tiled.layout_tv) > prod(tiled.tile_shape):
        return True
    try:
        for side in ("src", "dst"):
            composition(make_identity_layout(tiled.tile_shape), tiled.layout_side_tv(side))
    except NotDivisible:
        return True
    return False


def _strided_tile(r: dict, field: str, ours: Any, recorded: Any) -> bool:
    if r.get("kind") != "copy" or "_coord" not in field or ours is None:
        return False
    strided = [m for m in parse_tiled_copy(r["tiled"]).tile.modes if isinstance(m, Layout) and m != Layout(size(m), 1)]
    return bool(strided) and size(parse(recorded).layout) == size(parse(ours).layout)


def _dynamic_fragment(r: dict, field: str, ours: Any, recorded: Any) -> bool:
    of_fragment = field.startswith("make_fragment_") or field.endswith("_retile")
    return r.get("kind") == "mma" and of_fragment and ours is None and "?" in recorded


def _waves_share_a_number(r: dict, field: str, ours: Any, recorded: Any) -> bool:
    if r.get("kind") != "mma" or ours is not None:
        return False
    shape, stride = parse_tiled_mma(r["tiled"]).atom_layout.flat()
    return any(s > 1 and d == 0 for s, d in zip(shape, stride))


DEVIATIONS: tuple[Deviation, ...] = (
    Deviation(
        "static-thread-in-mma",
        "its type inference deals a static thread number column-major over (lane, waves of the "
        "operand); dynamic threads go through thr_layout_vmnk: for waves (2,2,1):(2,1,0) of "
        "16x16x16 over A (64,16):(16,1) thread 64 begins at 256 when static, at 0 when dynamic",
        "a thread's part does not depend on whether its number is static",
        _static_mma_thread,
    ),
    Deviation(
        "atom-does-not-fit-a-thread",
        "partitions by an atom that moves more values than a thread has in the tile, a number that "
        "does not divide them, or none, and counts values of other threads, or past the tile",
        "refused where the values would carry into the next column or past the tile",
        _atom_does_not_fit,
    ),
    Deviation(
        "tile-carries",
        "composes a tile with a (thread, value) map that cuts through an extent of the tile or reaches past "
        "it, mode by mode: threads get elements behind the tile and others are given to nobody",
        "refused: no layout is the composition",
        _tile_carries,
    ),
    Deviation(
        "coordinates-of-a-strided-tile",
        "takes the strides 1E0 and 2E1 of a tile's two modes for one mode of stride 1E0, so that coordinates "
        "of the second mode are counted in the first; the offsets of the same elements in a tensor are right",
        "coordinates of different modes are not merged",
        _strided_tile,
    ),
    Deviation(
        "fragment-of-dynamic-extents",
        "makes register tensors whose number of registers is not known, which nothing lowers",
        "refused: registers need static extents",
        _dynamic_fragment,
    ),
    Deviation(
        "waves-share-a-number",
        "partitions for several waves of stride 0 and divides the thread number by 0 when it runs",
        "refused: waves that have the same number cannot be told apart",
        _waves_share_a_number,
    ),
    Deviation(
        "wmma-scale-32x16",
        "of 32x16x128, A is (32,128):(1,32), a row per lane, and C ((16,2),16):((16,16),1), which maps "
        "two lanes to one element",
        "the registers of rows 0 to 15, then those of rows 16 to 31, each as of 16x16x128: A "
        "((16,2),(32,2,2)):((1,1024),(32,2048,16)), C ((16,2),(8,2)):((32,8),(1,16)). Sources: Triton's "
        "layouts of v_wmma_scale_f32_32x16x128_f4; AMD's instruction emulator in ROCm/rocm-systems",
        _rectangular_f4,
    ),
    Deviation(
        "wmma-gfx1250-16-bit-C",
        "a 16-bit C of gfx1250 is ((16,2),(4,2)):((16,8),(2,1)): even rows of the half, then odd rows",
        "register r holds rows 2 r and 2 r + 1 of the half, as on gfx12: ((16,2),8):((16,8),1). Sources: "
        "Composable Kernel (kCMPerLane = 8, kCMNumAccess = 1), AMD's instruction emulator in "
        "ROCm/rocm-systems, and for gfx12 AMD's matrix instruction calculator",
        _half_result,
    ),
    Deviation(
        "waves-along-k-in-C",
        "C of a tiled MMA with several waves along K gives those waves coordinates behind the tile "
        "where they are not the last mode of a zero stride",
        "waves along K hold partial sums of the same C: stride 0",
        _waves_along_k,
    ),
    Deviation(
        "tensor-padding-fields",
        "makes tensor load atoms with a padding that the descriptor has no code for",
        "refused: an interval of 2 to 256 dwords, a power of two, and an amount of 1 to 128 dwords",
        _padding_fields,
    ),
    Deviation(
        "tdm-padding-pitch",
        "adds the padding once per innermost row to where a warp's share begins in LDS, whatever the "
        "interval is",
        "a warp's share begins where the unit would have put it had one warp moved the whole tile: "
        "one amount after every interval",
        _padding_pitch,
    ),
    Deviation(
        "tdm-more-warps-than-elements",
        "gives the warps that a tile has no element for elements behind it",
        "refused: the warps do not fit on the tile",
        _more_warps_than_elements,
    ),
    Deviation(
        "tdm-state-beyond-rank",
        "takes extents and strides of dimensions that the tile does not have",
        "refused, with the names of the fields that it has",
        _state_beyond_rank,
    ),
    Deviation(
        "copy-of-part-of-a-byte",
        "a universal copy of 4 bits copies 0 bytes",
        "refused: no memory access is narrower than a byte",
        _partial_byte,
    ),
    Deviation(
        "buffer-96-bits",
        "emits i96 buffer accesses, which LLVM cannot select",
        "vector<3xi32> gives buffer_load_dwordx3 and its kin",
        _i96,
    ),
    Deviation(
        "buffer-wider-than-128-bits",
        "emits buffer accesses of any width that it cannot select",
        "refused: one instruction moves 8, 16, 32, 64, 96 or 128 bits",
        _wide_buffer,
    ),
    Deviation(
        "buffer-copy-to-memory",
        "makes a buffer access and a second one to the other memory of one buffer copy",
        "refused: one side of a buffer copy is a buffer, the other a register; LDS DMA has atoms of its own",
        _buffer_to_memory,
    ),
    Deviation(
        "signed-elements-in-memory",
        "cannot lower loads and stores of signed and unsigned integers",
        "they are accesses of as many bits",
        _signed_memory,
    ),
    Deviation(
        "lds-dma-128-on-gfx942",
        "accepts wider and asynchronous atoms and ends the process in LLVM",
        "gfx942 has LDS DMA of 4 bytes per lane only (arch feature lds_dma_b128), no asynchronous one",
        _lds_dma_width,
    ),
    Deviation(
        "unsigned-atomic-max-min",
        "compares unsigned types as signed",
        "ui32 and ui64 use umax and umin",
        _unsigned_atomic,
    ),
)


def find_deviation(record: dict, field: str, ours: Any, recorded: Any) -> str | None:
    """Return the name of the documented deviation that explains a disagreement, None when there
    is none.
    """
    return next((d.name for d in DEVIATIONS if _explains(d, record, field, ours, recorded)), None)


def _explains(deviation: Deviation, record: dict, field: str, ours: Any, recorded: Any) -> bool:
    """Return whether a rule covers a disagreement; what it cannot evaluate, it does not."""
    try:
        return recorded is not None and deviation.covers(record, field, ours, recorded)
    except (UserError, LayoutError):
        return False
