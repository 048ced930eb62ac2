"""`record` gives what `dataclass(frozen=True)` gives; that is the judge here."""

from dataclasses import FrozenInstanceError, dataclass, field, replace

import pytest

from flydsl.utils.record import record


def _pair(decorate):
    @decorate
    class Base:
        """One field."""

        a: int

    @decorate
    class Derived(Base):
        """With defaults, and a field that does not count."""

        b: tuple = ()
        note: str = field(default="", compare=False, repr=False)

        @property
        def double(self) -> int:
            return 2 * self.a

    @decorate
    class Own(Base):
        """Has its own text and order of equality."""

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 7

    @decorate
    class Empty:
        """No fields."""

    return Base, Derived, Own, Empty


def _facts(classes) -> list:
    base, derived, own, empty = classes
    x, y = derived(1, (2,), "x"), derived(1, (2,), "y")
    return [
        x == y,
        hash(x) == hash(y),
        {x: 5}[y],
        x == derived(2, (2,)),
        base(1) == derived(1),
        base(1) != base(2),
        repr(x).rpartition(".")[2],
        repr(own(3)),
        own(3) == 0,
        hash(own(3)),
        empty() == empty(),
        hash(empty()) == hash(empty()),
        repr(empty()).rpartition(".")[2],
        replace(x, a=4).double,
        x.__eq__(3) is NotImplemented,
    ]


def test_it_is_a_frozen_dataclass():
    assert _facts(_pair(record)) == _facts(_pair(dataclass(frozen=True)))


def test_fields_do_not_change():
    base, *_ = _pair(record)
    with pytest.raises(FrozenInstanceError):
        base(1).a = 2


def test_unhashable_fields_are_refused_by_hash():
    base, *_ = _pair(record)
    with pytest.raises(TypeError, match="unhashable"):
        hash(base([1]))
