"""`T`: MLIR types by short names (`T.i32`, `T.f16x8`, `T.vec(n, elem)`), in the context of the calling thread."""

from typing import Any

from flydsl.expr.raw_ops import as_type
from flydsl.ir import get_types, ir
from flydsl.ir.trace import active

_SCALARS = ("index", "i1", "i8", "i16", "i32", "i64", "i128", "f16", "bf16", "f32", "f64")
_VECTORS = {
    "i8": (2, 4, 8, 16),
    "i16": (2, 4, 8),
    "i32": (2, 4),
    "i64": (2,),
    "f16": (2, 4, 8),
    "bf16": (2, 4, 8),
    "f32": (2, 4),
}


def _current_types():
    return get_types() if active.trace is None else active.trace.types


class Types:
    """Short names of types; each access returns the type of the current context."""

    __slots__ = ()

    def vec(self, n: int, elem: Any) -> ir.Type:
        """Return `vector<n x elem>`."""
        return _current_types().vector(n, as_type(elem))


def _scalar(name: str) -> property:
    return property(lambda self: _current_types().by_name[name], doc=f"The type {name}.")


def _vector(name: str, n: int) -> property:
    def get(self) -> ir.Type:
        types = _current_types()
        return types.vector(n, types.by_name[name])

    return property(get, doc=f"The type vector<{n}x{name}>.")


for _name in _SCALARS:
    setattr(Types, _name, _scalar(_name))
for _name, _counts in _VECTORS.items():
    for _n in _counts:
        setattr(Types, f"{_name}x{_n}", _vector(_name, _n))

T = Types()
