"""How a Python value crosses a region boundary: flatten to IR values, rebuild from IR values.

The only place that knows kinds of values; loops, branches and returns use it for all of them. Values with the methods
`__extract_to_ir_values__` and `__construct_from_ir_values__` (scalars, vectors, pointers, tensors, layouts,
tuples of integers, structs, user classes) are leaves; lists, tuples, dicts, dataclasses and SimpleNamespace are
taken apart; Python numbers become Int32 (Int64 if too large), Float32 or Boolean; raw SSA values stay raw.
Anything else may cross unchanged only.

A `Node` describes how one value is taken apart. `plan(value)` makes the node of a loop's initial value;
`unify(a, b)` the node of what is one value or the other; `node.flatten(value, out)` appends IR values,
`node.rebuild(it)` makes the value again.
"""

import copy
import dataclasses
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from flydsl.expr.numeric.base import Numeric, raw
from flydsl.expr.numeric.promote import class_of_python
from flydsl.frontend.fragments import differing, lasting
from flydsl.frontend.site import UNBOUND
from flydsl.ir import ir

OPAQUE, NUMBER, LEAF, RAW, LIST, TUPLE, DICT, NAMESPACE, DATACLASS = range(9)
_kinds: dict[type, int] = {bool: NUMBER, int: NUMBER, float: NUMBER, list: LIST, tuple: TUPLE, dict: DICT}


View = dict[int, Any]  # id of an object -> its content at some point
NOTHING: View = {}


class Mismatch(Exception):
    """Two values that must have one structure and type do not; `path` says where inside the variable."""

    def __init__(self, path: str, detail: str, before: Any = None, after: Any = None):
        super().__init__(detail)
        self.path, self.detail, self.before, self.after = path, detail, before, after


class OtherMemory(Mismatch):
    """Two register tensors, of which one place would hold one or the other; `fragment` is the second."""

    def __init__(self, path: str, before: Any, after: Any, fragment: Any):
        super().__init__(path, f"expected one register tensor, produced two ({fragment})", before, after)
        self.fragment = fragment


def kind_of(value: Any) -> int:
    """Return how a value crosses a boundary."""
    cls = value.__class__
    kind = _kinds.get(cls)
    if kind is None:
        kind = _kinds[cls] = _kind_of_class(cls)
    if kind == LEAF and isinstance(value, type):
        return OPAQUE
    return kind


def _kind_of_class(cls: type) -> int:
    if hasattr(cls, "__extract_to_ir_values__") and hasattr(cls, "__construct_from_ir_values__"):
        return LEAF
    for parent, kind in ((ir.Value, RAW), (tuple, TUPLE), (list, LIST), (dict, DICT), (SimpleNamespace, NAMESPACE)):
        if issubclass(cls, parent):
            return kind
    if dataclasses.is_dataclass(cls):
        return DATACLASS
    return OPAQUE


def plan(value: Any) -> "Node":
    """Return the node of a value as it enters a region; numbers become scalars."""
    kind = kind_of(value)
    if kind == LEAF:
        return Leaf(value)
    if kind == NUMBER:
        return Leaf(as_scalar(value))
    if kind == RAW:
        return Leaf(_with_operators(value))
    if kind == OPAQUE:
        return Same(value)
    keys, parts = take_apart(value, kind)
    return Items(value, kind, keys, [plan(p) for p in parts])


def unify(a: Any, b: Any, path: str = "", then: "View" = NOTHING, other: "View" = NOTHING) -> "Node":
    """Return the node of a value that is `a` or `b`; equal static values need no IR.

    `then` and `other` hold the contents of changed objects on the way of `a` and of `b` (see `heap`).
    Raises   Mismatch
    """
    if a is b:
        return Same(a)
    if a is UNBOUND or b is UNBOUND:
        return plan(b if a is UNBOUND else a)
    ka, kb = kind_of(a), kind_of(b)
    if ka == NUMBER and kb == NUMBER:
        return _unify_numbers(a, b, path)
    if ka in (NUMBER, RAW) and kb == LEAF:
        return _unify_leaves(b, a, path)
    if ka == LEAF and kb in (NUMBER, RAW, LEAF):
        return _unify_leaves(a, b, path)
    if ka == RAW and kb == RAW:
        return Leaf(_with_operators(a))
    if ka != kb or a.__class__ is not b.__class__:
        raise Mismatch(path, f"expected {describe(a)}, produced {describe(b)}", a, b)
    if ka == OPAQUE:
        return _unify_opaque(a, b, path)
    keys, parts = take_apart(a, ka, then)
    parts_b = _parts_as(b, kb, keys, other)
    if parts_b is None:
        raise Mismatch(path, _shape_detail(a, b), a, b)
    nodes = [unify(x, y, path + _step(ka, k), then, other) for k, x, y in zip(keys, parts, parts_b)]
    return Items(a, ka, keys, nodes)


