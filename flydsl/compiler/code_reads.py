"""What a code object reads, found in its bytecode: global names with the attributes taken of them, imports, and a
digest of the code itself.

The digest covers instructions, constants and names, not line numbers: an edit of a comment leaves it unchanged.
"""

from __future__ import annotations

import dis
import hashlib
import sys
from collections.abc import Iterator
from types import CodeType

from flydsl.utils.record import record

_SHIFTED_GLOBAL = sys.version_info >= (3, 11)  # the low bit of the argument says whether NULL is pushed
_SHIFTED_ATTRIBUTE = sys.version_info >= (3, 12)
_OPCODES = dis.opmap
_EXTENDED, _GLOBAL, _ATTRIBUTE = _OPCODES["EXTENDED_ARG"], _OPCODES["LOAD_GLOBAL"], _OPCODES["LOAD_ATTR"]
_METHOD, _IMPORT, _FROM = _OPCODES.get("LOAD_METHOD", -1), _OPCODES["IMPORT_NAME"], _OPCODES["IMPORT_FROM"]
_SUPER = _OPCODES.get("LOAD_SUPER_ATTR", -1)
_CACHE = _OPCODES.get("CACHE", -1)
Chain = tuple[str, ...]


@record
class CodeReads:
    """`globals`: (name, attribute, attribute...) chains; `imports`: (module, name) of imports inside
    the function; `names`: every global and attribute that it loads."""

    digest: str
    globals: tuple[Chain, ...]
    imports: tuple[Chain, ...]
    names: frozenset[str]


_known: dict[int, tuple[CodeType, CodeReads]] = {}


def code_reads(code: CodeType) -> CodeReads:
    """Return what `code` and the functions inside it read; cheap on second use."""
    known = _known.get(id(code))
    if known is None:
        known = _known[id(code)] = (code, _analyse(code))
    return known[1]


def digests_of_file(path: str) -> frozenset[str]:
    """Return the digests of all code in a source file as it is now; empty where it does not compile."""
    try:
        with open(path, "rb") as f:
            code = compile(f.read(), path, "exec", dont_inherit=True)
    except (OSError, SyntaxError, ValueError):
        return frozenset()
    return frozenset(
        hashlib.sha256(_text(part).encode(errors="surrogatepass")).hexdigest() for part in with_inner(code)
    )


def _analyse(code: CodeType) -> CodeReads:
    names: dict[Chain, None] = {}
    imports: dict[Chain, None] = {}
    used: set[str] = set()
    for part in with_inner(code):
        used.update(part.co_names[i] for i in _loaded(part))
        for kind, chain in _chains(part):
            (names if kind == "global" else imports)[chain] = None
    return CodeReads(
        hashlib.sha256(_text(code).encode(errors="surrogatepass")).hexdigest(),
        tuple(names),
        tuple(imports),
        frozenset(used),
    )


def with_inner(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and those of the functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from with_inner(constant)


def _chains(code: CodeType) -> Iterator[tuple[str, Chain]]:
    kind, chain = "", ()
    for opcode, argument in _instructions(code):
        if opcode in (_ATTRIBUTE, _METHOD) and kind == "global":
            index = argument >> 1 if _SHIFTED_ATTRIBUTE else argument
            chain += (code.co_names[index],)
        elif opcode == _FROM and kind == "import":
            yield kind, (chain[0], code.co_names[argument])
        elif opcode == _GLOBAL or opcode == _IMPORT:
            if kind:
                yield kind, chain
            index = argument >> 1 if opcode == _GLOBAL and _SHIFTED_GLOBAL else argument
            kind, chain = ("global" if opcode == _GLOBAL else "import"), (code.co_names[index],)
        elif kind == "global":
            yield kind, chain
            kind = ""
    if kind:
        yield kind, chain


def _loaded(code: CodeType) -> Iterator[int]:
    """Yield the numbers of the names that are loaded, not only stored."""
    for opcode, argument in _instructions(code):
        if opcode == _GLOBAL:
            yield argument >> 1 if _SHIFTED_GLOBAL else argument
        elif opcode in (_ATTRIBUTE, _METHOD):
            yield argument >> 1 if _SHIFTED_ATTRIBUTE else argument
        elif opcode == _SUPER:
            yield argument >> 2


def _instructions(code: CodeType) -> Iterator[tuple[int, int]]:
    extended = 0
    data = code.co_code
    for i in range(0, len(data), 2):
        opcode, argument = data[i], data[i + 1] | extended
        if opcode == _CACHE:
            continue
        extended = argument << 8 if opcode == _EXTENDED else 0
        if opcode != _EXTENDED:
            yield opcode, argument


def _text(code: CodeType) -> str:
    shape = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    names = (code.co_name, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    table = getattr(code, "co_exceptiontable", b"")
    constants = ", ".join(_constant(c) for c in code.co_consts)
    return f"{shape} {names} {code.co_code.hex()} {table.hex()} [{constants}]"


def _constant(value: object) -> str:
    if isinstance(value, CodeType):
        return f"<{_text(value)}>"
    if isinstance(value, frozenset):
        return f"frozenset({sorted(map(_constant, value))})"
    if isinstance(value, tuple):
        return f"({', '.join(map(_constant, value))},)"
    return f"{type(value).__name__}:{value!r}"
