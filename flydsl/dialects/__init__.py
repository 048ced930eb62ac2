"""The Fly dialects, defined in Python: importing this package has every new MLIR context load them."""

from flydsl.dialects import atom_values  # noqa: F401  (gives atoms their types)
from flydsl.dialects.fly import Fly
from flydsl.dialects.fly.types import is_fly_type, type_of, value_of
from flydsl.dialects.fly_rocdl import FlyRocdl
from flydsl.ir import ir, register_loader

__all__ = ["is_fly_type", "load_dialects", "type_of", "value_of"]


def load_dialects(context: ir.Context) -> None:
    """Load the Fly dialects into `context`."""
    with context, ir.Location.unknown():
        Fly.load()
        FlyRocdl.load()


register_loader(load_dialects)
