"""What README.md and docs/ say of files, dialects, locations and commands is so; the snippet of docs/autotune.md runs."""

import os
import pathlib
import re
import subprocess
import sys
import textwrap

import pytest

import flydsl.dialects  # noqa: F401  (contexts load the Fly dialects)
from flydsl.ir import get_context, ir, parse_module

ROOT = pathlib.Path(__file__).resolve().parent.parent
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()
STAGE = re.search(r'Program\(open\("([^"]+)"\)', ARCHITECTURE)[1]


@pytest.fixture(scope="module", params=["01_vector_add", "05_rowwise_argmax", "07_preshuffle_gemm"])
def lowered(request, tmp_path_factory) -> str:
    """The text of the stage that docs/architecture.md names, of one example."""
    folder = tmp_path_factory.mktemp("dump")
    env = {**os.environ, "FLYDSL_DUMP_IR": "1", "FLYDSL_DUMP_DIR": str(folder), "ARCH": "gfx942", "COMPILE_ONLY": "1"}
    done = subprocess.run([sys.executable, str(ROOT / "examples" / f"{request.param}.py")], env=env, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    return next(folder.glob(f"*/{STAGE}")).read_text()


def operations(text: str) -> list[tuple[str, str]]:
    """Return name and location of every op."""
    found: list[tuple[str, str]] = []
    module = parse_module(text, get_context())
    module.operation.walk(lambda op: found.append((op.name, str(op.location))) or ir.WalkResult.ADVANCE)
    assert len(found) > 50
    return found


def test_the_lowered_ir_has_the_dialects_and_locations_that_the_documentation_names(lowered):
    stated = set(re.search(r"Upstream dialects only: ([\w, ]+)\.", ARCHITECTURE)[1].split(", "))
    ops = operations(lowered)
    assert {name.partition(".")[0] for name, _ in ops} <= stated
    unplaced = {name for name, location in ops if "unknown" in location}
    assert unplaced <= {"builtin.module", "gpu.module", "arith.constant"} and "location of the user's line" in ARCHITECTURE


def test_autotune_snippet_runs(tmp_path):
    text = (ROOT / "docs" / "autotune.md").read_text()
    snippet = textwrap.dedent(re.search(r"^(?:    .*\n|\n)+", text.partition("# Autotuning\n")[2], re.MULTILINE)[0])
    path = tmp_path / "snippet.py"
    path.write_text(snippet + "\nassert (y == 2 * x).all()\nprint(scale.resolve_config(x, y, 1000))\n")
    env = {**os.environ, "FLYDSL_AUTOTUNE_CACHE_DIR": str(tmp_path / "cache"), "ARCH": "gfx942"}
    done = subprocess.run([sys.executable, str(path)], env=env, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0 and "Config(block=" in done.stdout, done.stderr


def test_nothing_asks_to_install_flydsl_from_the_index():
    """There it is the reference's wheel; extras are installed from the checkout."""
    files = [ROOT / "README.md", ROOT / "dev.py", *(ROOT / "docs").glob("*.md"), *(ROOT / "flydsl").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    asking = re.compile(r"pip install (?:-q )?['\"]?" + "flydsl")
    assert [str(f) for f in files if asking.search(f.read_text())] == []
    readme = (ROOT / "README.md").read_text()
    assert readme.index(". .venv/bin/activate") < readme.index("* `flydsl compile") and "pip install -e '.[torch]'" in readme