def _unify_numbers(a: Any, b: Any, path: str) -> "Node":
    if a.__class__ is not b.__class__:
        raise Mismatch(
            path, f"expected dtype {class_of_python(a).__name__}, produced {class_of_python(b).__name__}", a, b
        )
    if repr(a) == repr(b):
        return Same(a)
    x, y = as_scalar(a), as_scalar(b)
    return Leaf(x if x.width >= y.width else y)


def _unify_leaves(leaf: Any, other: Any, path: str) -> "Node":
    check_memory(leaf, other, path)
    leaf = lasting(leaf, other)
    return Same(leaf) if _is_same_static(other, leaf) else Leaf(leaf)


def check_memory(before: Any, after: Any, path: str) -> None:
    """Raise OtherMemory unless the fragments that two values hold are the same memory."""
    other = differing(before, after)
    if other is not None:
        raise OtherMemory(path, before, after, other)


def _is_same_static(a: Any, b: Any) -> bool:
    return a.__class__ is b.__class__ and kind_of(a) == LEAF and is_static(a) and is_static(b) and same_static(a, b)


def _unify_opaque(a: Any, b: Any, path: str) -> "Node":
    if equal(a, b):
        return Same(a)
    raise Mismatch(path, f"expected {describe(a)}, produced {describe(b)}", a, b)


def equal(a: Any, b: Any) -> bool:
    """Return whether two Python objects are equal, False where comparing them fails or is not a bool."""
    if a is b:
        return True
    try:
        return (a == b) is True
    except Exception:  # a comparison of user objects may raise anything; then they count as different
        return False


class Node:
    """How one value crosses."""

    __slots__ = ()

    def flatten(self, value: Any, out: list, path: str = "", view: View = NOTHING) -> None:
        raise NotImplementedError

    def rebuild(self, values: Iterator) -> Any:
        raise NotImplementedError


