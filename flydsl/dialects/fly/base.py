"""The dialect object, and what the ops have in common: memory effects and verification."""

from flydsl.ir import PythonDialect, ext, ir


class Fly(PythonDialect, name="fly"):
    """Layout algebra on run-time values, views, register memory, atom calls.

    Op names of a Python-defined dialect hold no dots: `fly.memref_load` is printed and read as the reference's `fly.memref.load`.
    """


def _effects(*kinds: str) -> type:
    """Return a trait that gives an op the named memory effects ("read", "write", "allocate") on the default resource."""

    class Effects(ir.MemoryEffectsOpInterface):
        @staticmethod
        def get_effects(op, effects):
            for kind in kinds:
                effects.append(getattr(ir.MemoryEffect, kind.capitalize()))

    class Trait:
        @staticmethod
        def attach(op_name: str) -> None:
            Effects.attach(op_name)

    return Trait


Pure = ext.Pure
Reads = _effects("read")
Writes = _effects("write")
ReadsWrites = _effects("read", "write")
Allocates = _effects("allocate")
