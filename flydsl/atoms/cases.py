"""Evaluate oracle records of atoms and partitions: `python -m flydsl.atoms.cases FILE.jsonl`.

Each record is evaluated from its text. Prints every disagreement and, last, `agree N of M,
documented deviations K`; exit status 0 when nothing else is left. Fields that describe what a
compiler made of an atom (`memory_ops`, registers and addressing in `isa`) are compared as far
as the tables state them: names, operand types and constants, mnemonics.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

from flydsl.layout import (
    ComposedLayout,
    CoordTensor,
    LayoutError,
    MemRef,
    Ptr,
    Sym,
    add_offset,
    make_fragment_layout_like,
    make_identity_layout,
    parse,
    size,
)
from flydsl.layout.int_tuple import coord_add, to_str

from . import tdm, tdm_tiled, tiled_copy, tiled_mma
from .copy_ops import copy_atom
from .copy_rows import CopyRow, register_access, row
from .deviations import find_deviation
from .elements import bit_width
from .errors import AtomError
from .mma_calls import call_text
from .parse import parse_copy_atom, parse_copy_op, parse_mma_op, parse_tiled_copy, parse_tiled_mma

Check = tuple[str, Any, Any]  # field, ours, recorded


def checks(record: dict) -> Iterator[Check]:
    """Yield every compared field of a record."""
    kind = record.get("kind")
    if kind == "copy":
        yield from _tiled_copy(record)
    elif kind == "mma":
        yield from _tiled_mma(record)
    elif "shape_mnk" in record:
        yield from _mma_atom(record)
    elif record["family"].startswith("cdna5.tensor"):
        yield from _tensor_atom(record)
    elif record["family"] == "gfx1250.tdm":
        yield from _tdm(record)
    else:
        yield from _copy_atom(record)


def _attempt(make: Callable[[], Any]) -> Any:
    """Return the printed result, None for a refusal."""
    try:
        return make()
    except (AtomError, LayoutError):
        return None


def _memref(elem: str, space: str, layout: Any) -> str:
    return str(MemRef(Ptr(elem, space), layout))


def _moved(view: MemRef, part: tuple) -> str:
    layout, offset = part
    return str(MemRef(add_offset(view.ptr, offset), layout))


def _coord(base: Any, part: tuple) -> str:
    layout, moved = part
    return str(CoordTensor(coord_add(base, moved), layout))


def _tiled_copy(r: dict) -> Iterator[Check]:
    tiled, view, want = parse_tiled_copy(r["tiled"]), parse(r["tensor"]), r["results"]
    elem = view.ptr.elem
    yield "tiled", tiled.text, r["tiled"]
    yield "props.src", str(tiled.layout_src_tv), want["props"]["tiled_tv_layout_src"]
    yield "props.dst", str(tiled.layout_dst_tv), want["props"]["tiled_tv_layout_dst"]
    if r["thr_layout"] is not None:
        made = tiled_copy.make_tiled_copy_tv(
            tiled.atom, parse(r["thr_layout"]), parse(r["val_layout"])
        )
        yield "make_tiled_copy_tv", made.text, r["tiled"]
    identity = make_identity_layout(tuple(size(view.layout[i]) for i in range(2)))
    for letter, side in (("S", "src"), ("D", "dst")):

        def part(layout: Any, thread: Any, side: str = side) -> tuple:
            return tiled_copy.partition(tiled, side, layout, thread)

        got = {
            "": lambda: _moved(view, part(view.layout, Sym())),
            "_static": lambda: _coord(0, part(view.layout, r["thr"])),
            "_coord": lambda: _coord((0, 0), part(identity, r["thr"])),
            "_coord_sym": lambda: _coord((0, 0), part(identity, Sym())),
        }
        for suffix, make in got.items():
            if (name := f"partition_{letter}{suffix}") in want:
                yield name, _attempt(make), want[name]
    if "fragment_like" in want:
        layout = _attempt(
            lambda: _fragment_like(tiled_copy.partition(tiled, "src", view.layout, Sym())[0])
        )
        yield "fragment_like", layout and _memref(elem, "register", layout), want["fragment_like"]
        if "retile" in want:
            yield (
                "retile",
                layout and _memref(elem, "register", tiled_copy.retile(tiled, layout)),
                want["retile"],
            )


def _fragment_like(part: Any) -> Any:
    outer = part.outer if isinstance(part, ComposedLayout) else part
    if not outer.is_static_shape:
        raise AtomError(reason=f"a register fragment needs a static shape, got `{part}`")
    return make_fragment_layout_like(part)


_SPACE = {"A": "shared", "B": "shared", "C": "global"}


def _tiled_mma(r: dict) -> Iterator[Check]:
    tiled, want = parse_tiled_mma(r["tiled"]), r["results"]
    yield "tiled", tiled.text, r["tiled"]
    yield "tile_size_mnk", to_str(tiled.tile_size_mnk), want["props"]["tile_size_mnk"]
    yield "thr_layout_vmnk", str(tiled.thr_layout_vmnk), want["props"]["thr_layout_vmnk"]
    for operand in "ABC":
        yield from _operand(r, tiled, operand)


def _operand(r: dict, tiled: Any, operand: str) -> Iterator[Check]:
    want, layout = r["results"], parse(r["tensors"][operand])
    elem = r["acc"] if operand == "C" else r["elem"]
    fragment = tiled_mma.fragment_layout(tiled, operand, layout)
    copy = tiled_mma.make_tiled_copy_operand(
        parse_copy_atom(r["copy_atom_C" if operand == "C" else "copy_atom"]), tiled, operand
    )

    def part(thread: Any) -> tuple:
        return tiled_mma.partition(tiled, operand, layout, thread)

    def copied(thread: Any) -> tuple:
        return tiled_copy.partition(copy, "src", layout, thread)

    got = {
        f"partition_{operand}": lambda: _memref(elem, _SPACE[operand], part(Sym())[0]),
        f"partition_{operand}_static": lambda: _coord(0, part(r["thr"])),
        f"partition_shape_{operand}": lambda: (
            "!fly.int_tuple<"
            + to_str(tiled_mma.partition_shape(tiled, operand, layout.shape))
            + ">"
        ),
        f"make_fragment_{operand}": lambda: _memref(elem, "register", fragment),
        f"make_fragment_{operand}_stages": lambda: _memref(
            elem, "register", tiled_mma.fragment_layout(tiled, operand, layout, r["stages"])
        ),
        f"make_tiled_copy_{operand}": lambda: copy.text,
        f"copy_{operand}_partition_S": lambda: _memref(elem, "shared", copied(Sym())[0]),
        f"copy_{operand}_partition_S_static": lambda: _coord(0, copied(r["thr"])),
        f"copy_{operand}_retile": lambda: _memref(
            elem, "register", tiled_copy.retile(copy, fragment)
        ),
    }
    yield (
        f"props_{operand}",
        str(tiled.tv_layout(operand)),
        want["props"][f"tiled_tv_layout_{operand.lower()}"],
    )
    for name, make in got.items():
        if name in want:
            yield name, _attempt(make), want[name]


def _mma_atom(r: dict) -> Iterator[Check]:
    op = parse_mma_op(r["type"])
    yield "type", op.text, r["type"]
    yield "thr_layout", str(op.thr_layout), r["thr_layout"]
    yield "shape_mnk", to_str(op.shape_mnk), r["shape_mnk"]
    for operand in "ABC":
        yield f"tv_layout_{operand}", str(op.layout(operand)), r[f"tv_layout_{operand}"]
    yield "values_per_thread", list(op.values_per_thread), r["values_per_thread"]
    found = op.row()
    yield "rocdl", found.rocdl if found else None, r["rocdl"]
    if found is None:
        return
    yield "rocdl_types", found.rocdl_types, r["rocdl_types"]
    yield "llvm", [dict(zip(("ret", "name", "args"), call_text(op, found)))], r["llvm"]
    if r["isa"] is not None:
        yield "isa", [found.isa], r["isa"]


def _copy_atom(r: dict) -> Iterator[Check]:
    op = _attempt(lambda: parse_copy_op(r["op"]))
    found = op and _attempt(lambda: _usable(op, r))
    yield "accepted", found is not None, r["accepted"]
    if op is None or "thr_layout" not in r:
        return
    yield "op", op.text, r["op"]
    atom = copy_atom(op, r["elem"])
    yield "thr_layout", str(atom.thr_layout), r["thr_layout"]
    for side, layout in (
        ("src", atom.layout_src),
        ("dst", atom.layout_dst),
        ("ref", atom.layout_ref),
    ):
        yield f"tv_layout_{side}", str(layout), r[f"tv_layout_{side}"]
    if found is None or not r["accepted"]:
        return
    yield "rocdl", [found.rocdl] if found.rocdl else [], r["rocdl"]
    call = (
        [{"ret": found.result, "name": found.intrinsic, "args": found.arguments}]
        if found.intrinsic
        else []
    )
    yield "llvm", call, r["llvm"]
    yield "memory_ops", _memory_ops(r, found), r["memory_ops"]
    if found.isa is not None:
        yield "isa", found.isa, _mnemonic(r["isa"], found.isa)


def _usable(op: Any, r: dict) -> CopyRow:
    op.tv_src(bit_width(r["elem"]))
    return row(op, r["elem"], r["src"], r["dst"], r["chip"])


def _memory_ops(r: dict, found: CopyRow) -> list[str]:
    if r["family"] == "universal_copy":
        return []
    register = None
    for space, verb in (
        (r["src"], "load {}, ptr addrspace(5) _, align {}"),
        (r["dst"], "store {} _, ptr addrspace(5) _, align {}"),
    ):
        if space == "register":
            register = verb.format(*register_access(r["elem"], r["n"]))
    return [m for m in (register, found.memory) if m]


def _mnemonic(isa: list[str] | None, expected: str) -> str:
    """Return the recorded mnemonic of the atom's own instruction: "" when none was obtained."""
    names = [line.split()[0] for line in isa or []]
    prefix = expected.split("_")[0] or "buffer"
    return next(
        (n for n in names if n == expected), next((n for n in names if n.startswith(prefix)), "")
    )


