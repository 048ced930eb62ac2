"""mypy plugin: `Array[dtype, size]` in an annotation may have a computed size. Use with `plugins = flydsl.tools.mypy_plugin`.

Python's typing knows no values in types, so mypy refuses `Array[fx.Float32, 4 * N]`; here every such annotation is an `Array`. In expressions
nothing is needed, and pyright needs none of it.
"""

from __future__ import annotations

from collections.abc import Callable

from mypy.plugin import AnalyzeTypeContext, Plugin
from mypy.types import Type

ARRAY = "flydsl.expr.arrays.Array"


class FlyPlugin(Plugin):
    """Gives annotations with values among their arguments the class without them."""

    def get_type_analyze_hook(self, fullname: str) -> Callable[[AnalyzeTypeContext], Type] | None:
        return _array if fullname == ARRAY else None


def _array(context: AnalyzeTypeContext) -> Type:
    return context.api.named_type(ARRAY, [])


def plugin(version: str) -> type[Plugin]:
    """Entry point of mypy."""
    return FlyPlugin
