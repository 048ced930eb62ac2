"""The registry that pairs a compile backend with the runtime kind that its kernels run on, under the reference's names.

Launches do not go through it: `flydsl.runtime.kinds` says where they run.
"""

from __future__ import annotations

from flydsl.utils import env

COMPILE_BACKEND_TO_RUNTIME_KIND = {"rocm": "rocm"}
_OUR_KINDS = ("auto", "sim", "null")  # run what the rocm backend compiles
_EXTRA_MAPPINGS: dict[str, str] = {}
_RUNTIMES: dict[str, type[DeviceRuntime]] = {}
_runtime_cls_override: type[DeviceRuntime] | None = None
_instance: DeviceRuntime | None = None


class DeviceRuntime:
    """The devices of one runtime kind."""

    kind = ""

    def device_count(self) -> int:
        """Return how many devices there are."""
        raise NotImplementedError

    def current_device_id(self) -> int:
        """Return the number of the device that launches go to."""
        raise NotImplementedError


class RocmDeviceRuntime(DeviceRuntime):
    """AMD GPUs under HIP."""

    kind = "rocm"

    def device_count(self) -> int:
        from flydsl.targets.rocm import hip

        return hip.device_count()

    def current_device_id(self) -> int:
        from flydsl.targets.rocm import hip

        return hip.current_device()


_RUNTIMES["rocm"] = RocmDeviceRuntime


def register_device_runtime(cls: type[DeviceRuntime], *, kind: str | None = None, force: bool = False) -> None:
    """Register the class of a runtime kind; ValueError if it has one and `force` is not given."""
    kind = kind or cls.kind
    if kind in _RUNTIMES and not force:
        raise ValueError(f"the runtime kind {kind!r} has a class already: {_RUNTIMES[kind].__name__}; pass force=True to replace it")
    _RUNTIMES[kind] = cls


def register_compile_runtime_mapping(compile_backend: str, runtime_kind: str) -> None:
    """State which runtime kind the code of a compile backend runs on."""
    _EXTRA_MAPPINGS[compile_backend] = runtime_kind


def ensure_compile_runtime_compatible(compile_backend_id: str, *, runtime: DeviceRuntime | None = None) -> None:
    """Raise RuntimeError unless a runtime (default: the one in force) runs the code of a compile backend."""
    _check_pair(compile_backend_id, (runtime or get_device_runtime()).kind)


def ensure_compile_runtime_pairing_from_env(compile_backend_id: str) -> None:
    """Raise RuntimeError unless the runtime kind that the environment names runs the code of a compile backend."""
    _check_pair(compile_backend_id, _kind_for(compile_backend_id))


def get_device_runtime() -> DeviceRuntime:
    """Return the device runtime of the compile backend and runtime kind in force; made once."""
    global _instance
    if _instance is None:
        backend = env.compile.backend
        ensure_compile_runtime_pairing_from_env(backend)
        kind = _kind_for(backend)
        cls = _runtime_cls_override or _RUNTIMES.get(kind)
        if cls is None:
            raise ValueError(f"Unknown FLYDSL_RUNTIME_KIND {kind!r}: registered are {', '.join(sorted(_RUNTIMES))}")
        _instance = cls()
    return _instance


def _expected(backend: str) -> str | None:
    return _EXTRA_MAPPINGS.get(backend) or COMPILE_BACKEND_TO_RUNTIME_KIND.get(backend)


def _kind_for(backend: str) -> str:
    kind = env.runtime.kind.strip().lower()
    return (_expected(backend) or kind) if kind in _OUR_KINDS else kind


def _check_pair(backend: str, kind: str) -> None:
    expected = _expected(backend)
    if expected != kind:
        raise RuntimeError(
            f"the compile backend {backend!r} requires device runtime kind {expected!r}, got {kind!r}: "
            "set FLYDSL_RUNTIME_KIND, or pair them with register_compile_runtime_mapping"
        )
