"""Alias classes: `Vector[Float32, 4]`, called Float32x4. One class per (dtype, shape), storable where the bits
fill bytes.
"""

from typing import Any

from flydsl.diag import VectorConstruction
from flydsl.expr.numeric import CLASSES, Numeric, NumericMeta
from flydsl.expr.numeric.base import check_raw
from flydsl.expr.vector.core import Vector, VectorMeta, raw_vector, splat, stored_bytes
from flydsl.expr.vector.shape import Shape, canonical, numel_of
from flydsl.ir import ir

_cache: dict[tuple[type[Numeric], Shape], type[Vector]] = {}


class AliasMeta(VectorMeta):
    """An alias class holds every Vector of its dtype and shape, also those that operators return."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Vector) and (instance.dtype, instance.shape) == cls.alias


def VectorAlias(dtype: type[Numeric], lanes: Any) -> type[Vector]:
    """Return the class of vectors with this dtype and shape; the same class every time."""
    if not isinstance(dtype, NumericMeta) or dtype.__name__ not in CLASSES:
        raise VectorConstruction(problem=f"{dtype!r} is no scalar class", advice="write fx.Vector[fx.Float32, 4]")
    shape = canonical(lanes)
    cls = _cache.get((dtype, shape))
    if cls is None:
        name = f"{dtype.__name__}x{shape[0]}" if len(shape) == 1 and isinstance(shape[0], int) else None
        namespace = {
            "__slots__": (),
            "alias": (dtype, shape),
            "__doc__": f"A Vector of {dtype.__name__}, shape {shape}.",
        }
        cls = AliasMeta(name or f"Vector[{dtype.__name__}, {shape}]", (Alias,), namespace)
        _cache[dtype, shape] = cls
    return cls


class Alias(Vector):
    """Parent of the alias classes. `T(x)` repeats a scalar, collects a list, or wraps a vector of fitting type."""

    __slots__ = ()

    def __init__(self, value: Any, shape: Any = None, dtype: type[Numeric] | None = None):
        self._refuse_other(shape, dtype)
        check_raw(value)
        dtype, shape = self.alias
        if isinstance(value, (list, tuple)):
            value = Vector.from_elements(value, dtype)
        if isinstance(value, Vector):
            self._wrap(raw_vector(value), shape, dtype)
        elif isinstance(value, ir.Value) and isinstance(value.type, ir.VectorType):
            self._wrap(value, shape, dtype)
        else:
            self._wrap(splat(value, dtype, numel_of(shape)), shape, dtype)
            return
        self._check(value)

    def _refuse_other(self, shape: Any, dtype: type[Numeric] | None) -> None:
        """Raise when a given shape or dtype is not the alias's own."""
        name, (own_dtype, own_shape) = type(self).__name__, self.alias
        if dtype is not None and dtype is not own_dtype:
            problem = f"{name} has dtype {own_dtype.__name__}, not {dtype.__name__}"
        elif shape is not None and canonical(shape) != own_shape:
            problem = f"{name} has shape {own_shape}, not {shape}"
        else:
            return
        raise VectorConstruction(problem=problem, advice="use fx.Vector(value, shape, dtype)")

    @classmethod
    def __get_ir_types__(cls) -> list[ir.Type]:
        return [cls.ir_type]

    @classmethod
    def __dsl_size_of__(cls) -> int:
        return stored_bytes(*cls.alias)

    @classmethod
    def __dsl_align_of__(cls) -> int:
        return max(1, cls.alias[0].width // 8)

    @classmethod
    def __peek_from_ptr__(cls, pointer: Any) -> Vector:
        from flydsl.expr.primitive import ptr_load

        stored_bytes(*cls.alias)
        return ptr_load(pointer, cls)


_FP8 = "Float8E5M2 Float8E4M3FN Float8E4M3FNUZ Float8E5M2FNUZ Float8E4M3B11FNUZ Float8E4M3 Float8E8M0FNU"
_BYTES = f"Int8 Uint8 Int16 Uint16 Float16 BFloat16 {_FP8}"
_LANES = {
    "x1": f"{_BYTES} Int32 Uint32 Float32 Int64 Uint64 Float64 Int128 Uint128",
    "x2 x4": f"{_BYTES} Int32 Uint32 Float32 Int64 Uint64 Float64 Int4 Float4E2M1FN",
    "x8": f"{_BYTES} Int32 Uint32 Float32 Int4 Float4E2M1FN",
    "x16": f"{_BYTES} Int4 Float4E2M1FN",
    "x32": "Int4 Float4E2M1FN",
}


def _named() -> dict[str, type[Vector]]:
    """Return the aliases which have public names."""
    pairs = [(name, int(lanes[1:])) for key, names in _LANES.items() for lanes in key.split() for name in names.split()]
    return {f"{name}x{n}": VectorAlias(CLASSES[name], n) for name, n in pairs}


ALIASES = _named()
