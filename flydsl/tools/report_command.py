"""`flydsl report FILE:FUNCTION`: registers, occupancy, spills, LDS, instruction mix, access widths, the main loop,
static cycles.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
from dataclasses import asdict
from typing import Any

from flydsl.diag import InputUnreadable
from flydsl.tools import compile_command
from flydsl.utils import env


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("function", metavar="FILE[:FUNCTION]", help="a @flyc.jit function, or a file of ISA (.s)")
    parser.add_argument("--arch", action="append", help="target chip, such as gfx942; may be given several times")
    parser.add_argument(
        "--arg", action="append", default=[], help="f32[64,128] tensor, i32:5 scalar, const:4 constant"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--no-mca", action="store_true", help="do not ask llvm-mca for cycles")


def run(args: argparse.Namespace) -> int:
    rows = []
    for arch in args.arch or [None]:
        rows += [facts(stats, not args.no_mca) for stats in _stats(args, arch).values()]
    if args.json:
        sys.stdout.write(json.dumps(rows, indent=1) + "\n")
    else:
        sys.stdout.write("\n".join(map(text, rows)))
    return 0


def _stats(args: argparse.Namespace, arch: str | None) -> dict[str, Any]:
    if args.function.endswith(".s"):
        from flydsl.targets.rocm.isa_stats import isa_stats

        try:
            text = pathlib.Path(args.function).read_text()
        except OSError as e:
            raise InputUnreadable(path=args.function, problem=e.strerror, otherwise="") from e
        return isa_stats(text, arch)
    overrides = {"ARCH": arch, "FLYDSL_GPU_ARCH": arch} if arch else {}
    with env.override(**overrides):
        return compile_command.artifact_of(args.function, args.arg, arch).stats


def facts(stats: Any, with_cycles: bool = True) -> dict[str, Any]:
    """Return the facts of one kernel as plain values."""
    from flydsl.targets.rocm import mca

    row = {k: v for k, v in asdict(stats).items() if k not in ("loops", "counts", "mnemonics", "widths")}
    row |= {"max_blocks_per_cu": stats.max_blocks_per_cu, "counts": dict(stats.counts.most_common())}
    row["widths"] = {group: {str(b): n for b, n in sorted(w.items())} for group, w in stats.widths.items()}
    loop = stats.main_loop
    row["main_loop"] = None
    if loop is not None:
        cycles = mca.cycles(loop.lines, stats.arch) if with_cycles else None
        row["main_loop"] = {
            "label": loop.label,
            "instructions": loop.instructions,
            "matrix": loop.matrix,
            "matrix_share": round(stats.matrix_share, 3),
            "counts": dict(loop.counts.most_common()),
            "cycles": cycles,
        }
    return row


def text(row: dict[str, Any]) -> str:
    """Return the report of one kernel for readers."""
    spills = row["vgpr_spills"] + row["sgpr_spills"]
    agprs = f" ({row['agprs']} of them AGPR)" if row["agprs"] else ""
    scratch = f", {row['scratch_bytes']} bytes of scratch per lane" if row["scratch_bytes"] else ""
    blocks = f"{row['max_blocks_per_cu']} workgroups of {row['workgroup']} per compute unit"
    lines = [
        f"{row['name']} on {row['arch']}",
        f"  registers     {row['vgprs']} VGPR{agprs}, {row['sgprs']} SGPR",
        f"  spills        {spills or 'none'}{scratch}",
        f"  LDS           {row['lds_bytes']} bytes",
        f"  occupancy     {row['occupancy']} waves per SIMD, {blocks}",
        f"  code          {row['instructions']} instructions, {row['code_bytes']} bytes",
        f"  mix           {_counts(row['counts'])}",
    ]
    for group, widths in row["widths"].items():
        lines.append(
            f"  {group.replace('_', ' '):13} " + ", ".join(f"{n} x {bits} bits" for bits, n in widths.items())
        )
    lines += _loop_lines(row["main_loop"])
    return "\n".join(lines) + "\n"


def _loop_lines(loop: dict[str, Any] | None) -> list[str]:
    if loop is None:
        return ["  main loop     none"]
    found = [f"  main loop     {loop['label']}: {loop['instructions']} instructions, {_counts(loop['counts'])}"]
    if loop["matrix"]:
        found.append(f"                {100 * loop['matrix_share']:.0f} % of them matrix instructions")
    if loop["cycles"] is not None:
        cycles = f"{loop['cycles']:.0f} cycles per trip of one wave"
        found.append(f"                {cycles} (llvm-mca: no cache misses, no other waves)")
    return found


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in counts.items() if n)
