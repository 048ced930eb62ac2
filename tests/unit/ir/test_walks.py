"""Walks over IR."""

import sys

import pytest

from flydsl.ir import ir, make_context, walks

TEXT = """
module {
  func.func @f(%c: i1) {
    scf.if %c {
      %0 = arith.constant 1 : i32
    }
    return
  }
}
"""


@pytest.fixture
def module():
    with make_context(), ir.Location.unknown():
        yield ir.Module.parse(TEXT).operation


def test_order(module):
    assert [op.name for op in walks.everything(module)] == ["arith.constant", "scf.yield", "scf.if", "func.return", "func.func", "builtin.module"]
    assert [op.name for op in walks.children(module)] == ["func.func"]
    assert list(walks.by_name(walks.collect(module, {"scf.if", "arith.constant"}))) == ["arith.constant", "scf.if"]


@pytest.mark.parametrize("walk", [walks.everything, walks.children])
def test_an_interrupted_walk_is_an_interrupt(module, walk):
    """Signals arrive where a Python function begins, so a trace function stands for Ctrl-C there."""

    def interrupt(frame, event, argument):
        if frame.f_code.co_name == "visit":
            raise KeyboardInterrupt

    before = sys.gettrace()
    sys.settrace(interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            walk(module)
    finally:
        sys.settrace(before)
