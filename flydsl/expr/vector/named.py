"""Named operations of vectors kept for older kernels: `addf maximumf exp2 extf ...`, as methods of Vector."""

from typing import Any

from flydsl.expr.vector.core import Vector


def _arith(name: str):
    def method(self: Vector, other: Any, *, fastmath: Any = None) -> Vector:
        from flydsl.expr import arith

        return getattr(arith, name)(self, other, fastmath=fastmath)

    return method


def _math(name: str):
    def method(self: Vector, *, fastmath: Any = None) -> Vector:
        from flydsl.expr import math

        return getattr(math, name)(self, fastmath=fastmath)

    return method


def _addf(self: Vector, other: Any, *, fastmath: Any = None) -> Vector:
    """Return the sum, with its own fast-math flags."""
    from flydsl.expr.fastmath import fastmath as scope

    if fastmath is None:
        return self + other
    with scope(fastmath):
        return self + other


def _shrui(self: Vector, amount: Any) -> Vector:
    """Return the elements shifted right, zeros coming in."""
    from flydsl.expr import arith

    return arith.shrui(self, amount)


def _cast(name: str):
    def method(self: Vector, target_type: Any, **keywords: Any) -> Any:
        from flydsl.expr import arith

        return Vector(getattr(arith, name)(target_type, self, **keywords))

    return method


def _shuffle_xor(self: Vector, offset: Any, width: Any) -> Vector:
    """Return each element of the lane whose number differs by XOR `offset`."""
    elements = [self[i].shuffle_xor(offset, width) for i in range(self.numel)]
    return Vector.from_elements(elements, self.dtype).reshape(self.shape)


Vector.addf = _addf
Vector.shrui = _shrui
Vector.shuffle_xor = _shuffle_xor
for _name in ("maximumf", "minimumf"):
    setattr(Vector, _name, _arith(_name))
for _name in ("exp2", "rsqrt"):
    setattr(Vector, _name, _math(_name))
for _name in ("extf", "truncf", "extsi", "extui", "trunci", "index_cast"):
    setattr(Vector, _name, _cast(_name))
