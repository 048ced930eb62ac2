"""Evaluate oracle records of atoms and partitions: `python -m flydsl.atoms.cases FILE.jsonl`.

Each record is evaluated from its text. Prints every disagreement and, last, `agree N of M,
documented deviations K`; exit status 0 when nothing else is left, 1 when something is, 2 when a
file cannot be read. Fields that describe what a compiler made of an atom (`memory_ops`, registers
and addressing in `isa`) are compared as far as the tables state them: names, operand types and
constants, mnemonics. A line that is no record, and a result that no rule here computes, is a
disagreement; blank lines and lines that begin with `#` or `//` are not counted.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from flydsl import arch as chips
from flydsl.diag.base import UserError
from flydsl.layout import (
    ComposedLayout,
    CoordTensor,
    Layout,
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
    except (UserError, LayoutError):
        return None


_DIED = ("abort", "fpe", "segv")


def _results(r: dict, made: dict[str, Callable[[], Any]]) -> Iterator[Check]:
    """Yield the recorded results that `made` computes; where the reference's process died, any
    answer will do.
    """
    errors = r.get("errors") or {}
    for name, make in made.items():
        if name in r["results"] and errors.get(name) not in _DIED:
            yield name, _attempt(make), r["results"][name]


def _unknown_results(r: dict, known: Iterable[str]) -> Iterator[Check]:
    """Yield what a record has and nothing here computes."""
    for name in r["results"].keys() - set(known) - {"props"}:
        yield name, "not computed by this evaluator", r["results"][name]


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
    yield "tiled", tiled.text, r["tiled"]
    for side in ("src", "dst"):
        props = _attempt(lambda side=side: str(tiled.layout_side_tv(side)))
        yield f"props.{side}", props, want["props"][f"tiled_tv_layout_{side}"]
    if r["thr_layout"] is not None:
        thr, val = parse(r["thr_layout"]), parse(r["val_layout"])
        made = _attempt(lambda: tiled_copy.make_tiled_copy_tv(tiled.atom, thr, val).text)
        yield "make_tiled_copy_tv", made, r["tiled"]
    parts = {**_parts_of_side(r, tiled, view, "S"), **_parts_of_side(r, tiled, view, "D")}
    yield from _results(r, parts)
    elem = view.ptr.elem

    def fragment() -> Layout:
        return _fragment_like(tiled_copy.partition(tiled, "src", view.layout, Sym())[0])

    fragments = {
        "fragment_like": lambda: _memref(elem, "register", fragment()),
        "retile": lambda: _memref(elem, "register", tiled_copy.retile(tiled, fragment())),
    }
    yield from _results(r, fragments)
    yield from _unknown_results(r, [*parts, *fragments])


def _parts_of_side(r: dict, tiled: Any, view: MemRef, letter: str) -> dict[str, Callable]:
    """Return the four partitions as source or destination, by name."""
    side = {"S": "src", "D": "dst"}[letter]

    def part(layout: Any, thread: Any) -> tuple:
        return tiled_copy.partition(tiled, side, layout, thread)

    def identity() -> Layout:
        return make_identity_layout(tuple(size(view.layout[i]) for i in range(2)))

    name = f"partition_{letter}"
    return {
        name: lambda: _moved(view, part(view.layout, Sym())),
        f"{name}_static": lambda: _coord(0, part(view.layout, r["thr"])),
        f"{name}_coord": lambda: _coord((0, 0), part(identity(), r["thr"])),
        f"{name}_coord_sym": lambda: _coord((0, 0), part(identity(), Sym())),
    }


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
    known: list[str] = []
    for operand in "ABC":
        yield (
            f"props_{operand}",
            _attempt(lambda operand=operand: str(tiled.tv_layout(operand))),
            want["props"][f"tiled_tv_layout_{operand.lower()}"],
        )
        made = {**_operand(r, tiled, operand), **_operand_copy(r, tiled, operand)}
        yield from _results(r, made)
        known += made
    yield from _unknown_results(r, known)


def _fragment_elem(tiled: Any, operand: str) -> str:
    op = tiled.atom
    return {"A": op.a, "B": op.b, "C": op.acc}[operand]


def _operand(r: dict, tiled: Any, operand: str) -> dict[str, Callable]:
    """Return the partitions and fragments of an operand, by name."""
    layout = parse(r["tensors"][operand])
    elem, own = r["acc"] if operand == "C" else r["elem"], _fragment_elem(tiled, operand)

    def part(thread: Any) -> tuple:
        return tiled_mma.partition(tiled, operand, layout, thread)

    def fragment(stages: int | None = None) -> str:
        return _memref(own, "register", tiled_mma.fragment_layout(tiled, operand, layout, stages))

    def shape() -> str:
        return to_str(tiled_mma.partition_shape(tiled, operand, layout.shape))

    return {
        f"partition_{operand}": lambda: _memref(elem, _SPACE[operand], part(Sym())[0]),
        f"partition_{operand}_static": lambda: _coord(0, part(r["thr"])),
        f"partition_shape_{operand}": lambda: f"!fly.int_tuple<{shape()}>",
        f"make_fragment_{operand}": fragment,
        f"make_fragment_{operand}_stages": lambda: fragment(r["stages"]),
    }


def _operand_copy(r: dict, tiled: Any, operand: str) -> dict[str, Callable]:
    """Return what the tiled copy of an operand makes, by name."""
    layout = parse(r["tensors"][operand])
    elem, own = r["acc"] if operand == "C" else r["elem"], _fragment_elem(tiled, operand)
    atom = parse_copy_atom(r["copy_atom_C" if operand == "C" else "copy_atom"])

    def copy() -> Any:
        return tiled_mma.make_tiled_copy_operand(atom, tiled, operand)

    def copied(thread: Any) -> tuple:
        return tiled_copy.partition(copy(), "src", layout, thread)

    def retiled() -> Any:
        return tiled_copy.retile(copy(), tiled_mma.fragment_layout(tiled, operand, layout))

    return {
        f"make_tiled_copy_{operand}": lambda: copy().text,
        f"copy_{operand}_partition_S": lambda: _memref(elem, "shared", copied(Sym())[0]),
        f"copy_{operand}_partition_S_static": lambda: _coord(0, copied(r["thr"])),
        f"copy_{operand}_retile": lambda: _memref(own, "register", retiled()),
    }


def _mma_atom(r: dict) -> Iterator[Check]:
    op = parse_mma_op(r["type"])
    yield "type", op.text, r["type"]
    yield "thr_layout", str(op.thr_layout), r["thr_layout"]
    yield "shape_mnk", to_str(op.shape_mnk), r["shape_mnk"]
    for operand in "ABC":
        yield f"tv_layout_{operand}", str(op.layout(operand)), r[f"tv_layout_{operand}"]
    yield "values_per_thread", list(op.values_per_thread), r["values_per_thread"]
    found = op.row()
    lowered: dict[str, Any] = {"rocdl": found.rocdl if found else None}
    if found:
        call = dict(zip(("ret", "name", "args"), call_text(op, found)))
        lowered |= {"rocdl_types": found.rocdl_types, "llvm": [call]}
        if r.get("isa") is not None:
            lowered["isa"] = [found.isa]
    yield from _stated(r, lowered)


def _verdict(r: dict, accepted: bool) -> Iterator[Check]:
    """Yield whether an atom is accepted; where the reference's process died, either answer will do."""
    if r.get("error_kind") not in _DIED:
        yield "accepted", accepted, r["accepted"]


