"""What is used where it has no meaning: functions of fx outside of kernels answer or give our errors, host code is refused what only kernels do."""

import warnings

import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.diag import FlyError

MODULES = {"fx": fx, **{f"fx.{n}": getattr(fx, n) for n in ("arith", "buffer_ops", "gpu", "math", "meta", "rocdl", "vector")}}
VALUES = [1, 1.5, fx.Int32(1), fx.Float32(1.0), fx.Float16(1.0), fx.Boolean(True), "x {}", fx.Float32, (1, 2), np.zeros(4, np.float32),
          fx.make_layout((4, 8), (1, 4)), fx.make_int_tuple((2, 3)), fx.UniversalCopy128b()]  # fmt: skip
OF_BINDINGS = "An MLIR function requires a"  # Context, Location, InsertionPoint


def argument_lists() -> list[tuple]:
    """Return arguments that some function takes: a value alone, repeated, beside ones, after a class."""
    lists: list[tuple] = [(), ("x {}", 1), ("x {} {}", fx.Int32(1), 2.0)]
    for value in VALUES:
        lists += [(value,), (value, value), (value, 1), (fx.Float32, value), (value, value, value)]
    return lists


def functions(module) -> list[tuple[str, object]]:
    """Return the functions and classes of a module that are ours."""
    named = [(n, getattr(module, n)) for n in dir(module) if not n.startswith("_")]
    return [(n, f) for n, f in named if callable(f) and (getattr(f, "__module__", "") or "").startswith("flydsl")]


def error_of(function, arguments: tuple) -> Exception | None:
    try:
        function(*arguments)
    except Exception as e:
        return e
    return None


@pytest.mark.parametrize("name", MODULES)
def test_outside_of_kernels(name) -> None:
    bare, ours = {}, 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for function_name, function in functions(MODULES[name]):
            for arguments in argument_lists():
                error = error_of(function, arguments)
                ours += isinstance(error, FlyError)
                if error is not None and not isinstance(error, FlyError) and OF_BINDINGS in str(error):
                    bare[function_name] = f"{arguments}: {error}"
    assert not bare, bare
    assert ours or name == "fx.meta"


@flyc.kernel
def keeps(o: fx.Tensor, n: fx.Int32):
    o[0] = n


@flyc.jit
def computes(o: fx.Tensor, n: fx.Int32, what: fx.Constexpr[str]):
    if fx.const_expr(what == "barrier"):
        fx.barrier()
    if fx.const_expr(what == "store"):
        o[0] = 1
    if fx.const_expr(what == "load"):
        n = o[0]
    if fx.const_expr(what == "function"):
        n = fx.Int32(fx.math.sqrt(fx.Float32(n)))
    keeps(o, n).launch(grid=1, block=1)


@pytest.mark.parametrize(("what", "line"), {"barrier": "fx.barrier()", "store": "o[0] = 1", "load": "n = o[0]", "function": "fx.math.sqrt"}.items())
def test_host_code_that_is_none(what, line):
    with pytest.raises(FlyError, match="is outside of every kernel, where a @flyc.jit function only computes") as caught:
        computes(np.zeros(4, np.int32), 3, what)
    error = caught.value
    assert error.code == "FLY_NOT_HOST_CODE" and line in error.span.text
    assert error.advice.startswith("move it into a @flyc.kernel function")