def _tdm(r: dict) -> Iterator[Check]:
    op = _attempt(lambda: parse_copy_op(r["op"]))
    state = {name: value for name, value, _ in r.get("extra", ())}
    views = op and _attempt(lambda: [_tdm_view(op, r, warp, state) for warp in range(op.warps)])
    yield "accepted", bool(views), r["accepted"]
    if not views or not r["accepted"]:
        return
    yield "op", op.text, r["op"]
    atom = copy_atom(op, r["elem"])
    for side, layout in (("src", atom.layout_src), ("dst", atom.layout_dst)):
        yield f"tv_layout_{side}", str(layout), r[f"tv_layout_{side}"]
    found = row(op, r["elem"], r["src"], r["dst"], r["chip"])
    yield "rocdl", [found.rocdl, *found.helpers], r["rocdl"]
    for warp, want in r["descriptor"].items():
        groups = [
            [f"0x{word & 0xFFFFFFFF:08x}" for word in g]
            for g in tdm.pack_descriptor(views[int(warp)])
        ]
        yield f"descriptor[{warp}]", groups, want["groups"]
        yield f"cache_policy[{warp}]", op.cache, want["cache_policy"]


def _tdm_view(op: Any, r: dict, warp: int, state: dict) -> tdm.TileView:
    for name in state:
        op.check_state(name)
    rest = dict(state)
    strides, step = [], 1
    for extent in reversed(r["extent"][1:]):
        step *= extent
        strides.insert(0, step)
    extents = [rest.pop(f"extent_{i}", e) for i, e in enumerate(r["extent"])]
    strides = [rest.pop(f"stride_{i}", s) for i, s in enumerate(strides)]
    return tdm.tdm_view(
        op, r["elem"], r["tile"], extents, strides, 0x7F1234567890, 0x2400, warp, **rest
    )


