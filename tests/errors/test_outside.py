"""Every public function of fx, called outside of kernels, answers or gives an error of ours: never that of the MLIR bindings."""

import warnings

import numpy as np
import pytest

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
