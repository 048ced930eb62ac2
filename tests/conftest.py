"""What all tests share: isolated caches, hypothesis profiles, the oracle data, and why torch tests are skipped."""

import os
import pathlib

import pytest
from hypothesis import HealthCheck, settings

ROOT = pathlib.Path(__file__).resolve().parent.parent
os.environ.setdefault("FLYDSL_RUNTIME_CACHE_DIR", "")
for name in ("ARCH", "FLYDSL_GPU_ARCH", "COMPILE_ONLY", "FLYDSL_DUMP_IR", "FLYDSL_DEBUG"):
    os.environ.pop(name, None)

settings.register_profile("ci", max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("nightly", max_examples=10_000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def shared_folder() -> pathlib.Path | None:
    """Return the folder with oracle data and specifications: FLYDSL_SHARED, else `shared` beside the checkout; None if absent."""
    folder = pathlib.Path(os.environ.get("FLYDSL_SHARED") or ROOT.parent / "shared")
    return folder if (folder / "data").is_dir() else None


@pytest.fixture(scope="session")
def shared() -> pathlib.Path:
    """The oracle folder; tests that need it are skipped where it is absent."""
    folder = shared_folder()
    if folder is None:
        pytest.skip("no oracle data: set FLYDSL_SHARED to the folder that holds data/ and spec/")
    return folder


@pytest.fixture
def torch():
    """The torch module; tests that need it are skipped where it is not installed."""
    return pytest.importorskip("torch", reason="torch is not installed (pip install torch)")


ARCHS = ("gfx942", "gfx950", "gfx1250", "gfx1201", "gfx1100")


@pytest.fixture(params=ARCHS)
def arch(request, monkeypatch) -> str:
    """Each chip in turn, simulated and compiled for."""
    monkeypatch.setenv("FLYDSL_GPU_ARCH", request.param)
    return request.param


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="rewrite the files of tests/golden; review the diff")
