"""Carry: flatten and rebuild are inverse for every kind of value; what cannot be one value is refused."""

import dataclasses
from collections import namedtuple
from types import SimpleNamespace

import pytest

from flydsl.expr.numeric.classes import Boolean, Float32, Int32, Int64
from flydsl.expr.vector import Vector
from flydsl.frontend import carry
from flydsl.frontend.carry import Leaf, Mismatch, Same
from flydsl.frontend.site import UNBOUND
from flydsl.ir import Trace, emit, ir

Point = namedtuple("Point", "x y")


@dataclasses.dataclass
class Data:
    a: object
    b: object


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: object


class Doubled:
    """A user's class made of two IR values; its rebuild takes no exemplar."""

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __extract_to_ir_values__(self):
        return [*self.x.__extract_to_ir_values__(), *self.y.__extract_to_ir_values__()]

    @classmethod
    def __construct_from_ir_values__(cls, values):
        return cls(Int32(values[0]), Float32(values[1]))


@pytest.fixture
def run_time():
    """Values of a function under construction: i32, f32, i1, vector of 4 f32."""
    trace = Trace("gfx942")
    with trace:
        t = trace.types
        types = [t.i32, t.f32, t.i1, t.vector(4, t.f32)]
        ftype = ir.FunctionType.get(types, [])
        attrs = {"sym_name": ir.StringAttr.get("f"), "function_type": ir.TypeAttr.get(ftype)}
        op = emit("func.func", (), (), attrs, 1)
        entry = ir.Block.create_at_start(op.regions[0], types, [trace.unknown_loc] * 4)
        with trace.in_function(entry, "host", None):
            i, f, b, v = entry.arguments
            yield SimpleNamespace(i=Int32(i), f=Float32(f), b=Boolean(b), v=Vector(v), raw=i)


def crossed(value):
    """Return the value rebuilt from its IR values, and their number."""
    node = carry.plan(value)
    out = []
    node.flatten(value, out)
    it = iter(out)
    again = node.rebuild(it)
    assert next(it, None) is None
    second = []
    carry.plan(again).flatten(again, second)
    assert all(ir.Value.__eq__(x, y) for x, y in zip(second, out, strict=True))
    return again, len(out)


def test_every_kind_survives(run_time):
    r = run_time
    for value, count in [
        (r.i, 1), (r.f, 1), (r.b, 1), (r.v, 1), (r.raw, 1),
        ([r.i, r.f], 2), ((r.i, (r.f, [r.b])), 3), ({"k": r.i, "l": {"m": r.v}}, 2),
        (SimpleNamespace(p=r.i, q=r.f), 2), (Data(r.i, [r.f, r.b]), 3), (Frozen(r.i), 1), (Point(r.i, r.f), 2),
        (Doubled(r.i, r.f), 2), ([], 0), ({}, 0), (None, 0), ("text", 0), ([r.i, "text", None], 1),
    ]:  # fmt: skip
        again, n = crossed(value)
        assert n == count, value
        assert again.__class__ is value.__class__ or value is r.raw, value


def test_structure_survives(run_time):
    again, _ = crossed({"a": [run_time.i, (run_time.f, "s")], "b": Data(1, Point(2.0, True))})
    assert list(again) == ["a", "b"] and again["a"][1][1] == "s"
    assert isinstance(again["b"].b, Point)
    classes = [again["b"].a.__class__, again["b"].b.x.__class__, again["b"].b.y.__class__]
    assert classes == [Int32, Float32, Boolean]


def test_numbers_become_scalars(run_time):
    for number, cls in [(1, Int32), (-(2**31), Int32), (2**31, Int64), (1.5, Float32), (True, Boolean)]:
        again, n = crossed(number)
        assert again.__class__ is cls and n == 1


def test_a_number_takes_the_class_of_its_counterpart(run_time):
    node = carry.plan(Int64(5))
    out = []
    node.flatten(7, out)
    assert str(out[0].type) == "i64"
    with pytest.raises(Mismatch):
        carry.plan(Float32(0)).flatten(1, [])
    with pytest.raises(Mismatch):
        carry.plan(Int32(0)).flatten(True, [])
    with pytest.raises(Mismatch):
        carry.plan(Int32(0)).flatten(2**40, [])


def test_unify_keeps_what_is_the_same_static(run_time):
    r = run_time
    for a, b in [(1, 1), ("s", "s"), (r.i, r.i), (Int32(4), Int32(4)), (None, None), ((1, 2), (1, 2))]:
        node = carry.unify(a, b)
        parts = node.nodes if hasattr(node, "nodes") else [node]
        assert all(p.__class__ is Same for p in parts), (a, b)
    for a, b in [(1, 2), (r.i, 1), (1, r.i), (Int32(4), Int32(5)), (0.0, -0.0)]:
        assert carry.unify(a, b).__class__ is Leaf, (a, b)


def test_equal_static_scalars_inside_containers_are_the_same():
    a, b = (Int32(1), [Float32(2.0)]), (Int32(1), [Float32(2.0)])
    out: list = []
    carry.unify(a, b).flatten(b, out)
    assert out == []


def test_unify_refuses(run_time):
    r = run_time
    for a, b, text in [
        (1, 2.0, "expected dtype Int32, produced Float32"),
        (True, 1, "expected dtype Boolean, produced Int32"),
        ([r.i], [r.i, r.f], "expected list of length 1, got list of length 2"),
        ({"a": r.i}, {"b": r.i}, "expected dict with keys ['a'], got dict with keys ['b']"),
        ([r.i], (r.i,), "expected list of length 1, produced tuple of length 1"),
        ("a", "b", "expected str 'a', produced str 'b'"),
        (Point(1, 2), (1, 2), "expected Point of length 2, produced tuple of length 2"),
    ]:
        with pytest.raises(Mismatch, match="(?s)" + ".*".join(text.split("[")[:1])) as caught:
            carry.unify(a, b)
        assert caught.value.detail == text


def test_mismatch_says_where(run_time):
    node = carry.plan({"a": [Data(run_time.i, 1.0)]})
    with pytest.raises(Mismatch) as caught:
        node.flatten({"a": [Data(run_time.i, 1)]}, [])
    assert caught.value.path == "['a'][0].b"


def test_keys_in_another_order(run_time):
    r = run_time
    node = carry.plan({"a": r.i, "b": r.f})
    out = []
    node.flatten({"b": r.f, "a": r.i}, out)
    assert [str(v.type) for v in out] == ["i32", "f32"]


def test_vectors_keep_their_type(run_time):
    node = carry.plan(run_time.v)
    node.flatten(run_time.v, [])
    with pytest.raises(Mismatch):
        node.flatten(run_time.f, [])


def test_no_value_is_filled(run_time):
    node = carry.unify({"a": run_time.i, "b": (run_time.v, run_time.f)}, UNBOUND)
    out = []
    node.flatten(UNBOUND, out)
    assert [str(v.type) for v in out] == ["i32", "vector<4xf32>", "f32"]
