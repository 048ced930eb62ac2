"""`record` gives what `dataclass(frozen=True)` gives; that is the judge here."""

import copy
import inspect
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, replace

import pytest

from flydsl.utils.record import is_frozen, record


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


def _signatures(decorate) -> list:
    @decorate
    class Rich:
        """Defaults of all kinds, a keyword-only field and a hook."""

        a: int
        b: list = field(default_factory=list)
        c: int = field(default=3, kw_only=True)

        def __post_init__(self):
            self.b.append(self.a)

    outcomes: list = [list(inspect.signature(Rich).parameters), Rich(1), Rich(1, [5], c=7), Rich(2).b is not Rich(2).b]
    for arguments, keywords in (((), {}), ((1, [], 3), {}), ((1,), {"d": 4}), ((1,), {"a": 1})):
        with pytest.raises(TypeError) as error:
            Rich(*arguments, **keywords)
        outcomes.append(str(error.value).partition("__init__")[2])
    return [str(o) for o in outcomes]


def test_arguments_are_those_of_a_dataclass():
    assert _signatures(record) == _signatures(dataclass(frozen=True))


def test_copies_and_pickles():
    for again in (copy.copy(KEPT), copy.deepcopy(KEPT), pickle.loads(pickle.dumps(KEPT))):
        assert again == KEPT and again is not KEPT
    with pytest.raises(FrozenInstanceError):
        del copy.copy(KEPT).a


def test_frozen_ones_are_told_apart():
    assert is_frozen(_Kept) and is_frozen(dataclass(frozen=True)(type("A", (), {})))
    assert not is_frozen(dataclass(type("B", (), {})))


@record
class _Kept:
    """At module level, as pickles need it."""

    a: int
    b: tuple = ()


KEPT = _Kept(1, (2,))
