"""The `fly` dialect: layouts, views, pointers, register memory and atom calls. One class per op."""

from flydsl.dialects.fly import algebra, atom_calls, memory, types  # noqa: F401  (they add their ops to Fly)
from flydsl.dialects.fly.base import Fly

__all__ = ["Fly"]
