"""`@fx.struct` and `@fx.union`: named fields as values and in memory; `Storage[T]`, a typed address; `Arena`, which
hands them out.

A composite satisfies a protocol (flattening, launch arguments, memory) exactly when all of its run-time fields do.
`Constexpr` fields take part in none: they specialise the type. Layout in memory is C's. Neighbours: `arrays` has
field types, `shared` the LDS allocator.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, ClassVar

from flydsl.diag import (
    ArenaBase,
    ArenaSize,
    FieldKeyword,
    FieldName,
    FieldType,
    FieldUnknown,
    NotStorable,
    StructFields,
    StructFrozen,
    UnionValue,
    ValueCount,
)
from flydsl.expr.annotations import Constexpr
from flydsl.expr.arrays import Align, Array, Empty, check_alignment
from flydsl.expr.int_tuples import IntTuple, is_numeric_class
from flydsl.expr.numeric.base import Numeric
from flydsl.expr.numeric.classes import Uint8
from flydsl.expr.pointers import Pointer, add_offset
from flydsl.expr.protocol import (
    c_abi_spec,
    cache_signature,
    construct_from_ir_values,
    dsl_align_of,
    dsl_size_of,
    extract_to_ir_values,
    get_ir_types,
    ir_value_count,
    peek_from_ptr,
    poke_into_ptr,
)
from flydsl.expr.values import shown
from flydsl.ir import ir
from flydsl.layout.view import element_bytes
from flydsl.utils.record import record

_RESERVED = ("replace", "peek", "poke")
_MISSING = object()


class CompositeKind(IntEnum):
    """Product: fields one after the other (struct). Overlay: all at the start (union)."""

    Product = 0
    Overlay = 1


@record
class FieldDef:
    """A field's name and type."""

    name: str
    type_spec: Any

    @property
    def is_constexpr(self) -> bool:
        """Whether the field is a compile-time value."""
        return Constexpr.is_constexpr_annotation(self.type_spec)


class CompositeMeta(type):
    """Class of structs and unions."""

    __dsl_kind__: CompositeKind
    __dsl_field_defs__: tuple[FieldDef, ...]

    def __repr__(cls) -> str:
        return cls.__name__