def _tensor_atom(r: dict) -> Iterator[Check]:
    made = _attempt(
        lambda: tdm_tiled.make_tiled_tdm_atom(
            r["direction"],
            parse(r["tensor"]),
            parse(r["smem_layout"]),
            parse(r["tiler"]),
            **r["options"],
        )
    )
    yield "accepted", made is not None, r["accepted"]
    if made is None or not r["accepted"]:
        return
    atom, coordinates = made
    yield "atom", atom.text, r["atom"]
    yield "parse", parse_copy_atom(r["atom"]).text, r["atom"]
    yield "coord_tensor", str(coordinates), r["coord_tensor"]
    yield "thr_layout", str(atom.thr_layout), r["thr_layout"]
    for side, layout in (("src", atom.layout_src), ("dst", atom.layout_dst)):
        yield f"tv_layout_{side}", str(layout), r[f"tv_layout_{side}"]


def evaluate(record: dict) -> tuple[list[Check], set[str]]:
    """Return (unexplained disagreements, names of the documented deviations met) of a record."""
    open_, named = [], set()
    for check in checks(record):
        field, ours, recorded = check
        if ours == recorded:
            continue
        if name := find_deviation(record, field, ours, recorded):
            named.add(name)
        else:
            open_.append(check)
    return open_, named


def run(path: str, out: Any = sys.stdout) -> int:
    """Evaluate a file and print the verdict; return the exit status."""
    agree = deviating = total = 0
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            total += 1
            open_, named = evaluate(json.loads(line))
            for field, ours, recorded in open_:
                print(f"line {number}: {field}\n  ours     {ours}\n  recorded {recorded}", file=out)
            for name in sorted(named):
                print(f"line {number}: deviation {name}", file=out)
            deviating += bool(named and not open_)
            agree += not (named or open_)
    print(f"agree {agree} of {total}, documented deviations {deviating}", file=out)
    return 0 if agree + deviating == total else 1


if __name__ == "__main__":
    sys.exit(max(run(path) for path in sys.argv[1:]) if sys.argv[1:] else 2)
