"""The base of every value that kernels compute with and that is no scalar or vector: layouts, tuples, tensors,
pointers, atoms.

**Build or fold.** A value holds its plain value (`flydsl.layout`, `flydsl.atoms`: what its IR type states) and an IR
value only if it is known at run time alone. `build` applies the law of an op of the layout algebra to the plain
values: a static result is wrapped and costs no IR, anything else becomes one op whose result type is the law's
result. Results are remembered per context.

Neighbours: `int_tuples`, `layouts`, `pointers`, `tensors`, `atoms` hold the classes; `dialects.laws` has the laws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, TypeVar

from flydsl.diag import NotTracing, StaleValue, WrongKind
from flydsl.dialects.fly.algebra import ALGEBRA, params_attr
from flydsl.dialects.fly.types import is_fly_type, type_of, value_of
from flydsl.dialects.values import inner_text, is_static
from flydsl.expr.layout_errors import user_error
from flydsl.ir import emit1, get_context, ir
from flydsl.ir.trace import active, create_op
from flydsl.layout.errors import LayoutError

V = TypeVar("V", bound="FlyValue")
CLASS_OF_PLAIN: dict[type, type[FlyValue]] = {}


class Rebuilder:
    """`__construct_from_ir_values__(values, exemplar)`: called on an instance, that is the exemplar."""

    def __get__(self, obj: Any, cls: type) -> Callable:
        return lambda values, exemplar=None: cls._rebuild(values, obj if exemplar is None else exemplar)


class FlyValue:
    """A plain value, and its IR value unless it is static. `cls(value)` wraps a raw IR value of a Fly type."""

    __slots__ = ("_scope", "_value", "plain")

    plains: ClassVar[tuple[type, ...]] = ()

    plain: Any

    def __init__(self, value: Any):
        if isinstance(value, FlyValue):
            plain, value = value.plain, value._value
        else:
            plain = _plain_of_raw(value, type(self).__name__)
        if not isinstance(plain, self.plains):
            raise WrongKind(subject=f"{type(self).__name__}()", wanted=type(self).__name__, got=shown(plain))
        _fill(self, plain, None if is_static(plain) else value)

    def __init_subclass__(cls, plains: Sequence[type] = (), **kwargs):
        super().__init_subclass__(**kwargs)
        if plains:
            cls.plains = tuple(plains)
            CLASS_OF_PLAIN.update(dict.fromkeys(plains, cls))

    @property
    def is_static(self) -> bool:
        """Whether everything about the value is known while tracing."""
        return self._value is None

    @property
    def type(self) -> ir.Type:
        """The IR type, which states all that is known statically."""
        return type_of(self.plain, get_context())

    @property
    def value(self) -> ir.Value:
        """The raw IR value."""
        return self._raw()

    def ir_value(self) -> ir.Value:
        """Return the raw IR value; of a static value one op per function that only names its type."""
        return self._raw()

    def _raw(self) -> ir.Value:
        trace = active.trace
        if trace is None:
            raise NotTracing()
        if self._value is None:
            return _materialised(self.plain, trace)
        if self._scope is not trace.scope:
            raise StaleValue(dtype=self.__class__.__name__)
        return self._value

    def __bool__(self) -> bool:
        return True

    def __str__(self) -> str:
        return f"{type(self).__name__}<{inner_text(self.plain)}>"

    def __repr__(self) -> str:
        return str(self)

    def __extract_to_ir_values__(self) -> list[ir.Value]:
        from flydsl.expr.carrying import flatten

        return flatten(self)

    def __can_continue_as__(self, entry: FlyValue) -> bool:
        """Whether this value may be `entry` in the next round of a loop: its type promises at least as much."""
        from flydsl.expr.carrying import can_continue

        return can_continue(entry.plain, self.plain)

    __construct_from_ir_values__ = Rebuilder()

    @classmethod
    def _rebuild(cls, values: Sequence[ir.Value], exemplar: FlyValue) -> FlyValue:
        from flydsl.expr.carrying import rebuild

        return rebuild(exemplar, values)


def _plain_of_raw(value: Any, subject: str) -> Any:
    if not isinstance(value, ir.Value) or not is_fly_type(value.type):
        raise WrongKind(subject=f"{subject}()", wanted="a value of the fly dialect", got=shown(value))
    return value_of(value.type)


def _fill(x: FlyValue, plain: Any, value: ir.Value | None) -> None:
    trace = active.trace
    x.plain = plain
    x._value = value
    x._scope = None if value is None or trace is None else trace.scope


_new = object.__new__


def wrap(plain: Any, value: ir.Value | None = None, cls: type[V] | None = None) -> V:
    """Return the DSL value of a plain value; `value` is its IR value, None for a static one."""
    x = _new(cls or CLASS_OF_PLAIN[plain.__class__])
    x.plain = plain
    x._value = value
    x._scope = None if value is None else active.trace.scope
    return x


def raw(x: FlyValue) -> ir.Value:
    """Return the IR value; a static one is stated once per function by a `fly.static` op."""
    return x._raw()


def _materialised(plain: Any, trace: Any) -> ir.Value:
    scope = trace.scope
    key = ("fly.static", plain.__class__, plain)
    value = scope.constants.get(key)
    if value is None:
        types = (type_of(plain, trace.context),)
        value = create_op("fly.static", types, (), None, None, 0, trace.unknown_loc, scope.entry).result
        scope.constants[key] = value
    return value


Law = Callable[..., Any]
Attrs = Callable[[tuple], dict]
_more_laws: dict[str, tuple[Law, Attrs | None]] = {}


def register_law(op: str, law: Law, attrs: Attrs | None = None) -> None:
    """Have `build` know an op outside the algebra; `attrs` makes its attributes from the parameters."""
    _more_laws[op] = (law, attrs)


class _Rule:
    """What a call comes to for given operand types: the static result, or the op to build."""

    __slots__ = ("attrs", "cls", "plain", "static", "types")


_static_rules: dict[tuple, FlyValue] = {}


def build(op: str, operands: tuple[FlyValue, ...], params: tuple = ()) -> Any:
    """Return `op` applied to the operands: folded when its law gives a static result, else one op in the IR."""
    trace = active.trace
    plains = tuple([x.plain for x in operands])
    key = (op, plains, params)
    if trace is None:
        found = _static_rules.get(key)
        return found if found is not None else _fold_only(key)
    rule = trace.types.memo.get(key)
    if rule is None:
        rule = trace.types.memo[key] = _rule(key, trace)
    if rule.static is not None:
        return rule.static
    x = _new(rule.cls)
    x.plain = rule.plain
    x._value = emit1(op, rule.types, [o._raw() for o in operands], rule.attrs)
    x._scope = trace.scope
    return x


def _rule(key: tuple, trace: Any) -> _Rule:
    op, _, params = key
    result = infer(key)
    rule = _Rule()
    rule.plain, rule.static, rule.attrs = result, None, None
    rule.cls = CLASS_OF_PLAIN[result.__class__]
    if is_static(result):
        rule.static = wrap(result)
    else:
        rule.types = type_of(result, trace.context)
        rule.attrs = _attributes(op, params, trace) if params else None
    return rule


def _attributes(op: str, params: tuple, trace: Any) -> dict:
    more = _more_laws.get(op)
    return {"params": params_attr(params, trace.types)} if more is None else more[1](params)


def _fold_only(key: tuple) -> FlyValue:
    result = infer(key)
    if not is_static(result):
        raise NotTracing()
    _static_rules[key] = x = wrap(result)
    return x


def infer(key: tuple) -> Any:
    """Return the plain result of (op, plain operands, parameters); a refusal of the algebra becomes the user's error."""
    op, plains, params = key
    try:
        more = _more_laws.get(op)
        return ALGEBRA[op].infer(plains, params) if more is None else more[0](*plains, *params)
    except LayoutError as error:
        raise user_error(error, op.removeprefix("fly.")) from None


