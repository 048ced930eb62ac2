"""The rewriter works on syntax: it knows no DSL type, and imports nothing that does. Rewriting is fast."""

import ast
import importlib.util
import sys
import time
from pathlib import Path

import pytest

from flydsl.frontend import functions

ROOT = Path(__file__).parents[3]
FILES = sorted((ROOT / "flydsl/frontend/rewrite").glob("*.py"))
PLAIN_TYPES = {"int", "str", "list", "tuple", "dict", "bool", "ModuleType"}


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_no_dsl_types(file):
    tree = ast.parse(file.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            allowed = ("flydsl.diag", "flydsl.frontend.rewrite", "flydsl.frontend.site", "flydsl.utils.record")
            assert not node.module.startswith("flydsl") or node.module.startswith(allowed), ast.unparse(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "issubclass"):
            for name in _types(node.args[1]):
                assert name.startswith(("ast.", "_")) or name in PLAIN_TYPES, ast.unparse(node)


def _types(node):
    return [ast.unparse(n) for n in (node.elts if isinstance(node, ast.Tuple) else [node])]


@pytest.mark.parametrize("file", [f for f in FILES if f.stem.endswith("_") or f.stem in ("boolop", "compare", "ifexp")])
def test_each_construct_states_both_behaviours(file):
    doc = ast.get_docstring(ast.parse(file.read_text()))
    if file.stem != "__init__":
        assert "\nStatic " in doc and "\nDynamic" in doc


def test_rewriting_the_softmax_example_is_fast():
    """The budget of rewriting and tracing is 40 ms; rewriting takes 4 to 14 ms of it, by the speed of the machine."""
    spec = importlib.util.spec_from_file_location("softmax_example", ROOT / "examples/03_softmax.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    found = [getattr(v, "func", v) for v in vars(module).values() if getattr(v, "__module__", "") == spec.name]
    times = []
    for _ in range(5):
        start = time.process_time()
        for fn in found:
            functions._make(fn, keep_static=False, kernel=False, guarded=False)
        times.append(time.process_time() - start)
    assert len(found) > 3 and min(times) < 0.04
