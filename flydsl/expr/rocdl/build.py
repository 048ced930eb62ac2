"""Turn a row of `table` into a Python function: `rcp(res, arg)` emits `rocdl.rcp` and returns an object of class
`res`; given an IR type, a raw value with operators.

The function is made once, on first use of its name; its arguments are taken by position or by name, matrix
instructions also take them as one list.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

from flydsl.diag import IntrinsicNotOnChip, RocdlArguments, RocdlOperand, RocdlStatic
from flydsl.expr.numeric.base import check_raw
from flydsl.expr.numeric.raw_value import ArithValue
from flydsl.expr.rocdl.attributes import attribute
from flydsl.expr.rocdl.table import FLOATS, OpSpec, chips_with, limits, lookup, results
from flydsl.expr.rocdl.values import operand, result_type, static_int, wrapper
from flydsl.ir import emit, emit1, ir
from flydsl.ir.trace import active, current

_IGNORED = ("loc", "ip")
_NUMBERS = (int, bool, type(None))
_CONTROLS = ("cbsz", "abid", "blgp")  # of dense matrix instructions; 0 is none


def builder(name: str) -> Callable | None:
    """Return the function that emits the instruction `name`, or None if there is no such instruction."""
    spec = lookup(name)
    return None if spec is None else _make(spec)


class OpResult(ArithValue):
    """The value of an instruction that the reference names by its op class: `.result` is the value itself."""

    @property
    def result(self) -> ArithValue:
        return self


def _make(spec: OpSpec) -> Callable:
    params = spec.params[1:] if spec.has_result else spec.params
    operands = tuple((i, p) for i, (p, _, kind) in enumerate(params) if kind == "")
    attrs = tuple((i, p, mlir, kind) for i, (p, mlir, kind) in enumerate(params) if kind != "")
    options = {p for p, _, _ in spec.options}
    has_result, op, is_op_class, floats = spec.has_result, spec.op, spec.is_op_class, FLOATS.get(spec.name)
    gives = results(spec.name)
    bounded: dict[str, tuple[tuple[int, str, int, int], ...]] = {}  # by chip, once it is known to have the instruction
    total = len(params) + has_result
    controls = 3 if tuple(p for p, _, _ in params[3:]) == _CONTROLS else -1

    def call(*args, **named) -> Any:
        trace = active.trace or current()
        if trace.arch not in bounded:
            check_chip(spec.name, trace.arch)
            most = limits(spec.name, trace.arch)
            bounded[trace.arch] = tuple((i, p, *most[p]) for i, p, _, _ in attrs if p in most)
        if len(args) == 2 and isinstance(args[1], (list, tuple)):
            args = (args[0], *args[1])
            if len(args) + controls == total:  # cbsz, abid and blgp left out
                args = (*args, *[0] * controls)
        if len(args) != total or not named.keys() <= options:
            args, named = _bind(spec, args, named)
        rest, type_, hint = args, None, None
        if has_result:
            rest, type_ = args[1:], result_type(args[0], spec.name, spec.text)
            hint = type_ if isinstance(type_, ir.FloatType) else None
            if gives and str(type_) not in gives:
                _refuse_result(spec, gives, type_)
        values = []
        for i, p in operands:
            x = rest[i]
            if isinstance(x, ir.Value):
                check_raw(x)
                values.append(x)
            else:
                literal = hint if floats or x.__class__ is float else None
                values.append(operand(x, literal, spec.name, p, spec.text))
        if floats:
            _check_floats(spec, floats, type_, values)
        for i, p, low, high in bounded[trace.arch]:
            _check_limits(spec.name, p, rest[i], low, high)
        attributes = _attributes(spec, attrs, rest, named, trace.types.memo) if attrs or named else None
        if not has_result:
            return emit(op, (), values, attributes)
        value = emit1(op, type_, values, attributes)
        if is_op_class and args[0] is type_:
            return OpResult(value)
        return wrapper(args[0], type_, trace.types)(value)

    call.__name__ = call.__qualname__ = spec.name
    call.__module__ = "flydsl.expr.rocdl"
    call.__doc__ = f"Emit `{spec.op}`: {spec.text}."
    call.spec = spec
    return call


def _check_limits(name: str, param: str, value: Any, low: int, high: int) -> None:
    """Refuse a number that the instruction's field does not hold.

    Raises   RocdlStatic
    """
    if isinstance(value, ir.Attribute):
        return
    number = static_int(value, name, param)
    if not low <= number <= high:
        raise RocdlStatic(name=name, param=param, expected=f"integer in [{low}, {high}]", got=number)


def _refuse_result(spec: OpSpec, gives: tuple[str, ...], type_: ir.Type) -> None:
    """Refuse a result type that the instruction does not give.

    Raises   RocdlOperand
    """
    expected = gives[0] if len(gives) == 1 else f"one of {', '.join(gives)}"
    found = re.match(r"vector<(\d+)x(\w+)>", gives[0])
    written = f"T.vec({found[1]}, T.{found[2]})" if found else f"T.{gives[0]}"
    advice = f"pass `{written}`; convert or take elements of the result"
    raise RocdlOperand(name=spec.name, param="res", expected=expected, got=str(type_), signature=spec.text, advice=advice)


def _check_floats(spec: OpSpec, floats: tuple[str, ...], type_: ir.Type, values: Sequence[ir.Value]) -> None:
    """Refuse a result type that the instruction does not have, and operands of another type.

    Raises   RocdlOperand
    """
    advice = f"convert with `.to(...)`; the instruction exists for {', '.join(floats)}"
    if str(type_) not in floats:
        expected = f"one of {', '.join(floats)}"
        raise RocdlOperand(
            name=spec.name, param="res", expected=expected, got=str(type_), signature=spec.text, advice=advice
        )
    for (param, _, _), value in zip(spec.params[1:], values):
        if value.type != type_:
            expected, got = f"{type_}, the result type", str(value.type)
            raise RocdlOperand(
                name=spec.name, param=param, expected=expected, got=got, signature=spec.text, advice=advice
            )


def _attributes(spec: OpSpec, attrs: Sequence[tuple], rest: Sequence[Any], named: dict, memo: dict) -> dict:
    """Return the attribute dictionary; the one of a given set of numbers is made once per context."""
    numbers = [rest[a[0]] for a in attrs]
    numbers += named.values()
    key = (spec.op, *named, *numbers) if all(n.__class__ in _NUMBERS for n in numbers) else None
    out = None if key is None else memo.get(key)
    if out is None:
        out = {mlir: attribute(kind, rest[i], spec.name, p) for i, p, mlir, kind in attrs}
        for p, mlir, kind in spec.options:
            if named.get(p) is not None:
                out[mlir] = attribute(kind, named[p], spec.name, p)
        if key is not None:
            memo[key] = out
    return out


def _bind(spec: OpSpec, args: tuple, named: dict) -> tuple[tuple, dict]:
    """Sort arguments given by name, or beyond the required ones."""
    by_mlir = {mlir: p for p, mlir, _ in (*spec.params, *spec.options)}
    named = {by_mlir.get(k, k): v for k, v in named.items() if k not in _IGNORED}
    required = [p for p, _, _ in spec.params]
    bound = dict(zip(required + [p for p, _, _ in spec.options], args))
    problem = _problem(spec, required, bound, args, named)
    if problem:
        raise RocdlArguments(name=spec.name, problem=problem, signature=spec.text)
    bound.update(named)
    return tuple(bound[p] for p in required), {p: bound[p] for p, _, _ in spec.options if p in bound}


def _problem(spec: OpSpec, required: list[str], bound: dict, args: tuple, named: dict) -> str:
    options = [p for p, _, _ in spec.options]
    unknown = [p for p in named if p not in required and p not in options]
    if unknown:
        return f"has no argument `{unknown[0]}`"
    twice = [p for p in named if p in bound]
    if twice:
        return f"got `{twice[0]}` twice"
    missing = [p for p in required if p not in bound and p not in named]
    if missing:
        return f"misses {', '.join(f'`{p}`' for p in missing)}"
    if len(args) > len(required) + len(options):
        return f"takes {len(required)} arguments, got {len(args)}"
    return ""


def check_chip(name: str, arch: str) -> None:
    """Refuse an instruction that the chip does not have.

    Raises   IntrinsicNotOnChip: lists the chips that have it
    """
    having = chips_with(name)
    if arch.split(":")[0] not in having:
        text = ", ".join(having) or "none of the chips that can be compiled for"
        raise IntrinsicNotOnChip(name=f"rocdl.{name}", arch=arch, chips_text=text)
