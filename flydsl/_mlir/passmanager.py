"""`PassManager`: pipelines in text form, run on a module or op; passes of flydsl may be named among those of MLIR."""

from types import SimpleNamespace
from typing import Any

from flydsl.expr.rocdl.values import arch_name
from flydsl.ir import PassManager as _Bindings
from flydsl.ir import get_context, get_types, ir
from flydsl.passes.registry import PASSES, run_pass

__all__ = ["PassManager"]


class PassManager:
    """`PassManager.parse("builtin.module(fly-canonicalize,canonicalize)").run(module.operation)`."""

    def __init__(self, anchor: str = "builtin.module", context: Any = None):
        self._context = context or get_context()
        self._anchor = anchor
        self._passes: list[str] = []
        self._check_after_each = True

    @staticmethod
    def parse(pipeline: str, context: Any = None) -> "PassManager":
        """Return the pipeline that a text states.

        Raises   ValueError: a pass that does not exist, or a fault of the notation
        """
        anchor, passes = _split(pipeline)
        manager = PassManager(anchor, context)
        for name in passes:
            manager.add(name)
        return manager

    def add(self, pipeline: str) -> None:
        """Append a pass or a nested pipeline in text form."""
        if _name(pipeline) not in PASSES:
            _Bindings.parse(f"{self._anchor}({pipeline})", self._context)
        self._passes.append(pipeline)

    def enable_verifier(self, enable: bool) -> None:
        """Choose whether the module is verified after each pass."""
        self._check_after_each = enable

    def enable_ir_printing(self, *args: Any, **named: Any) -> None:
        """Accepted; stages are dumped with FLYDSL_DUMP_IR."""

    def run(self, operation: Any) -> None:
        """Run the passes on an op or module."""
        op = getattr(operation, "operation", operation)
        with self._context, ir.Location.unknown(self._context):
            for name in self._passes:
                self._run_one(name, op)

    def _run_one(self, name: str, op: ir.Operation) -> None:
        if _name(name) in PASSES:
            run_pass(
                _name(name),
                _Whole(operation=op, body=op.regions[0].blocks[0], context=op.context),
                get_types(),
                arch_name(),
            )
            if self._check_after_each:
                op.verify()
            return
        manager = _Bindings.parse(f"{self._anchor}({name})", self._context)
        manager.enable_verifier(self._check_after_each)
        manager.run(op)

    def __str__(self) -> str:
        return f"{self._anchor}({','.join(self._passes)})"


class _Whole(SimpleNamespace):
    """A module op seen as a module: the bindings have no way back from the one to the other."""


def _name(text: str) -> str:
    return text.partition("{")[0].strip()


def _split(pipeline: str) -> tuple[str, list[str]]:
    """Return the op that a pipeline is anchored on, and its top-level passes."""
    anchor, bracket, rest = pipeline.strip().partition("(")
    if not bracket or not rest.endswith(")"):
        raise ValueError(f"a pipeline is written `builtin.module(pass,pass)`, got `{pipeline}`")
    passes, depth, start = [], 0, 0
    text = rest[:-1]
    for i, c in enumerate(text):
        depth += (c in "({<[") - (c in ")}>]")
        if c == "," and depth == 0:
            passes.append(text[start:i])
            start = i + 1
    passes.append(text[start:])
    return anchor, [p.strip() for p in passes if p.strip()]