class Same(Node):
    """A value that crosses unchanged and needs no IR."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def flatten(self, value: Any, out: list, path: str = "", view: View = NOTHING) -> None:
        if value is not UNBOUND and not (_is_same_static(value, self.value) or equal(value, self.value)):
            raise Mismatch(path, f"expected {describe(self.value)}, produced {describe(value)}", self.value, value)

    def rebuild(self, values: Iterator) -> Any:
        return self.value


class Leaf(Node):
    """A value with the two protocol methods."""

    __slots__ = ("exemplar", "types")

    def __init__(self, exemplar: Any):
        self.exemplar = exemplar
        self.types: list | None = None

    def flatten(self, value: Any, out: list, path: str = "", view: View = NOTHING) -> None:
        if value is UNBOUND:
            from flydsl.frontend.regions import fillers

            out.extend(
                fillers(self.types if self.types is not None else [v.type for v in extract(self.exemplar)], path)
            )
            return
        values = self._values(_as_of(value, view), path)
        types = [v.type for v in values]
        if self.types is None:
            self.types = types
        elif types != self.types:
            raise Mismatch(path, self._detail(value, types), self.exemplar, value)
        out.extend(values)

    def _values(self, value: Any, path: str) -> list:
        exemplar = self.exemplar
        if value.__class__ is exemplar.__class__:
            fits = getattr(value, "__can_continue_as__", None)
            if fits is not None and value is not exemplar and not fits(exemplar):
                raise Mismatch(path, f"expected {exemplar}, produced {value}", exemplar, value)
            check_memory(exemplar, value, path)
            return extract(value)
        converted = convert_like(value, exemplar)
        if converted is None:
            raise Mismatch(path, self._detail(value, None), exemplar, value)
        return extract(converted)

    def _detail(self, value: Any, types: list | None) -> str:
        word = "dtype " if isinstance(self.exemplar, Numeric) else ""
        produced = describe(value)
        if types and types != self.types and produced == describe(self.exemplar):
            produced = ", ".join(map(str, types))
            return f"expected [{', '.join(map(str, self.types))}], produced [{produced}]"
        return f"expected {word}{describe(self.exemplar)}, produced {produced}"

    def rebuild(self, values: Iterator) -> Any:
        count = 1 if self.types is None else len(self.types)
        return construct(self.exemplar, [next(values) for _ in range(count)])


class Items(Node):
    """A list, tuple, dict, namespace or dataclass, element by element."""

    __slots__ = ("exemplar", "keys", "kind", "nodes")

    def __init__(self, exemplar: Any, kind: int, keys: list, nodes: list[Node]):
        self.exemplar, self.kind, self.keys, self.nodes = exemplar, kind, keys, nodes

    def flatten(self, value: Any, out: list, path: str = "", view: View = NOTHING) -> None:
        if value is UNBOUND:
            for node in self.nodes:
                node.flatten(UNBOUND, out, path)
            return
        if value.__class__ is not self.exemplar.__class__:
            raise Mismatch(
                path, f"expected {describe(self.exemplar)}, produced {describe(value)}", self.exemplar, value
            )
        parts = _parts_as(value, self.kind, self.keys, view)
        if parts is None:
            raise Mismatch(path, _shape_detail(self.exemplar, value), self.exemplar, value)
        for key, node, part in zip(self.keys, self.nodes, parts):
            node.flatten(part, out, path + _step(self.kind, key), view)

    def rebuild(self, values: Iterator) -> Any:
        parts = [node.rebuild(values) for node in self.nodes]
        return put_together(self.exemplar, self.kind, self.keys, parts)


def take_apart(value: Any, kind: int, view: View = NOTHING) -> tuple[list, list]:
    """Return the keys and the elements of a container, as `view` has them if it does."""
    if view and id(value) in view:
        content = view[id(value)]
        return (list(range(len(content))), content) if kind == LIST else (list(content), list(content.values()))
    if kind == LIST or kind == TUPLE:
        return list(range(len(value))), list(value)
    if kind == DICT:
        return list(value), list(value.values())
    if kind == NAMESPACE:
        return list(value.__dict__), list(value.__dict__.values())
    names = [f.name for f in dataclasses.fields(value)]
    return names, [getattr(value, n) for n in names]


def _parts_as(value: Any, kind: int, keys: list, view: View) -> list | None:
    """Return the elements of a container in the order of `keys`, None if its keys are others."""
    own, parts = take_apart(value, kind, view)
    if own == keys:
        return parts
    if kind in (LIST, TUPLE) or len(own) != len(keys):
        return None
    by_key = dict(zip(own, parts))
    return [by_key[k] for k in keys] if all(k in by_key for k in keys) else None


def _as_of(value: Any, view: View) -> Any:
    """Return a leaf in the state that `view` has of it."""
    if not view or id(value) not in view:
        return value
    then = copy.copy(value)
    then.__dict__.clear()
    then.__dict__.update(view[id(value)])
    return then


def put_together(exemplar: Any, kind: int, keys: list, parts: list) -> Any:
    """Return a container like `exemplar` with these elements."""
    cls = exemplar.__class__
    if kind == TUPLE:
        return cls._make(parts) if hasattr(cls, "_make") else cls(parts)
    if cls is list:
        return parts
    if cls is dict:
        return dict(zip(keys, parts))
    new = copy.copy(exemplar)
    if kind == LIST:
        new[:] = parts
    elif kind == DICT:
        new.update(zip(keys, parts))
    else:
        for key, part in zip(keys, parts):
            object.__setattr__(new, key, part)
    return new


def extract(value: Any) -> list:
    """Return the IR values of a leaf or of a number."""
    kind = kind_of(value)
    if kind == NUMBER:
        return [raw(as_scalar(value))]
    return [value] if kind == RAW else list(value.__extract_to_ir_values__())


def construct(exemplar: Any, values: list) -> Any:
    """Return a value like `exemplar` made of IR values."""
    if isinstance(exemplar, ir.Value) and not hasattr(exemplar, "__construct_from_ir_values__"):
        return _with_operators(values[0])
    build = exemplar.__construct_from_ir_values__
    if _takes_exemplar(exemplar.__class__):
        return build(values, exemplar=exemplar)
    return build(values)


_exemplar_classes: dict[type, bool] = {}


def _takes_exemplar(cls: type) -> bool:
    known = _exemplar_classes.get(cls)
    if known is None:
        import inspect

        try:
            parameters = inspect.signature(cls.__construct_from_ir_values__).parameters
        except (TypeError, ValueError):
            parameters = {"exemplar": None}
        variadic = any(getattr(p, "kind", None) == inspect.Parameter.VAR_KEYWORD for p in parameters.values())
        known = _exemplar_classes[cls] = "exemplar" in parameters or variadic
    return known


def as_scalar(value: int | float | bool) -> Numeric:
    """Return a Python number as the scalar that carries it."""
    return class_of_python(value)(value)


def convert_like(value: Any, exemplar: Any) -> Any:
    """Return a number or raw value as one of the exemplar's class, None where that would change its kind or type."""
    cls = exemplar.__class__
    kind = kind_of(value)
    if kind == NUMBER and isinstance(exemplar, Numeric):
        boolean = cls.__name__ == "Boolean"
        if value.__class__ is bool:
            return cls(value) if boolean else None
        if value.__class__ is int:
            fits = cls.is_integer and not boolean and _fits(value, cls)
            return cls(value) if fits else None
        return cls(value) if cls.is_float else None
    own = extract(exemplar)
    if (kind == RAW or isinstance(value, ir.Value) or isinstance(exemplar, ir.Value)) and len(own) == 1:
        given = extract(value) if kind in (RAW, LEAF, NUMBER) else []
        return construct(exemplar, given) if len(given) == 1 and given[0].type == own[0].type else None
    return None


