"""What rewriting found out about one `if`, `for` or `while` of the user's code, for use when it is traced."""

from dataclasses import dataclass, field
from typing import Any

from flydsl.diag import Span


class _Unbound:
    """Stands for a variable that has no value."""

    def __repr__(self) -> str:
        return "UNBOUND"


UNBOUND = _Unbound()


@dataclass(eq=False)
class Site:
    """One construct. Names are in the order in which the code first binds them.

    `live` are names whose value is read after the construct (for a loop: also in a later iteration); `checked`
    are names that are bound and never read, whose types must agree all the same; the other names are
    temporaries and do not leave. `changes` are places changed in place: (base name, kind, key), see `Names`. `watch` are
    names through which the construct can change objects; those that are no variables are looked up in `globals`.
    """

    construct: str
    span: Span
    names: tuple[str, ...]
    live: frozenset[str]
    checked: frozenset[str]
    changes: tuple[tuple, ...] = ()
    handed_on: tuple[str, ...] = ()
    nested_changes: tuple[tuple, ...] = ()  # loops: places that nested functions named in the body change
    watch: tuple[str, ...] = ()
    globals: dict = field(default_factory=dict, repr=False)
    assigned_globals: tuple[str, ...] = ()  # `global x; x = ...` in the construct itself
    missed: set = field(default_factory=set)  # loops: (root name, key) of places that turned out to change
    spans: dict[str, Span] = field(default_factory=dict)
    else_spans: dict[str, Span] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    stop: str | None = None
    resets: tuple[str, ...] = ()  # flags that are false at the start of an iteration
    has_else: bool = False
    has_tuple_target: bool = False
    effects: tuple[tuple[str, Span], ...] = ()  # `if`: Python calls in its branches that show outside
    is_expression: bool = False  # a variable bound in one side only keeps that value, as `:=` in a condition does
    carried: tuple[str, ...] = ()  # loops: names that `enter` binds

    def lookup(self, name: str, variables: dict) -> Any:
        """Return the value of a variable or global, UNBOUND where there is none."""
        value = variables.get(name, UNBOUND)
        return self.globals.get(name, UNBOUND) if value is UNBOUND else value

    def pick(self, variables: dict) -> list:
        """Return the values of the names in a frame, UNBOUND where there is none."""
        get = variables.get
        return [get(n, UNBOUND) for n in self.names]


def is_internal_name(name: str) -> bool:
    """Return whether rewriting made the name up."""
    return name.startswith("_fly_")
