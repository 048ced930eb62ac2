"""What MLIR's verifier says of an op that a kernel built itself, as our error: the argument, its type, what to write."""

from __future__ import annotations

import re

from flydsl.diag import FlyError, RawOperand, RocdlOperand, Span
from flydsl.expr.rocdl.table import OpSpec, lookup

RAW_DIALECTS = ("rocdl", "arith", "math", "vector", "llvm", "memref", "amdgpu")  # that kernels reach by `fx.rocdl` and `flydsl._mlir`
_CLASSES = {
    "i1": "Boolean", "i8": "Int8", "i16": "Int16", "i32": "Int32", "i64": "Int64",
    "f16": "Float16", "bf16": "BFloat16", "f32": "Float32", "f64": "Float64",
}  # fmt: skip
_WORDS = (
    (r"(\d+)-bit signless integer", r"i\1"),
    (r"(\d+)-bit float", r"f\1"),
    (r"bfloat16 type", "bf16"),
    (r"LLVM pointer in address space (\d+)", r"!llvm.ptr<\1>"),
    (r"fixed-length vector of (\S+) values of length (\d+)", r"vector<\2x\1>"),
)
_POINTERS = {
    "!llvm.ptr<1>": "`fx.get_iter(tensor).llvm_ptr`",
    "!llvm.ptr<3>": "the `.ptr.llvm_ptr` of an array that `fx.SharedAllocator` placed",
    "!llvm.ptr<8>": "`fx.rocdl.get_buffer_rsrc(...)` of a buffer tensor or pointer",
}
_FIELD = re.compile(r"^'(\w+)\.([\w.]+)' op (operand|result) #(\d+) must be (.*), but got '(.*)'$", re.DOTALL)
_OTHER = re.compile(r"^'(\w+)\.([\w.]+)' op (.*)$", re.DOTALL)
_SIGNATURE = re.compile(r": (\([^()]*\) -> [^\n]*?)(?: loc\(.*)?$", re.MULTILINE)
_VECTOR = re.compile(r"vector<(\d+)x(\w+)>$")


def raw_error(message: str, note: str, at: Span | None) -> FlyError | None:
    """Return the error for a diagnostic of the verifier, or None where it is not about an op of RAW_DIALECTS.

    `note`: MLIR's note with the op, whose types it shows
    """
    found = _FIELD.match(message)
    if found and found[1] in RAW_DIALECTS:
        dialect, op, kind, number, expected, got = found.groups()
        expected = in_short(expected)
        advice = advise(expected, got, kind)
        spec = instruction(op) if dialect == "rocdl" else None
        if spec is not None:
            param = "res" if kind == "result" else [p for p, _, k in spec.params if k == ""][int(number)]
            return RocdlOperand(name=spec.name, param=param, expected=expected, got=got, signature=spec.text, advice=advice, at=at)
        problem = f"{kind} {number} of `{dialect}.{op}` must be {expected}, got {got}"
        return RawOperand(problem=problem, reason=f"a kernel built the op itself{given(note)}", advice=advice, at=at)
    found = _OTHER.match(message)
    if found is None or found[1] not in RAW_DIALECTS:
        return None
    dialect, op, problem = found.groups()
    spec = instruction(op) if dialect == "rocdl" else None
    same = re.search(r"all of \{([^}]*)\} have (?:the )?same type", problem)
    if same:
        problem, advice = f"takes {same[1]} of one type", "convert them to one type with `.to(...)`, or pass their bits with `.bitcast(...)`"
    else:
        problem, advice = in_short(problem), "give the arguments the types that the op takes"
    called = f"it is called as {spec.text}" if spec is not None else "a kernel built the op itself"
    return RawOperand(problem=f"`{dialect}.{spec.name if spec else op}` {problem}", reason=called + given(note), advice=advice, at=at)


def instruction(op: str) -> OpSpec | None:
    """Return the raw instruction of `fx.rocdl` for an op's name, or None."""
    return lookup(op.replace(".", "_"))


def given(note: str) -> str:
    """Return the types that the op was given, as a clause."""
    found = _SIGNATURE.search(note)
    return f"; given were {found[1].strip()}" if found else ""


def in_short(text: str) -> str:
    """Return MLIR's description of types in MLIR's notation: `32-bit signless integer` is `i32`."""
    for words, short in _WORDS:
        text = re.sub(words, short, text)
    return text


def advise(expected: str, got: str, kind: str) -> str:
    """Return what to write in place of the argument."""
    wanted, had = _VECTOR.match(expected), _VECTOR.match(got)
    if kind == "result":
        return f"pass {as_written(expected)} as the result type"
    if expected in _POINTERS:
        return f"pass {_POINTERS[expected]}"
    if wanted and had and wanted[1] == had[1] and wanted[2] in _CLASSES:
        return f"convert the elements: `v.to(fx.{_CLASSES[wanted[2]]})`"
    if wanted:
        return f"pass a vector of {wanted[1]} elements of {wanted[2]}: {as_written(expected)}"
    if expected not in _CLASSES:
        return f"pass a value of type {expected}"
    name = _CLASSES[expected]
    if got in _CLASSES and got.lstrip("bif") == expected.lstrip("bif") and got != expected:
        return f"`x.bitcast(fx.{name})` passes the same bits, `x.to(fx.{name})` the converted number"
    return f"pass an `fx.{name}`: `x.to(fx.{name})`"


def as_written(type_: str) -> str:
    """Return a type as kernels write it: `T.vec(2, T.f32)`."""
    found = _VECTOR.match(type_)
    if found:
        return f"`T.vec({found[1]}, T.{found[2]})`"
    return f"`T.{type_}`" if type_ in _CLASSES else type_
