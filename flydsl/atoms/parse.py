"""Printed forms back to atoms and tiled objects; the inverse of every `text`.

Both spellings are read: `!fly_rocdl.cdna3.mfma<...>` as in IR and `rocdl.cdna3.mfma<...>` as in
messages.
Law      parse_x(x.text) == x
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from flydsl.layout import Layout, Tile
from flydsl.layout import parse as parse_value

from .copy_ops import (
    BufferAtomic,
    BufferCopy,
    BufferCopyLDS,
    BufferLoadAsyncLDS,
    CopyAtom,
    CopyOp,
    GlobalLoadAsyncLDS,
    LDSReadTrans,
    UniversalAtomic,
    UniversalCopy,
)
from .errors import AtomSyntax
from .mma_ops import MFMA, WMMA, WMMA_GENERATIONS, MFMAScale, MmaOp, UniversalFMA, WMMAScale
from .tdm import TDM, TensorLoad, TensorStore
from .tiled_copy import TiledCopy
from .tiled_mma import TiledMma

_NAME = re.compile(r"!?(?:fly_|fly\.)?([\w.]+)<(.*)>", re.S)
_MMA = re.compile(r"(\d+)x(\d+)x(\d+), \((\w+), (\w+)\) -> (\w+)(?:, (.*))?")


def split_arguments(text: str) -> list[str]:
    """Return the parts between the commas that stand outside all brackets and strings."""
    parts, depth, start, quoted = [], 0, 0, False
    for i, c in enumerate(text):
        if c == '"':
            quoted = not quoted
        elif quoted or c == ">" and text[i - 1 : i] == "-":
            continue
        elif c in "<([{":
            depth += 1
        elif c in ">)]}":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return [*parts, text[start:].strip()]


def _open(text: str, expected: str) -> tuple[str, str]:
    """Return (name without dialect prefix, what stands between its angle brackets)."""
    match = _NAME.fullmatch(text.strip())
    if not match:
        raise AtomSyntax(source=text, expected=expected)
    return match[1], match[2]


def _options(parts: list[str]) -> dict[str, str]:
    return dict(tuple(s.strip() for s in p.split("=", 1)) for p in parts if "=" in p)


def _flag(text: str) -> bool:
    return text == "true"


def _plain(cls: type[CopyOp]) -> Callable[[list[str]], CopyOp]:
    return lambda args: cls(int(args[0]))


def _buffer_copy(args: list[str]) -> CopyOp:
    return BufferCopy(int(args[0]), int(_options(args).get("cache", 0)))


def _lds_read_trans(args: list[str]) -> CopyOp:
    return LDSReadTrans(int(_options(args)["trans"].removesuffix("b")), int(args[1]))


def _universal_atomic(args: list[str]) -> CopyOp:
    return UniversalAtomic(args[0], args[1], args[2].strip('"') if len(args) > 2 else "")


def _tdm(args: list[str]) -> CopyOp:
    named = _options(args)
    return TDM(
        int(named["rank"]),
        int(named["warps"]),
        int(named["pad"]),
        int(args[3]),
        int(named["cache"]),
        _flag(named["barrier"]),
        _flag(named["timeout"]),
    )


def _tensor(cls: type[CopyOp]) -> Callable[[list[str]], CopyOp]:
    def read(args: list[str]) -> CopyOp:
        named = _options(args)
        shape = tuple(int(x) for x in named["shape"].strip("[]").split(","))
        return cls(
            shape,
            named["elem"],
            parse_value(named["tensor2tdm"]),
            int(named.get("padInterval", 0)),
            int(named.get("padAmount", 0)),
            int(named.get("cacheModifier", 0)),
            _flag(named.get("atomicBarrier", "")),
        )

    return read


_COPY: dict[str, Callable[[list[str]], CopyOp]] = {
    "universal_copy": _plain(UniversalCopy),
    "universal_atomic": _universal_atomic,
    "rocdl.cdna3.buffer_copy": _buffer_copy,
    "rocdl.cdna3.buffer_copy_lds": _plain(BufferCopyLDS),
    "rocdl.cdna3.buffer_atomic": lambda args: BufferAtomic(args[0], args[1]),
    "rocdl.cdna4.buffer_load_async_lds": _plain(BufferLoadAsyncLDS),
    "rocdl.cdna4.global_load_async_lds": _plain(GlobalLoadAsyncLDS),
    "rocdl.cdna4.lds_read_trans": _lds_read_trans,
    "rocdl.gfx1250.tdm": _tdm,
    "rocdl.cdna5.tensor_load": _tensor(TensorLoad),
    "rocdl.cdna5.tensor_store": _tensor(TensorStore),
}


def parse_copy_op(text: str) -> CopyOp:
    """Return the copy operation, e.g. of `!fly.universal_copy<128>`."""
    name, inside = _open(text, "a copy operation")
    if name not in _COPY:
        raise AtomSyntax(source=text, expected="a copy operation")
    try:
        return _COPY[name](split_arguments(inside))
    except (KeyError, IndexError):
        raise AtomSyntax(source=text, expected=f"the copy operation {name}") from None


def parse_copy_atom(text: str) -> CopyAtom:
    """Return the copy atom of `!fly.copy_atom<OP, BITS>`."""
    name, inside = _open(text, "a copy atom")
    parts = split_arguments(inside)
    if name != "copy_atom" or len(parts) != 2 or not parts[1].isdigit():
        raise AtomSyntax(source=text, expected="copy_atom<OP, BITS>")
    return CopyAtom(parse_copy_op(parts[0]), int(parts[1]))


def parse_mma_op(text: str) -> MmaOp:
    """Return the MMA operation, e.g. of `!fly.universal_fma<1x1x1, (f32, f32) -> f32>`."""
    name, inside = _open(text, "an MMA operation")
    match = _MMA.fullmatch(inside)
    if not match:
        raise AtomSyntax(source=text, expected="MxNxK, (A, B) -> ACC and options")
    m, n, k = (int(match[i]) for i in (1, 2, 3))
    shape = (m, n, k, match[4], match[5], match[6])
    options = _options(split_arguments(match[7] or ""))
    return _mma(name, shape, options, text)


def _mma(name: str, shape: tuple, options: dict[str, str], text: str) -> MmaOp:
    opsel = (int(options.get("opselA", 0)), int(options.get("opselB", 0)))
    mod_c = int(options.get("modC", 0))
    if name == "universal_fma":
        return UniversalFMA(*shape)
    if name == "rocdl.cdna3.mfma":
        return MFMA(*shape)
    if name == "rocdl.cdna4.mfma_scale":
        return MFMAScale(*shape, *opsel)
    if name == "rocdl.gfx1250.wmma_scale":
        return WMMAScale(
            *shape,
            *opsel,
            mod_c,
            _flag(options.get("reuseA", "")),
            _flag(options.get("reuseB", "")),
            int(options.get("blockSize", 32)),
        )
    gen = name.removeprefix("rocdl.").removesuffix(".wmma")
    if gen in WMMA_GENERATIONS and name.endswith(".wmma"):
        return WMMA(
            *shape,
            gen,
            _flag(options.get("signA", "")),
            _flag(options.get("signB", "")),
            _flag(options.get("clamp", "")),
            mod_c,
        )
    raise AtomSyntax(source=text, expected="an MMA operation")


def parse_mma_atom(text: str) -> MmaOp:
    """Return the MMA operation of `!fly.mma_atom<OP>`."""
    name, inside = _open(text, "an MMA atom")
    if name != "mma_atom":
        raise AtomSyntax(source=text, expected="mma_atom<OP>")
    return parse_mma_op(inside)


def parse_tiled_copy(text: str) -> TiledCopy:
    """Return the tiled copy of `!fly.tiled_copy<ATOM, LAYOUT, TILE>`."""
    name, inside = _open(text, "a tiled copy")
    parts = split_arguments(inside)
    if name != "tiled_copy" or len(parts) != 3:
        raise AtomSyntax(source=text, expected="tiled_copy<ATOM, LAYOUT, TILE>")
    return TiledCopy(parse_copy_atom(parts[0]), _layout(parts[1]), _tile(parts[2]))


def parse_tiled_mma(text: str) -> TiledMma:
    """Return the tiled MMA of `!fly.tiled_mma<ATOM, LAYOUT[, TILE]>`."""
    name, inside = _open(text, "a tiled MMA")
    parts = split_arguments(inside)
    if name != "tiled_mma" or len(parts) not in (2, 3):
        raise AtomSyntax(source=text, expected="tiled_mma<ATOM, LAYOUT, TILE>")
    return TiledMma(
        parse_mma_atom(parts[0]), _layout(parts[1]), _tile(parts[2]) if len(parts) == 3 else None
    )


def _layout(text: str) -> Layout:
    return _expect(Layout, parse_value(text), text)


def _tile(text: str) -> Tile:
    return _expect(Tile, parse_value(text), text)


def _expect(kind: type, value: Any, text: str) -> Any:
    if not isinstance(value, kind):
        raise AtomSyntax(source=text, expected=kind.__name__)
    return value
