"""Dialects of MLIR and the Fly dialects, one module each; further upstream dialects are found by name."""

import importlib
from types import ModuleType
from typing import Any

from flydsl._mlir._expose import exposed


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return importlib.import_module(f"{__name__}.{name}")
    except ModuleNotFoundError:
        return _upstream(name)


def _upstream(name: str) -> ModuleType:
    from flydsl.ir import dialect

    try:
        dialect(name)
    except ModuleNotFoundError:
        raise AttributeError(f"module {__name__!r} has no dialect {name!r}") from None
    module = ModuleType(f"{__name__}.{name}")
    module.__getattr__, module.__dir__ = exposed(name, module.__name__)
    globals()[name] = module
    return module