def _stated(r: dict, made: dict[str, Any]) -> Iterator[Check]:
    """Yield those of our values that the record has a field for."""
    for name, value in made.items():
        if name in r:
            yield name, value, r[name]


def _copy_atom(r: dict) -> Iterator[Check]:
    op = _attempt(lambda: parse_copy_op(r["op"]))
    found = op and _attempt(lambda: _usable(op, r))
    yield from _verdict(r, found is not None)
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
    call = {"ret": found.result, "name": found.intrinsic, "args": found.arguments}
    yield from _stated(
        r,
        {
            "rocdl": [found.rocdl] if found.rocdl else [],
            "llvm": [call] if found.intrinsic else [],
            "memory_ops": _memory_ops(r, found),
        },
    )
    if found.isa is not None and "isa" in r:
        yield "isa", found.isa, _mnemonic(r["isa"], found.isa)


def _usable(op: Any, r: dict) -> CopyRow:
    chips.get(r["chip"])
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
    yield from _verdict(r, bool(views))
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
    yield from _verdict(r, made is not None)
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
    """Return (unexplained disagreements, names of the documented deviations met) of a record.

    A record that cannot be read, or that brings us down, is a disagreement of the field `record`.
    """
    open_, named = [], set()
    try:
        for check in checks(record):
            field, ours, recorded = check
            if ours == recorded:
                continue
            if name := find_deviation(record, field, ours, recorded):
                named.add(name)
            else:
                open_.append(check)
    except (UserError, LayoutError) as error:
        open_.append(("record", f"refused: {error}", "answered"))
    except KeyError as error:
        open_.append(("record", f"no field {error}", "a record of README.md's form"))
    except Exception as error:  # reported with the line, so that one record does not hide the others
        open_.append(("record", f"not evaluated: {type(error).__name__}: {error}", "a record of README.md's form"))
    return open_, named


def _read(line: str) -> tuple[list[Check], set[str]]:
    """Evaluate one line."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        return [("line", f"not JSON: {error}", "a record")], set()
    if not isinstance(record, dict):
        return [("line", f"a JSON {type(record).__name__}", "a record")], set()
    return evaluate(record)


def run(path: str, out: Any = None) -> int:
    """Evaluate a file and print the verdict; return the exit status."""
    agree = deviating = total = 0
    with open(path, encoding="utf-8-sig", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.lstrip().startswith(("#", "//")):
                continue
            total += 1
            open_, named = _read(line)
            for field, ours, recorded in open_:
                print(f"line {number}: {field}\n  ours     {ours}\n  recorded {recorded}", file=out)
            for name in sorted(named):
                print(f"line {number}: deviation {name}", file=out)
            deviating += bool(named and not open_)
            agree += not (named or open_)
    print(f"agree {agree} of {total}, documented deviations {deviating}", file=out)
    return 0 if agree + deviating == total else 1


def main(paths: list[str]) -> int:
    """Evaluate the files and return the worst exit status."""
    if not paths:
        print("usage: python -m flydsl.atoms.cases FILE.jsonl ...", file=sys.stderr)
        return 2
    status = 0
    for path in paths:
        try:
            status = max(status, run(path))
        except OSError as error:
            print(f"{path}: {error.strerror}", file=sys.stderr)
            status = 2
    return status


if __name__ == "__main__":
    sys.stdout.reconfigure(errors="backslashreplace")
    sys.exit(main(sys.argv[1:]))
