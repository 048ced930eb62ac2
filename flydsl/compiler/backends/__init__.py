"""Compile backends by name. `FLYDSL_COMPILE_BACKEND` names the one in force; ours is `rocm`.

    class Mine(RocmBackend):
        def pipeline_fragments(self, *, compile_hints):
            return [*super().pipeline_fragments(compile_hints=compile_hints), "loop-invariant-code-motion"]

    register_backend("mine", Mine)
    register_compile_runtime_mapping("mine", "rocm")  # flydsl.runtime.device_runtime

Functions that were compiled before a backend was replaced keep their code.
"""

from __future__ import annotations

from collections.abc import Sequence

from flydsl.compiler.backends.base import BaseBackend, GPUTarget
from flydsl.compiler.backends.rocm import RocmBackend
from flydsl.diag import BackendCode, BackendName, PassName, Span
from flydsl.ir import ir
from flydsl.ir.trace import active
from flydsl.passes.registry import PASSES, UPSTREAM, parse_upstream
from flydsl.runtime.device_runtime import ensure_compile_runtime_pairing_from_env
from flydsl.utils import env

_DEFAULT = "rocm"
_backends: dict[str, type[BaseBackend]] = {_DEFAULT: RocmBackend}


def register_backend(name: str, cls: type[BaseBackend], *, force: bool = False) -> None:
    """Register a backend class under a name.

    Raises   ValueError: the name is empty, or has a class and `force` is not given; TypeError: `cls` is no BaseBackend
    """
    key = _key(name)
    if not key:
        raise ValueError("a compile backend needs a name")
    if not isinstance(cls, type) or not issubclass(cls, BaseBackend):
        raise TypeError(f"a compile backend is a class derived from BaseBackend, got {cls!r}")
    if key in _backends and not force:
        raise ValueError(f"the compile backend {key!r} has a class already: {_backends[key].__name__}; pass force=True to replace it")
    _backends[key] = cls


def compile_backend_name() -> str:
    """Return the name of the backend in force."""
    return _key(env.compile.backend) or _DEFAULT


def get_backend(name: str | None = None, *, arch: str = "") -> BaseBackend:
    """Return a backend, by default the one in force, for a chip, by default the one that it detects.

    Raises   BackendName: there is none of that name; ValueError: it does not support the chip
    """
    key = _key(name) if name else compile_backend_name()
    cls = _backends.get(key)
    if cls is None:
        raise BackendName(name=key, known=", ".join(sorted(_backends)))
    return cls(cls.make_target(arch) if arch else cls.detect_target())


def current_target() -> GPUTarget:
    """Return the target that is compiled for: inside a traced function its own, else that of the backend in force."""
    return get_backend(arch=active.trace.arch if active.trace is not None else "").target


def compiling_backend(arch: str) -> BaseBackend:
    """Return the backend in force for a compile.

    Raises   BackendName, BackendCode; RuntimeError: the runtime in force does not run its code
    """
    backend = get_backend(arch=arch)
    name = compile_backend_name()
    if backend.target.backend != _DEFAULT:
        raise BackendCode(name=name, family=backend.target.backend)
    if name != _DEFAULT:
        ensure_compile_runtime_pairing_from_env(name)
    return backend


def check_passes(backend: BaseBackend, passes: Sequence[str], context: ir.Context) -> None:
    """Refuse the pass list of a user's backend if a name in it is unknown, before a pass runs. Ours has none.

    Raises   PassName, at the backend's `pipeline_fragments`
    """
    if type(backend) is RocmBackend:
        return
    for name in passes:
        if name in PASSES:
            continue
        try:
            parse_upstream(name, context)
        except PassName as e:
            code = type(backend).pipeline_fragments.__code__
            at = Span(code.co_filename, code.co_firstlineno, function=code.co_name)
            owner = f"the compile backend `{compile_backend_name()}` ({type(backend).__qualname__}) names"
            raise PassName(name=name, said=e.said, known=(*PASSES, *UPSTREAM), owner=owner, at=at) from None


def backend_key(arch: str) -> tuple[tuple[str, str], ...]:
    """Return what the backend in force adds to cache keys: nothing where it is ours, whose sources are in the key."""
    name = compile_backend_name()
    if _backends.get(name) is RocmBackend:
        return ()
    return (("compile backend", f"{name} {get_backend(arch=arch).hash()}"),)


def _key(name: str) -> str:
    return name.strip().lower()


__all__ = [
    "BaseBackend",
    "GPUTarget",
    "RocmBackend",
    "compile_backend_name",
    "current_target",
    "get_backend",
    "register_backend",
]