def _fits(value: int, cls: type[Numeric]) -> bool:
    low = -(1 << (cls.width - 1)) if cls.signed else 0
    return low <= value < low + (1 << cls.width)


def _with_operators(value: "ir.Value") -> Any:
    from flydsl.expr.numeric.raw_value import ArithValue

    if isinstance(value, ArithValue) or not isinstance(
        value.type, (ir.IntegerType, ir.FloatType, ir.IndexType, ir.VectorType)
    ):
        return value
    return ArithValue(value)


def is_static(leaf: Any) -> bool:
    """Return whether a leaf is known while tracing."""
    state = getattr(leaf, "is_static", False)
    return bool(state() if callable(state) else state)


def same_static(a: Any, b: Any) -> bool:
    """Return whether two static leaves of one class hold the same."""
    if isinstance(a, Numeric):
        return repr(a.value) == repr(b.value)
    return equal(getattr(a, "plain", a), getattr(b, "plain", b))


def describe(value: Any) -> str:
    """Return what a value is, for an error."""
    kind = kind_of(value)
    if value is None or value is UNBOUND:
        return "None" if value is None else "no value"
    if kind == NUMBER:
        return class_of_python(value).__name__
    if kind == RAW:
        return str(value.type)
    if kind in (LIST, TUPLE):
        return f"{value.__class__.__name__} of length {len(value)}"
    if kind == DICT:
        return f"dict with keys {list(value)}"
    if kind in (NAMESPACE, DATACLASS):
        return f"{value.__class__.__name__} with fields {take_apart(value, kind)[0]}"
    if kind == LEAF:
        return value.__class__.__name__ if isinstance(value, Numeric) else _describe_leaf(value)
    return f"{value.__class__.__name__} {value!r:.40}" if isinstance(value, (str, bytes)) else value.__class__.__name__


def _describe_leaf(value: Any) -> str:
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    name = value.__class__.__name__
    if name == "Vector" and shape is not None:
        return f"Vector {shape} of {getattr(dtype, '__name__', dtype)}"
    return str(value) if name in str(value) else name


def _shape_detail(expected: Any, produced: Any) -> str:
    return f"expected {describe(expected)}, got {describe(produced)}"


def _step(kind: int, key: Any) -> str:
    return f".{key}" if kind in (NAMESPACE, DATACLASS) else f"[{key!r}]"
