"""Processes that a program under `flydsl sim` starts see the simulated GPUs, too.

`children_see(devices)` puts a folder with a `sitecustomize.py` first on PYTHONPATH. In each Python process that
starts with that environment it runs this file, which costs nothing until torch is imported: then torch's `cuda` device
is replaced as in the parent. Processes made by a fork have everything already. Standard library only.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

_SITE = """
import runpy
runpy.run_path({file!r})["start"]({folder!r}, {root!r}, {devices})
"""


@contextlib.contextmanager
def children_see(devices: int) -> Iterator[None]:
    """Let Python processes that are started inside the block have `devices` simulated GPUs."""
    before = os.environ.get("PYTHONPATH")
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    with tempfile.TemporaryDirectory(prefix="flydsl_sim_") as folder:
        with open(os.path.join(folder, "sitecustomize.py"), "w") as f:
            f.write(_SITE.format(file=os.path.abspath(__file__), folder=folder, root=root, devices=devices))
        os.environ["PYTHONPATH"] = os.pathsep.join([folder, *([before] if before else [])])
        try:
            yield
        finally:
            if before is None:
                os.environ.pop("PYTHONPATH", None)
            else:
                os.environ["PYTHONPATH"] = before


def start(folder: str, root: str, devices: int) -> None:
    """Prepare this process: the user's own sitecustomize runs, and torch's import will be noticed."""
    places = [p for p in sys.path if p != folder]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", places)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    sys.meta_path.insert(0, TorchImport(root, devices))


class TorchImport(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports torch as usual and then simulates its GPUs, until the process ends."""

    def __init__(self, root: str, devices: int):
        self.root, self.devices = root, devices

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        if fullname != "torch" or self not in sys.meta_path:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is not None and spec.loader is not None:
            self.real, spec.loader = spec.loader, self
        return spec

    def create_module(self, spec: Any) -> ModuleType | None:
        return self.real.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__.loader = module.__loader__ = self.real
        self.real.exec_module(module)
        sys.meta_path.remove(self)
        if importlib.util.find_spec("flydsl") is None:
            sys.path.append(self.root)
        from flydsl.tools.sim_command import stay_simulated

        stay_simulated(self.devices)


def forget() -> None:
    """Leave torch alone in this process: `flydsl sim` inside `flydsl sim` simulates by itself."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != TorchImport.__name__]
