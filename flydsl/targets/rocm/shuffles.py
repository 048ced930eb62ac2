"""`gpu.shuffle`: which lane is read, and xor by a constant without a trip through LDS.

Upstream makes every shuffle a `ds_bpermute`, whose address takes four more instructions. Here
  RDNA, gfx1250   DPP `row_xmask` within 16 lanes, `v_permlanex16` across
  CDNA            DPP `quad_perm`, `row_half_mirror`, `row_mirror`, `row_ror:8`, else `ds_swizzle` within 32 lanes
A DPP move can be folded into the operation that uses it. As with `ds_bpermute`, a lane that is off gives 0.

Upstream compares the lane read with the end of the reader's group of `width` lanes only, so that `up` and `idx` read
other groups. Here a lane outside of the group (up, down, xor) is replaced by the reader, `idx` counts from the start of
the group, and `up` and `down` give the reader's own value also for a lane that is off.
"""

from __future__ import annotations

from flydsl.arch import Chip
from flydsl.ir import ir
from flydsl.ir.expression import Builder
from flydsl.targets.rocm.prepare import Rules, call_intrinsic, replace_op

_ROW_MIRROR, _ROW_HALF_MIRROR, _ROW_ROR_8, _ROW_XMASK = 0x140, 0x141, 0x128, 0x160
_ALL_ROWS = 15


def rules(chip: Chip) -> Rules:
    """Return the rewrite of `gpu.shuffle` for `chip`."""
    permute = _permute_rdna if chip.has("permlanex16") else _permute_cdna

    def rewrite(op: ir.Operation, device: ir.Operation) -> None:
        distance = _constant_distance(op)
        b = Builder(op)
        if distance is None:
            if not _reads_all_lanes(op, chip.wave_size):
                replace_op(op, _in_group(b, op, chip.wave_size))
            return
        value = op.operands[0] if distance == 0 else permute(b, device, op.operands[0], distance)
        replace_op(op, [value, b.constant(b.type("i1"), 1)])

    return {"gpu.shuffle": rewrite}


def _constant_distance(op: ir.Operation) -> int | None:
    """Return the constant of an xor shuffle of a 32-bit value whose partner is within 32 lanes and the width."""
    value, distance, width = op.operands
    if "xor" not in str(op.attributes["mode"]) or str(value.type) not in ("i32", "f32"):
        return None
    known = [_constant(v) for v in (distance, width)]
    if None in known or not 0 <= known[0] < min(32, known[1]):
        return None
    return known[0]


def _mode(op: ir.Operation) -> str:
    return str(op.attributes["mode"]).split("<")[-1].strip("> ").split()[-1]


def _reads_all_lanes(op: ir.Operation, wave: int) -> bool:
    """Return whether upstream's own rule is right: no group, and a lane that exists."""
    distance, width = (_constant(v) for v in list(op.operands)[1:])
    return _mode(op) in ("xor", "idx") and width == wave and distance is not None and 0 <= distance < wave


def _in_group(b: Builder, op: ir.Operation, wave: int) -> list[ir.Value]:
    """Return (value, whether the lane was in the group): a shuffle of the whole wave by a lane number that is right."""
    value, i32 = op.operands[0], b.type("i32")
    offset, width = (b.wrap(v) for v in list(op.operands)[1:])
    lane = b.wrap(b.emit("gpu.lane_id", b.type("index"), [])).cast("index_cast", "i32")
    mode = _mode(op)
    if mode == "idx":
        source, is_inside = (lane & -width) | (offset & (width - 1)), b.wrap(b.constant(b.type("i1"), 1))
    else:
        source = {"up": lane - offset, "down": lane + offset, "xor": lane ^ offset}[mode]
        is_inside = ((source ^ lane) & -width).compare("eq", 0)
        source = is_inside.select(source, lane)
    if mode in ("up", "down"):
        mask = b.wrap(b.emit("rocdl.ballot", b.type(f"i{wave}"), [b.constant(b.type("i1"), 1)]))
        place = source if wave == 32 else source.cast("extui", "i64")
        source = mask.shr_unsigned(place).cast("trunci", "i1").select(source, lane)
    attributes = {"mode": ir.Attribute.parse("#gpu<shuffle_mode idx>", b.context)}
    operands = [value, source.value, b.constant(i32, wave)]
    moved = ir.Operation.create(
        "gpu.shuffle", [value.type, b.type("i1")], operands, attributes, None, 0, b.location, b.insert
    )
    return [moved.results[0], is_inside.value]


def _constant(value: ir.Value) -> int | None:
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return None
    return ir.IntegerAttr(owner.attributes["value"]).value


def _permute_rdna(b: Builder, device: ir.Operation, value: ir.Value, distance: int) -> ir.Value:
    if distance < 16:
        return _dpp(b, value, _ROW_XMASK + distance)
    nibbles = [lane ^ (distance & 15) for lane in range(16)]
    low, high = (sum(n << 4 * i for i, n in enumerate(part)) for part in (nibbles[:8], nibbles[8:]))
    i32, i1 = b.type("i32"), b.type("i1")
    bits = value if value.type == i32 else b.wrap(value).bits().value
    operands = [b.emit("ub.poison", i32, [], _poison(b)), bits, b.constant(i32, low), b.constant(i32, high)]
    operands += [b.constant(i1, 0), b.constant(i1, 1)]
    moved = call_intrinsic(b, device, "llvm.amdgcn.permlanex16", i32, operands)
    return moved if value.type == i32 else b.wrap(moved).as_float().value


def _permute_cdna(b: Builder, device: ir.Operation, value: ir.Value, distance: int) -> ir.Value:
    if distance < 4:
        return _dpp(b, value, sum((lane ^ distance) << 2 * lane for lane in range(4)))
    controls = {7: _ROW_HALF_MIRROR, 8: _ROW_ROR_8, 15: _ROW_MIRROR}
    if distance in controls:
        return _dpp(b, value, controls[distance])
    i32 = b.type("i32")
    bits = value if value.type == i32 else b.wrap(value).bits().value
    pattern = b.constant(i32, 0x1F | distance << 10)  # bit mask mode: and 31, xor distance
    moved = call_intrinsic(b, device, "llvm.amdgcn.ds.swizzle", i32, [bits, pattern])
    return moved if value.type == i32 else b.wrap(moved).as_float().value


def _dpp(b: Builder, value: ir.Value, control: int) -> ir.Value:
    i32 = b.type("i32")
    attributes = {
        "dppCtrl": ir.IntegerAttr.get(i32, control),
        "rowMask": ir.IntegerAttr.get(i32, _ALL_ROWS),
        "bankMask": ir.IntegerAttr.get(i32, _ALL_ROWS),
        "boundCtrl": ir.BoolAttr.get(True),
    }
    old = b.emit("ub.poison", value.type, [], _poison(b))
    return b.emit("rocdl.update.dpp", value.type, [old, value], attributes)


def _poison(b: Builder) -> dict[str, ir.Attribute]:
    return {"value": ir.Attribute.parse("#ub.poison", b.context)}