class Composite(metaclass=CompositeMeta):
    """Base of all structs and unions."""

    __dsl_kind__ = CompositeKind.Product
    __dsl_field_defs__: ClassVar[tuple[FieldDef, ...]] = ()
    __dsl_defaults__: ClassVar[dict[str, Any]] = {}
    __dsl_constants__: ClassVar[dict[str, Any]] = {}
    __dsl_type_identity__: ClassVar[Any] = None
    _generic: ClassVar[type | None] = None  # the declared class of a specialised one
    _schema_frozen = False

    def __init__(self, *args: Any, **kwargs: Any):
        cls = type(self)
        if cls.__dsl_kind__ is CompositeKind.Overlay:
            raise UnionValue(union=cls.__name__)
        values = {f.name: coerce(f, v) for f, v in _bound(cls, args, kwargs)}
        constants = {f.name: values[f.name] for f in cls.__dsl_field_defs__ if f.is_constexpr}
        if constants:
            object.__setattr__(self, "__class__", specialised(_declared(cls), constants))
        for name, value in values.items():
            if name not in constants:
                object.__setattr__(self, name, value)
        object.__setattr__(self, "_schema_frozen", True)

    def __setattr__(self, name: str, value: Any) -> None:
        raise StructFrozen(struct=type(self).__name__, field=name)

    __delattr__ = lambda self, name: self.__setattr__(name, None)

    def replace(self, **changes: Any) -> Any:
        """Return a copy with some fields changed."""
        cls = type(self)
        unknown = [n for n in changes if n not in {f.name for f in cls.__dsl_field_defs__}]
        if unknown:
            raise FieldKeyword(struct=cls.__name__, problem=f"unexpected field {unknown[0]!r}")
        values = {f.name: getattr(self, f.name) for f in cls.__dsl_field_defs__}
        return _declared(cls)(**{**values, **changes})

    def __eq__(self, other: object) -> Any:
        if type(self) is not type(other):
            return NotImplemented
        return all(_same(getattr(self, f.name), getattr(other, f.name)) for f in run_time_fields(type(self)))

    def __hash__(self) -> int:
        return hash((type(self), *[_hash(getattr(self, f.name)) for f in run_time_fields(type(self))]))

    def __repr__(self) -> str:
        fields = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in type(self).__dsl_field_defs__)
        return f"{type(self).__name__}({fields})"

    # --- values ------------------------------------------------------------------------------------------------------

    def __extract_to_ir_values__(self) -> list[ir.Value]:
        return [v for f in run_time_fields(type(self)) for v in extract_to_ir_values(getattr(self, f.name))]

    def __ir_value_count__(self) -> int:
        return sum(ir_value_count(getattr(self, f.name)) for f in run_time_fields(type(self)))

    @classmethod
    def __construct_from_ir_values__(cls, values: Sequence[ir.Value], exemplar: Any = None) -> Any:
        rest, out = list(values), dict((exemplar.__class__ if exemplar is not None else cls).__dsl_constants__)
        for f in run_time_fields(cls):
            model = None if exemplar is None else getattr(exemplar, f.name)
            count = 1 if model is None else ir_value_count(model)
            out[f.name] = construct_from_ir_values(f.type_spec if model is None else type(model), model, rest[:count])
            rest = rest[count:]
        if rest:
            raise ValueCount(owner=cls.__name__, expected=len(values) - len(rest), got=len(values))
        return _declared(cls)(**out)

    # --- launch arguments ----------------------------------------------------------------------------------------------

    def __get_ir_types__(self) -> list[ir.Type]:
        return [t for f in run_time_fields(type(self)) for t in get_ir_types(getattr(self, f.name))]

    def __cache_signature__(self) -> object:
        cls = type(self)
        constants = tuple((n, Constexpr.value_signature(v)) for n, v in cls.__dsl_constants__.items())
        fields = tuple(cache_signature(getattr(self, f.name)) for f in run_time_fields(cls))
        return (cls.__dsl_type_identity__, constants, fields)

    def __c_abi_spec__(self) -> list:
        slots = []
        for f in run_time_fields(type(self)):
            for ctype, fill in c_abi_spec(getattr(self, f.name)):
                slots.append((ctype, _fill_field(f.name, fill)))
        return slots

    # --- memory ----------------------------------------------------------------------------------------------------------

    @classmethod
    def __dsl_size_of__(cls) -> int:
        return _storage_layout(cls)[0]

    @classmethod
    def __dsl_align_of__(cls) -> int:
        return _storage_layout(cls)[1]

    @classmethod
    def __peek_from_ptr__(cls, ptr: Any) -> Any:
        _refuse_union(cls)
        offsets = _storage_layout(cls)[2]
        fields = {f.name: peek_from_ptr(f.type_spec, _at(ptr, offsets[f.name])) for f in run_time_fields(cls)}
        return _declared(cls)(**cls.__dsl_constants__, **fields)

    @classmethod
    def __poke_into_ptr__(cls, ptr: Any, value: Any) -> None:
        _refuse_union(cls)
        if not isinstance(value, _declared(cls)):
            raise FieldType(field="the value", struct=f"Storage[{cls.__name__}]", wanted=cls.__name__, got=shown(value))
        offsets = _storage_layout(cls)[2]
        for f in run_time_fields(cls):
            poke_into_ptr(f.type_spec, _at(ptr, offsets[f.name]), getattr(value, f.name))


def _fill_field(name: str, fill: Callable) -> Callable:
    return lambda value, storage: fill(getattr(value, name), storage)


def _refuse_union(cls: type[Composite]) -> None:
    if cls.__dsl_kind__ is CompositeKind.Overlay:
        raise UnionValue(union=cls.__name__)


def _declared(cls: type[Composite]) -> type[Composite]:
    return cls._generic or cls


def run_time_fields(cls: type[Composite]) -> list[FieldDef]:
    """Return the fields that are not Constexpr."""
    return [f for f in cls.__dsl_field_defs__ if not f.is_constexpr]


def _same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if isinstance(a, Numeric):
        return type(a) is type(b) and a.is_static() == b.is_static() and bool(a._payload == b._payload)
    return type(a) is type(b) and bool(a == b)


def _hash(x: Any) -> int:
    return hash((type(x), x._payload)) if isinstance(x, Numeric) else hash(x)


# --- making values -----------------------------------------------------------------------------------------------------


