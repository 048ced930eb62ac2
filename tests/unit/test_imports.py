"""Who may import whom: the layers of the package, bottom up; a module imports from its own layer's list and from lower ones only."""

import ast
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2] / "flydsl"

# layer -> layers it may import (beside itself)
LAYERS = {
    "diag": set(),
    "utils.env": {"diag"},
    "utils.logger": {"utils.env"},
    "utils.record": set(),
    "layout": {"arch"},
    "arch": {"diag"},
    "atoms": {"layout", "arch", "diag"},
    "ir": {"diag", "utils.env"},
    "dialects": {"ir", "atoms", "layout", "arch", "diag"},
    "expr": {"dialects", "ir", "atoms", "layout", "arch", "diag", "utils.env", "runtime.device", "frontend"},
    "frontend": {"expr", "dialects", "ir", "layout", "diag", "utils.env"},
    "passes": {"dialects", "ir", "atoms", "layout", "arch", "diag"},
    "pipeline": {"passes"},
    "targets.base": {"diag"},
    "targets.stored_text": set(),
    "targets.rocm": {"targets.base", "passes", "dialects", "ir", "atoms", "layout", "arch", "diag", "utils.env"},
    "targets.sim": {"targets.base", "targets.stored_text", "dialects", "ir", "atoms", "layout", "arch", "diag", "utils.env", "utils.logger"},
}
ANYWHERE = {"utils.record"}  # imports the standard library only
STANDARD_ONLY = ("diag", "utils.env", "utils.logger", "utils.record", "layout", "arch", "atoms")
BINDINGS = "torch_mlir"


def layer_of(module: str) -> str | None:
    """Return the layer of a module name below flydsl, or None for the top (compiler, runtime, tools, ...)."""
    for layer in sorted(LAYERS, key=len, reverse=True):
        if module == layer or module.startswith(layer + "."):
            return layer
    return None


def imports(path: pathlib.Path):
    """Yield (line, module) of every import statement outside TYPE_CHECKING blocks."""
    tree = ast.parse(path.read_text())
    exempt = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    package = ["flydsl", *path.relative_to(ROOT).with_suffix("").parts]
    if package[-1] == "__init__":
        package.pop()
    else:
        package = package[:-1]
    for node in ast.walk(tree):
        if id(node) in exempt:
            continue
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join(package[: len(package) - node.level + 1] + ([node.module] if node.module else []))
            yield node.lineno, base
            if base in ("flydsl", "flydsl.utils", "flydsl.targets", "flydsl.runtime"):
                for alias in node.names:
                    yield node.lineno, f"{base}.{alias.name}"


FILES = sorted(ROOT.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_down(path: pathlib.Path) -> None:
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    layer = layer_of(module)
    if layer is None:
        return
    allowed = LAYERS[layer] | {layer} | ANYWHERE
    for line, name in imports(path):
        if name.split(".")[0] == BINDINGS:
            assert layer == "ir", f"{path}:{line} imports the MLIR bindings; only flydsl/ir may"
        if not name.startswith("flydsl."):
            continue
        target = name.removeprefix("flydsl.")
        found = layer_of(target)
        if target in ("utils", "targets", "runtime"):
            continue
        if found is None:
            top = target.split(".")[0]
            ok = target in allowed or f"{top}" in allowed or ".".join(target.split(".")[:2]) in allowed
            assert ok, f"{path}:{line} ({layer}) imports flydsl.{target}, which is above it"
        else:
            assert found in allowed, f"{path}:{line} ({layer}) imports flydsl.{target} ({found})"


def test_layers_without_mlir_stay_so() -> None:
    for layer in STANDARD_ONLY:
        for path in FILES:
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            if layer_of(module) == layer:
                for line, name in imports(path):
                    assert not name.startswith(("flydsl.ir", "llvmlite", BINDINGS)), f"{path}:{line} imports {name}"


def test_only_ir_imports_bindings() -> None:
    for path in FILES:
        if path.relative_to(ROOT).parts[0] != "ir":
            for line, name in imports(path):
                assert name.split(".")[0] != BINDINGS, f"{path}:{line} imports {name}"
