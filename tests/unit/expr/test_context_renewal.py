"""A thread's MLIR context is dropped when it has held many modules, but never under a trace."""

from tracing_env import traced

from flydsl.expr.numeric import Int32
from flydsl.ir import Trace, get_context, get_types
from flydsl.ir import context as contexts


def test_a_full_context_stays_while_it_is_traced_in(monkeypatch):
    monkeypatch.setattr(contexts, "_RENEW_AFTER", 3)
    seen = []
    for _ in range(8):
        with traced(Int32) as body:
            assert get_context() == body.trace.context
            assert get_types() is body.trace.types
            body.args[0] + 1
            with Trace("gfx942") as inner:
                assert inner.context == body.trace.context
            body.verify()
            seen.append(body.trace.context)
    assert len({id(c) for c in seen}) > 1