def _bound(cls: type[Composite], args: tuple, kwargs: dict[str, Any]) -> list[tuple[FieldDef, Any]]:
    """Return each field with its argument, by position, by name, or its default."""
    fields = cls.__dsl_field_defs__
    if len(args) > len(fields):
        raise FieldKeyword(struct=cls.__name__, problem=f"expected {len(fields)} fields, got {len(args)} arguments")
    given = dict(zip([f.name for f in fields], args))
    for name, value in kwargs.items():
        if name in given:
            raise FieldKeyword(struct=cls.__name__, problem=f"multiple values for field {name!r}")
        given[name] = value
    names = {f.name for f in fields}
    for name in given:
        if name not in names:
            raise FieldKeyword(struct=cls.__name__, problem=f"unexpected field {name!r}")
    defaults = {**cls.__dsl_defaults__, **cls.__dsl_constants__}
    out = []
    for f in fields:
        value = given.get(f.name, defaults.get(f.name, _MISSING))
        if value is _MISSING:
            raise FieldKeyword(struct=cls.__name__, problem=f"missing required field {f.name!r}")
        out.append((f, value))
    return out


def coerce(field: FieldDef, value: Any) -> Any:
    """Return the value of a field in its type: Python numbers become scalars, lists vectors; anything else must fit."""
    wanted = field.type_spec
    if field.is_constexpr:
        return wanted.accept(value, field.name)
    while isinstance(wanted, type) and issubclass(wanted, Align):
        wanted = wanted.dtype
    if is_union(wanted):
        raise FieldType(field=field.name, struct="a union", wanted=wanted.__name__, got=shown(value))
    if isinstance(value, wanted):
        return value
    converted = _converted(wanted, value)
    if converted is None:
        raise FieldType(field=f"field {field.name!r}", struct="", wanted=wanted.__name__, got=shown(value))
    return converted


def _converted(wanted: Any, value: Any) -> Any:
    if isinstance(value, IntTuple) and is_numeric_class(wanted) and value.is_leaf:
        value = value.to_py_value()
    if is_numeric_class(wanted):
        fits = isinstance(value, (bool, int, float)) or isinstance(value, wanted)
        return wanted(value) if fits or _raw_of(value, wanted) else None
    if getattr(wanted, "alias", None) is not None:
        return _as_alias(wanted, value)
    target = getattr(wanted, "target", None)
    if target is not None and isinstance(value, Pointer) and value.plain == target:
        return value
    return None


def _raw_of(value: Any, wanted: Any) -> bool:
    return isinstance(value, ir.Value) and value.type == wanted.ir_type


def _as_alias(wanted: Any, value: Any) -> Any:
    dtype, _ = wanted.alias
    if hasattr(value, "numel"):
        return wanted(value) if value.dtype is dtype and value.numel == wanted.ir_type.shape[0] else None
    return wanted(value) if isinstance(value, (int, float, list, tuple, Numeric)) else None


_specialised: dict[tuple, type[Composite]] = {}


def specialised(cls: type[Composite], constants: dict[str, Any]) -> type[Composite]:
    """Return the class of values of `cls` whose Constexpr fields have these values."""
    key = (cls, tuple((n, type(v), v if _is_hashable(v) else id(v)) for n, v in constants.items()))
    known = _specialised.get(key)
    if known is None:
        text = ", ".join(f"{n}={getattr(v, '__name__', v)}" for n, v in constants.items())
        body = {"__dsl_constants__": dict(constants), "_generic": cls, **constants}
        known = _specialised[key] = CompositeMeta(f"{cls.__name__}[{text}]", (cls,), body)
    return known


def _is_hashable(x: Any) -> bool:
    return getattr(type(x), "__hash__", None) is not None


# --- declaring -----------------------------------------------------------------------------------------------------------


def _declare(
    name: str, fields: list[FieldDef], kind: CompositeKind, body: dict[str, Any], identity: Any
) -> type[Composite]:
    names = [f.name for f in fields]
    if not fields:
        raise StructFields(problem=f"{name}: a composite has at least one field")
    if len(set(names)) != len(names):
        raise StructFields(problem=f"{name}: duplicate field names in {names}")
    defaults = {n: body.pop(n) for n in names if n in body}
    body = {
        **body,
        "__annotations__": {f.name: f.type_spec for f in fields},
        "__dsl_kind__": kind,
        "__dsl_field_defs__": tuple(fields),
        "__dsl_defaults__": defaults,
        "__dsl_type_identity__": identity,
    }
    return CompositeMeta(name, (Composite,), body)


def _checked_name(name: str) -> str:
    if name in _RESERVED:
        raise FieldName(field=name, problem="is reserved")
    if name.startswith("_"):
        raise FieldName(field=name, problem="must not start with underscore")
    return name


