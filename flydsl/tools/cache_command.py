"""`flydsl cache`: what is in the disk cache, why something missed it, and emptying it."""

from __future__ import annotations

import argparse
import sys
import time

from flydsl.compiler.disk import explain_difference, toolchain
from flydsl.runtime.disk_cache import DiskCache, Entry, Stored
from flydsl.utils import env


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dir", help="folder of the cache (default: FLYDSL_RUNTIME_CACHE_DIR)")
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    parser.set_defaults(help_of=parser)
    listing = actions.add_parser("list", help="one line per entry: function, target, size, age, sections, key")
    listing.add_argument("function", nargs="?", help="only entries of this function")
    explain = actions.add_parser(
        "explain", help="what the entries of a function differ in, and from the present compiler"
    )
    explain.add_argument("function", help="name of a jit function")
    explain.add_argument("key", nargs="?", help="start of the key of one entry; default: the newest one")
    clear = actions.add_parser("clear", help="remove all entries, or those of one function")
    clear.add_argument("function", nargs="?")
    actions.add_parser("stats", help="entries and bytes by function, and the limit")


def run(args: argparse.Namespace) -> int:
    if args.action is None:
        args.help_of.print_help(sys.stderr)
        return 2
    folder = args.dir or env.runtime.cache_dir
    if not folder:
        sys.stdout.write("no disk cache: FLYDSL_RUNTIME_CACHE_DIR is empty\n")
        return 1
    cache = DiskCache(folder, env.runtime.cache_limit << 20)
    actions = {"list": _list, "explain": _explain, "clear": _clear, "stats": _stats}
    return actions[args.action](cache, args)


def _list(cache: DiskCache, args: argparse.Namespace) -> int:
    entries = cache.entries(args.function)
    if not entries:
        sys.stdout.write(f"no entry{f' of {args.function}' if args.function else ''} in {cache.folder}\n")
    for stored in reversed(entries):
        entry = _read(stored)
        about = "damaged" if entry is None else f"{_target(entry):8} {' '.join(sorted(entry.sections))}"
        sys.stdout.write(
            f"{stored.function:24} {stored.key[:12]} {_size(stored.size):>9} {_age(stored.used):>8}  {about}\n"
        )
    return 0


def _explain(cache: DiskCache, args: argparse.Namespace) -> int:
    """Compare the chosen entry with each older one, by the parts of their keys."""
    entries = [
        (s, e) for s in reversed(cache.entries(args.function)) if (e := _read(s)) is not None and "parts" in e.facts
    ]
    chosen = next((p for p in entries if p[0].key.startswith(args.key or "")), None)
    if chosen is None:
        key = f" whose key begins with {args.key}" if args.key and entries else ""
        sys.stdout.write(f"no entry of {args.function}{key} in {cache.folder}\n")
        return 1
    stored, entry = chosen
    parts = entry.facts["parts"]
    sys.stdout.write(
        f"{stored.function} {stored.key[:12]} for {_target(entry)}, made {_age(entry.facts['made'])} ago\n"
    )
    stale = explain_difference({**parts, "toolchain": toolchain()}, parts)
    for line in stale:
        sys.stdout.write(f"  is not used by the present compiler: {line}\n")
    for other, about in entries:
        if other.key != stored.key:
            lines = explain_difference(parts, about.facts["parts"])
            sys.stdout.write(f"  differs from {other.key[:12]} ({_age(about.facts['made'])} ago) in\n")
            sys.stdout.writelines(f"    {line}\n" for line in lines)
    return 0


def _clear(cache: DiskCache, args: argparse.Namespace) -> int:
    sys.stdout.write(f"removed {cache.clear(args.function)} entries from {cache.folder}\n")
    return 0


def _stats(cache: DiskCache, args: argparse.Namespace) -> int:
    by_function: dict[str, list[Stored]] = {}
    for stored in cache.entries():
        by_function.setdefault(stored.function, []).append(stored)
    for function, found in sorted(by_function.items()):
        sys.stdout.write(f"{function:32} {len(found):5} entries {_size(sum(s.size for s in found)):>9}\n")
    total = [s.size for found in by_function.values() for s in found]
    limit = _size(cache.limit_bytes)
    sys.stdout.write(f"{'total':32} {len(total):5} entries {_size(sum(total)):>9} of {limit} in {cache.folder}\n")
    return 0


def _read(stored: Stored) -> Entry | None:
    try:
        return Entry.from_bytes(stored.path.read_bytes())
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _target(entry: Entry) -> str:
    return str(entry.facts.get("artifact", {}).get("arch", "?"))


def _size(size: int) -> str:
    return f"{size / 1024:.1f} KB" if size < 1 << 20 else f"{size / (1 << 20):.1f} MB"


def _age(then: float) -> str:
    seconds = max(0.0, time.time() - then)
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"
