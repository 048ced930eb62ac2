"""A value kept beyond its kernel: every use in another kernel, or outside of all, is our error, where the bindings would read freed memory."""

import gc
from types import SimpleNamespace

import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl._mlir.dialects import arith, vector
from flydsl.diag import FlyError
from flydsl.expr.type_shortcuts import T
from flydsl.utils import env

kept = SimpleNamespace()


@flyc.kernel
def keeping(o: fx.Tensor, n: fx.Int32):
    kept.v = fx.thread_idx.x + 1
    kept.x = kept.v.ir_value()
    kept.vec = fx.Vector.filled(4, n, fx.Int32)
    kept.rvec = kept.vec.ir_value()
    kept.tuple = fx.make_int_tuple((n, 4))
    kept.layout = fx.make_layout((n, 4), (4, 1))
    kept.t = o
    kept.p = fx.get_iter(o)
    kept.frag = fx.make_rmem_tensor((4, 1), fx.Int32)
    o[0] = 1


@flyc.jit
def keep(o: fx.Tensor, n: fx.Int32):
    keeping(o, n).launch(grid=1, block=1)


@flyc.kernel
def using(o: fx.Tensor, text: fx.Constexpr[str]):
    exec(text, {"o": o, "fx": fx, "T": T, "arith": arith, "vector": vector, **vars(kept)})


@flyc.jit
def use(o: fx.Tensor, text: fx.Constexpr[str]):
    using(o, text).launch(grid=1, block=1)


@pytest.fixture(autouse=True, scope="module")
def kept_values():
    with env.override(FLYDSL_RUNTIME_ENABLE_CACHE="0"):  # the kernel that keeps values has to be traced
        keep(np.zeros(4, np.int32), 3)
        gc.collect()
        yield
    vars(kept).clear()


IN_ANOTHER_KERNEL = """
o[x]
o[x] = 1
o[0] = x
o[v] = 1
fx.printf("{}", x)
fx.make_layout((x, 4), (4, 1))
fx.make_int_tuple((x, 4))
fx.make_rmem_tensor((x,), fx.Int32)
fx.get_iter(o) + x
fx.get_iter(o)[x]
fx.ptr_store(x, fx.get_iter(o))
fx.crd2idx((x,), fx.make_layout((8,), (1,)))
fx.slice(o, (x,))
fx.Int32(x)
fx.Float32(v)
fx.Vector(rvec)
fx.max(v, 1)
fx.math.absi(v)
fx.arith.addi(x, x)
fx.arith.select(x, x, x)
fx.arith.ArithValue(x)
arith.addi(x, x)
vector.extract(rvec, [], [0])
fx.rocdl.readfirstlane(T.i32, x)
fx.rocdl.ds_bpermute(T.i32, x, x)
fx.copy(fx.make_copy_atom(fx.UniversalCopy(32), fx.Int32), frag, frag)
fx.make_view(p, fx.make_layout(4, 1))
fx.composition(layout, layout)
fx.int_tuple_add(tuple, tuple)
fx.get(tuple, 0)
fx.size(layout)
x + x
x.with_signedness(True) + 1
x.to(fx.Float32)
x.shuffle_xor(1, 64)
-x
v + 1
~v
abs(v)
v == v
v.to(fx.Float32)
v.bitcast(fx.Float32)
v.select(1, 2)
vec[0]
vec + vec
rvec[0]
rvec + rvec
tuple.to_py_value()
layout(v)
t[0]
p[0]
p + 1
frag[0]
frag.load()
""".strip().splitlines()


@pytest.mark.parametrize("text", IN_ANOTHER_KERNEL)
def test_use_in_another_kernel(text):
    with pytest.raises(FlyError) as caught:
        use(np.zeros(4, np.int32), text)
    error = caught.value
    assert error.code == "FLY_STALE_VALUE"
    assert "is used outside the function that it belongs to" in error.message
    assert error.advice == "pass it as a kernel argument, or compute it again inside this function"
    assert (error.span.file, error.span.line) == ("<string>", 1)


AFTER_TRACING = """
v.value
v.ir_value()
v + 1
vec.value
vec + vec
x.type
x.owner
x.uses
x.location
x.get_name()
x.dump()
x.maybe_downcast()
x.set_type(None)
x.replace_all_uses_with(x)
x + 1
rvec.type
t.value
p.value
tuple.value
tuple.to_py_value()
layout.value
t[0]
""".strip().splitlines()


@pytest.mark.parametrize("text", AFTER_TRACING)
def test_use_after_tracing(text):
    with pytest.raises(FlyError) as caught:
        eval(text, {"fx": fx, **vars(kept)})
    assert caught.value.code in ("FLY_NOT_TRACING", "FLY_STALE_VALUE")
    assert caught.value.advice and caught.value.reason


def test_looking_at_them_is_harmless():
    for value in vars(kept).values():
        assert str(value) and repr(value) and isinstance(hash(value), int)