def emit_as(op: str, plain: Any, operands: Iterable[ir.Value], attrs: dict | None = None) -> Any:
    """Build `op` with the result type of `plain` and wrap the result."""
    trace = active.trace
    if trace is None:
        raise NotTracing()
    x = _new(CLASS_OF_PLAIN[plain.__class__])
    x.plain = plain
    x._value = emit1(op, type_of(plain, trace.context), tuple(operands), attrs)
    x._scope = trace.scope
    return x


def shown(x: Any) -> str:
    """Return how a message names a value: DSL and plain values as they print, others by their class."""
    if isinstance(x, FlyValue):
        return f"{type(x).__name__} `{inner_text(x.plain)}`"
    if isinstance(x, (int, float, str)):
        return f"{type(x).__name__} {x!r}"
    return f"`{inner_text(x)}`" if x.__class__ in CLASS_OF_PLAIN else type(x).__name__


def expect(x: Any, classes: type | tuple[type, ...], what: str) -> Any:
    """Return `x` if it is of one of the classes, else raise; `what` names the operand."""
    if isinstance(x, classes):
        return x
    wanted = classes if isinstance(classes, tuple) else (classes,)
    raise WrongKind(subject=what, wanted=" or ".join(c.__name__ for c in wanted), got=shown(x))