def _from_class(klass: type, kind: CompositeKind, frame: Any) -> type[Composite]:
    annotations = _annotations(klass, frame)
    fields = [FieldDef(_checked_name(n), t) for n, t in annotations.items()]
    body = {
        n: v for n, v in vars(klass).items() if n not in ("__dict__", "__weakref__", "__annotations__", "__annotate__")
    }
    return _declare(klass.__name__, fields, kind, body, (klass.__module__, klass.__qualname__))


def _annotations(klass: type, frame: Any) -> dict[str, Any]:
    """Return the evaluated annotations; strings see the module and the function around the class."""
    raw = inspect.get_annotations(klass)
    if not any(isinstance(t, str) for t in raw.values()):
        return dict(raw)
    module = sys.modules.get(klass.__module__)
    names = {
        **(vars(module) if module else {}),
        **(frame.f_globals if frame else {}),
        **(frame.f_locals if frame else {}),
    }
    return {n: eval(t, names) if isinstance(t, str) else t for n, t in raw.items()}


def _inline(kind: CompositeKind, word: str, params: Any) -> type[Composite]:
    """Make `Struct["a": T, U]`: named fields are slices, others are named `_0`, `_1` by position."""
    items = params if isinstance(params, tuple) else (params,)
    fields = []
    for i, item in enumerate(items):
        named = isinstance(item, slice)
        name = _checked_name(item.start) if named else f"_{i}"
        fields.append(FieldDef(name, item.stop if named else item))
    text = ", ".join(f"{f.name}: {getattr(f.type_spec, '__name__', f.type_spec)}" for f in fields)
    identity = (word, tuple((f.name, getattr(f.type_spec, "__dsl_type_identity__", f.type_spec)) for f in fields))
    return _declare(f"{word}[{text}]", fields, kind, {}, identity)


class struct:
    """Decorator: fields one after the other, as an immutable value and in memory. Inline form: `Struct["a": T, "b":
    U]`.
    """

    def __new__(cls, klass: type | None = None, /, **kwargs: Any) -> Any:
        frame = inspect.currentframe().f_back
        if klass is None:
            return lambda k: _from_class(k, CompositeKind.Product, frame)
        return _from_class(klass, CompositeKind.Product, frame)

    def __class_getitem__(cls, params: Any) -> type[Composite]:
        return _inline(CompositeKind.Product, "Struct", params)


class union:
    """Decorator: all fields at the same address; it exists in memory only. Inline form: `Union["a": T, "b": U]`."""

    def __new__(cls, klass: type | None = None, /, **kwargs: Any) -> Any:
        frame = inspect.currentframe().f_back
        if klass is None:
            return lambda k: _from_class(k, CompositeKind.Overlay, frame)
        return _from_class(klass, CompositeKind.Overlay, frame)

    def __class_getitem__(cls, params: Any) -> type[Composite]:
        return _inline(CompositeKind.Overlay, "Union", params)


Struct, Union = struct, union


def is_composite_type(obj: Any) -> bool:
    """Return whether `obj` is a struct or union class."""
    return isinstance(obj, CompositeMeta) and obj is not Composite


def is_struct_type(obj: Any) -> bool:
    """Return whether `obj` is a struct class."""
    return is_composite_type(obj) and obj.__dsl_kind__ is CompositeKind.Product


def is_union(obj: Any) -> bool:
    """Return whether `obj` is a union class."""
    return is_composite_type(obj) and obj.__dsl_kind__ is CompositeKind.Overlay


def is_specializable_struct_type(tp: Any) -> bool:
    """Return whether `tp` is a struct class with Constexpr fields that have no values yet."""
    return is_struct_type(tp) and tp._generic is None and any(f.is_constexpr for f in tp.__dsl_field_defs__)


# --- memory ----------------------------------------------------------------------------------------------------------------


def _storage_layout(dsl_type: Any) -> tuple[int, int, dict[str, int]]:
    """Return (bytes, alignment, offset of each field) of a struct or union, laid out as in C.

    Raises   NotStorable: a field has no layout in memory
    """
    known = dsl_type.__dict__.get("_layout")
    if known is None:
        known = _c_layout(dsl_type)
        type.__setattr__(dsl_type, "_layout", known)
    return known


def _c_layout(cls: type[Composite]) -> tuple[int, int, dict[str, int]]:
    overlay = cls.__dsl_kind__ is CompositeKind.Overlay
    offsets: dict[str, int] = {}
    end, alignment = 0, 1
    for f in run_time_fields(cls):
        size, align = dsl_size_of(f.type_spec), dsl_align_of(f.type_spec)
        alignment = max(alignment, align)
        start = 0 if overlay else round_up(end, align)
        offsets[f.name] = start
        end = max(end, start + size)
    return round_up(end, alignment), alignment, offsets


