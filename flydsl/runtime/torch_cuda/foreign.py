"""GPU code that is not ours: what compiles or launches it says that there is no GPU, instead of failing deep inside.

Triton's launches are refused when its module is imported; building an extension for the GPU is refused at once.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from flydsl.diag import SimulatedCudaForeign

_EXTENSIONS = ("load", "load_inline", "CUDAExtension")
_COMPILES = "It compiles code for a GPU."


def refusals() -> list[tuple[Any, str, Any]]:
    """Return (object, attribute, stand-in) of torch's builders of GPU code."""
    import torch.utils.cpp_extension as cpp

    def guarded(name: str) -> Callable:
        original = getattr(cpp, name)

        def build(*args: Any, **kwargs: Any) -> Any:
            sources = [str(s) for s in (kwargs.get("sources") or (args[1] if len(args) > 1 else ()))]
            is_gpu_code = kwargs.get("cuda_sources") or any(s.endswith((".cu", ".hip")) for s in sources)
            if name == "CUDAExtension" or is_gpu_code:
                raise SimulatedCudaForeign(thing=f"`torch.utils.cpp_extension.{name}`", detail=_COMPILES)
            return original(*args, **kwargs)

        return build

    return [(cpp, name, guarded(name)) for name in _EXTENSIONS]


class TritonRefusal(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads `triton.runtime.jit` with launches that refuse."""

    name = "triton.runtime.jit"

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        if fullname != self.name:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is not None and spec.loader is not None:
            self.real, spec.loader = spec.loader, self
        return spec

    def create_module(self, spec: Any) -> ModuleType | None:
        return self.real.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self.real.exec_module(module)
        refuse_triton(module)


def refuse_triton(module: ModuleType) -> None:
    """Let every launch of a Triton kernel raise."""

    def run(self: Any, *args: Any, **kwargs: Any) -> None:
        name = getattr(getattr(self, "fn", None), "__name__", "?")
        raise SimulatedCudaForeign(thing=f"the Triton kernel `{name}`", detail="")

    module.JITFunction.run = run


def install_finder() -> TritonRefusal:
    """Put the finder first; Triton that is loaded already is changed at once."""
    finder = TritonRefusal()
    loaded = sys.modules.get(finder.name)
    if loaded is not None:
        refuse_triton(loaded)
    sys.meta_path.insert(0, finder)
    return finder
