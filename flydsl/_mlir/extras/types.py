"""MLIR types as functions: `T.i32()`, `T.vector(4, T.f32())`."""

from typing import Any

from flydsl.ir import get_types, ir

VectorType = ir.VectorType
_SHORT = {"f8E5M2", "f8E4M3FN", "f8E4M3FNUZ", "f8E5M2FNUZ", "f6E2M3FN", "f6E3M2FN", "f4E2M1FN", "f8E8M0FNU"}


def i(width: int) -> ir.Type:
    """Return the signless integer of that many bits."""
    return ir.IntegerType.get_signless(width, get_types().i1.context)


def bool() -> ir.Type:
    """Return i1."""
    return get_types().i1


def index() -> ir.Type:
    """Return the index type."""
    return get_types().index


def i1() -> ir.Type:
    """Return i1."""
    return get_types().i1


def i4() -> ir.Type:
    """Return i4."""
    return get_types().i4


def i8() -> ir.Type:
    """Return i8."""
    return get_types().i8


def i16() -> ir.Type:
    """Return i16."""
    return get_types().i16


def i32() -> ir.Type:
    """Return i32."""
    return get_types().i32


def i64() -> ir.Type:
    """Return i64."""
    return get_types().i64


def i128() -> ir.Type:
    """Return i128."""
    return get_types().i128


def f16() -> ir.Type:
    """Return f16."""
    return get_types().f16


def bf16() -> ir.Type:
    """Return bf16."""
    return get_types().bf16


def f32() -> ir.Type:
    """Return f32."""
    return get_types().f32


def f64() -> ir.Type:
    """Return f64."""
    return get_types().f64


def vector(*args: Any, **named: Any) -> ir.Type:
    """Return `vector<2x4xf32>` for `vector(2, 4, f32)` or `vector([2, 4], f32)`."""
    *shape, element = args
    if len(shape) == 1 and isinstance(shape[0], (list, tuple)):
        shape = list(shape[0])
    with element.context, ir.Location.unknown():
        return ir.VectorType.get(shape, _type(element), **named)


def memref(*args: Any, memory_space: Any = None, layout: Any = None) -> ir.Type:
    """Return `memref<64xf32, space>` for `memref(64, f32, memory_space=space)`; the space may be a number."""
    *shape, element = args
    if len(shape) == 1 and isinstance(shape[0], (list, tuple)):
        shape = list(shape[0])
    if isinstance(memory_space, int):
        memory_space = ir.IntegerAttr.get(get_types().i64, memory_space)
    with element.context, ir.Location.unknown():
        return ir.MemRefType.get(shape, _type(element), layout=layout, memory_space=memory_space)


def _type(x: Any) -> ir.Type:
    return x if isinstance(x, ir.Type) else x.ir_type


def __getattr__(name: str) -> Any:
    if name in _SHORT:
        return lambda: get_types().by_name[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