def round_up(n: int, multiple: int) -> int:
    """Return the smallest multiple that is not below `n`."""
    return -(-n // multiple) * multiple


def _at(ptr: Any, offset_bytes: int) -> Any:
    """Return a pointer moved by bytes; its element type stays where the offset is a whole number of elements."""
    if isinstance(ptr, Pointer):
        size = element_bytes(ptr.plain.elem)
        if offset_bytes % size:
            ptr = Array[Uint8, 1].__peek_from_ptr__(ptr).ptr
        else:
            offset_bytes //= size
    return add_offset(ptr, offset_bytes)


_storages: dict[Any, type[Storage]] = {}


class Storage:
    """`Storage[T]`: the address of a T. `peek()` reads, `poke(v)` writes, an attribute is the Storage of that field."""

    _target_type: ClassVar[Any] = None

    def __class_getitem__(cls, target: Any) -> type[Storage]:
        known = _storages.get(target)
        if known is None:
            name = f"Storage[{getattr(target, '__name__', target)}]"
            known = _storages[target] = type(name, (Storage,), {"_target_type": target})
        return known

    def __init__(self, ptr: Any, prebuilt: dict[str, Storage] | None = None):
        self._ptr = ptr
        self._prebuilt = prebuilt

    def peek(self) -> Any:
        """Return the value here; of an array the handle."""
        target = self._target_type
        if self._prebuilt is None:
            return peek_from_ptr(target, self._ptr)
        _refuse_union(target)
        return _declared(target)(**target.__dsl_constants__, **{n: s.peek() for n, s in self._prebuilt.items()})

    def poke(self, value: Any) -> None:
        """Write a value here."""
        target = self._target_type
        if isinstance(target, type) and issubclass(target, Composite):
            _refuse_union(target)
        if self._prebuilt is None:
            poke_into_ptr(target, self._ptr, coerce(FieldDef("the value", target), value))
            return
        for name, storage in self._prebuilt.items():
            storage.poke(getattr(value, name))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        target = self._target_type
        field = next((f for f in getattr(target, "__dsl_field_defs__", ()) if f.name == name), None)
        if field is None:
            raise FieldUnknown(storage=type(self).__name__, field=name, problem="has no field")
        if field.is_constexpr:
            raise FieldUnknown(storage=type(self).__name__, field=name, problem="is compile-time only, no memory holds")
        if self._prebuilt is not None:
            return self._prebuilt[name]
        return Storage[field.type_spec](_at(self._ptr, _storage_layout(target)[2][name]))

    def __str__(self) -> str:
        return f"{type(self).__name__}({self._ptr})"

    __repr__ = __str__


class Arena:
    """Hands out memory one piece after the other; a subclass says where it lies."""

    DEFAULT_BASE_ALIGNMENT = 16

    def __init__(self, base_alignment: int = 16):
        self._base_alignment = base_alignment
        self._end = 0

    @property
    def allocated_bytes(self) -> int:
        """Bytes handed out so far, gaps included."""
        return self._end

    @property
    def base_ptr(self) -> Pointer:
        """The start of the memory."""
        raise ArenaBase(arena=type(self).__name__)

    def allocate(self, storable_or_int: Any, alignment: int | None = None) -> Storage:
        """Return memory for a type, or for so many bytes; `alignment` (a power of two, not below the type's) raises it.

        Raises   NotStorable, AlignValue, ArenaSize
        """
        target = storable_or_int
        if isinstance(target, int) and not isinstance(target, bool):
            if target <= 0:
                raise ArenaSize(size=target)
            target = Array[Uint8, target]
        size, natural = dsl_size_of(target), dsl_align_of(target)
        if alignment is not None:
            check_alignment(alignment, natural, getattr(target, "__name__", str(target)))
        offset = round_up(self._end, alignment or natural)
        self._end = offset + size
        return self._place(target, offset, alignment or natural)

    def _place(self, target: Any, offset: int, alignment: int) -> Storage:
        return Storage[target](_at(self.base_ptr, offset))


__all__ = [
    "Align",
    "Arena",
    "Array",
    "CompositeKind",
    "CompositeMeta",
    "Constexpr",
    "Empty",
    "FieldDef",
    "NotStorable",
    "Pointer",
    "Storage",
    "Struct",
    "Union",
    "is_composite_type",
    "is_specializable_struct_type",
    "is_struct_type",
    "struct",
    "union",
]
