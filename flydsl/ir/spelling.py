"""One printer and one parser between the reference's spelling of Fly IR and the bindings'.

Python-defined types print with a quoted parameter, `!fly.layout<"(4,8):(8,1)">`, and Python-defined ops with a quoted name without dots,
`"fly.memref_load"(...)`. Users, dumps, goldens and `flydsl._mlir` read and write `!fly.layout<(4,8):(8,1)>` and `fly.memref.load(...)`. Both
directions are text transforms that skip string literals.
"""

import re

from flydsl.ir.bindings import ir

_PREFIXES = ("!fly.", "#fly.", "!fly_rocdl.", "#fly_rocdl.")
_QUOTED = '<"'
_GROUPS = "memref|ptr|atom|tiled_copy|tiled_mma"  # op families that the reference separates with a dot
_OP_OUT = re.compile(rf'"fly\.(?:({_GROUPS})_)?(\w+)"\(')
_OP_IN = re.compile(rf"(?<![\w.!#\"])fly\.(?:({_GROUPS})\.)?(\w+)\(")


def _op_out(m: re.Match) -> str:
    return f"fly.{m[1]}.{m[2]}(" if m[1] else f"fly.{m[2]}("


def _op_in(m: re.Match) -> str:
    return f'"fly.{m[1]}_{m[2]}"(' if m[1] else f'"fly.{m[2]}"('


def to_reference(text: str) -> str:
    """Return printed IR in the reference's spelling: no quotes around type parameters and op names."""
    text = _OP_OUT.sub(_op_out, text)
    out, pos = [], 0
    while True:
        start = text.find(_QUOTED, pos)
        if start < 0:
            out.append(text[pos:])
            return "".join(out)
        if not _is_fly_name(text, start):
            out.append(text[pos : start + 2])
            pos = start + 2
            continue
        end = _string_end(text, start + 1)
        out.append(text[pos : start + 1])
        out.append(text[start + 2 : end].replace('\\22', '"').replace("\\5C", "\\"))
        pos = end + 1


def to_bindings(text: str) -> str:
    """Return IR text in the bindings' spelling: parameters and op names quoted; what is quoted already is kept."""
    text = _OP_IN.sub(_op_in, text)
    out, pos, i, n = [], 0, 0, len(text)
    while i < n:
        c = text[i]
        if c == '"':
            i = _string_end(text, i) + 1
        elif c in "!#":
            lt = _fly_name_end(text, i)
            if lt and text[lt + 1] != '"':
                gt = matching_bracket(text, lt)
                inner = text[lt + 1 : gt].replace("\\", "\\5C").replace('"', "\\22")
                out.append(f'{text[pos : lt + 1]}"{inner}">')
                pos = i = gt + 1
            else:
                i += 1
        else:
            i += 1
    out.append(text[pos:])
    return "".join(out)


def matching_bracket(text: str, lt: int) -> int:
    """Return the index of the `>` that closes the `<` at `lt`; `->` does not count."""
    depth = 0
    for i in range(lt, len(text)):
        if text[i] == "<":
            depth += 1
        elif text[i] == ">" and text[i - 1] != "-":
            depth -= 1
            if depth == 0:
                return i
    from flydsl.diag import IrSyntax

    raise IrSyntax(problem="`<` without its `>`", text=text[max(0, lt - 20) : lt + 40])


def print_op(op: "ir.Operation | ir.Module", locations: bool = False) -> str:
    """Return the text of a module or op in the reference's spelling."""
    op = getattr(op, "operation", op)
    return to_reference(op.get_asm(enable_debug_info=locations, use_local_scope=True))


def parse_module(text: str, context: ir.Context) -> ir.Module:
    """Parse a module in either spelling; syntax errors raise IrSyntax."""
    with context, ir.Location.unknown():
        try:
            return ir.Module.parse(to_bindings(text))
        except ir.MLIRError as e:
            from flydsl.diag import IrSyntax

            raise IrSyntax(problem=str(e), text=text[:80]) from e


def parse_type(text: str, context: ir.Context | None = None) -> ir.Type:
    """Parse a type in either spelling."""
    return _parse(ir.Type.parse, text, context)


def parse_attribute(text: str, context: ir.Context | None = None) -> ir.Attribute:
    """Parse an attribute in either spelling."""
    return _parse(ir.Attribute.parse, text, context)


def _parse(parse, text: str, context: ir.Context | None):
    try:
        return parse(to_bindings(text), context or ir.Context.current)
    except ir.MLIRError as e:
        from flydsl.diag import IrSyntax

        raise IrSyntax(problem=str(e), text=text) from e


def _string_end(text: str, quote: int) -> int:
    i = quote + 1
    while text[i] != '"':
        i += 2 if text[i] == "\\" else 1
    return i


def _is_fly_name(text: str, lt: int) -> bool:
    i = lt
    while i > 0 and (text[i - 1].isalnum() or text[i - 1] in "._"):
        i -= 1
    return i > 0 and text[i - 1 : lt].startswith(_PREFIXES)


def _fly_name_end(text: str, start: int) -> int:
    """Return the index of the `<` that follows a Fly type or attribute name at `start`, or 0."""
    if not text.startswith(_PREFIXES, start):
        return 0
    i = start + 1
    n = len(text)
    while i < n and (text[i].isalnum() or text[i] in "._"):
        i += 1
    return i if i + 1 < n and text[i] == "<" else 0
