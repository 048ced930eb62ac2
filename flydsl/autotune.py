"""Choosing among configurations of a jit function: `@autotune(configs, key)` on top of `@flyc.jit`.

The first source that has an answer is used: results of earlier searches, a shipped artifact
(`FLYDSL_AUTOTUNE_CONFIG_DIR`), `default`, a
search. `FLYDSL_AUTOTUNE=1` searches in any case. A search compiles all configurations in parallel, skips those
that do not compile, and
times the others; where no GPU is in use they are compared by a static estimate instead (`tuning.cost`).
"""

from __future__ import annotations

import hashlib
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from flydsl.arch.boards import board
from flydsl.runtime.device import chip_for, chosen_for, target_arch
from flydsl.runtime.kinds import suited_to
from flydsl.tuning.bench import do_bench
from flydsl.tuning.config import Config
from flydsl.utils import env
from flydsl.utils.file import atomic_write
from flydsl.utils.logger import log
from flydsl.utils.record import record

__all__ = ["Autotuner", "Config", "autotune", "do_bench"]

ARTIFACT_VERSION = 1
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@record
class _ArtifactRef:
    path: Path
    identity: str  # JSON, sorted


class Autotuner:
    """A jit function with configurations; called like the function, without the parameters that they set."""

    def __init__(
        self,
        fn: Callable,
        configs: Sequence[Config] | Callable,
        key: Sequence[str] | None,
        warmup: int,
        rep: int,
        prune_configs_by: Callable | None = None,
        reset_to_zero: Sequence[str] | None = None,
        restore_value: Sequence[str] | None = None,
        pre_hook: Callable | None = None,
        post_hook: Callable | None = None,
        do_bench_fn: Callable | None = None,
        default: Config | Callable | None = None,
        artifact_name: str | None = None,
        validate_hook: Callable | None = None,
        select_config: Callable | None = None,
    ):
        self.fn, self.configs, self.key = fn, configs, list(key or ())
        self.warmup, self.rep = warmup, rep
        self.prune_configs_by = prune_configs_by
        self.reset_to_zero, self.restore_value = list(reset_to_zero or ()), list(restore_value or ())
        self.pre_hook, self.post_hook = pre_hook, post_hook
        self.do_bench_fn, self.default, self.artifact_name = do_bench_fn, default, artifact_name
        self.validate_hook, self.select_config = validate_hook, select_config
        self.signature = inspect.signature(getattr(fn, "func", fn))
        self.cache: dict[tuple, Config] = {}
        self.skipped: dict[Config, str] = {}  # why configurations of the last search were not considered
        self._check_names()
        self._cache_file = Path(env.autotune.cache_dir).expanduser() / f"{getattr(fn, '__name__', 'kernel')}.json"
        self._load_cache()

    def _check_names(self) -> None:
        if self.artifact_name is None:
            return
        if not isinstance(self.artifact_name, str):
            raise TypeError(f"artifact_name must be a text, got {type(self.artifact_name).__name__}")
        if not _NAME.fullmatch(self.artifact_name):
            raise ValueError(
                f"artifact_name {self.artifact_name!r} is not a plain file name (letters, digits, . _ -)"
            )
        unknown = [k for k in self.key if k not in self.signature.parameters]
        if unknown:
            raise ValueError(f"artifact keys must name parameters of the kernel; {', '.join(unknown)} do not")

    # --- calling -----------------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function with the configuration that is chosen for these arguments; return its value."""
        config = self.resolve_config(*args, **kwargs)
        self._prepare(args, kwargs)
        return self._run(config, args, kwargs)

    def resolve_config(self, *args: Any, **kwargs: Any) -> Config:
        """Return the configuration for these arguments; searches if nothing else has one."""
        named = self._named(args, kwargs)
        where = _device_of(named)
        host = [-1] if where is None and any(map(_is_tensor, named.values())) else []
        with suited_to([where] if where is not None else host):
            return self._resolved(args, kwargs)

    def _resolved(self, args: tuple, kwargs: dict) -> Config:
        key = self._make_key(args, kwargs)
        force = env.autotune.force
        ref = self._artifact_ref(args, kwargs, required=force)
        if not force:
            found = self._kept(key) or self._load_artifact(ref, args, kwargs) or self._default(args, kwargs)
            if found is not None:
                return found
        config = self._search(args, kwargs, check=ref is not None and force)
        if force and ref is not None:
            self._emit_artifact(config, ref, args, kwargs)
        self.cache[key] = config
        self._save_cache()
        return config

    def _kept(self, key: tuple) -> Config | None:
        """Return the result of an earlier search: with its hooks, and only while it is among the configurations."""
        kept = self.cache.get(key)
        if kept is None or callable(self.configs):
            return kept
        return next((c for c in self.configs if c.to_dict() == kept.to_dict()), None)

    def _default(self, args: tuple, kwargs: dict) -> Config | None:
        return self.default(*args, **kwargs) if callable(self.default) else self.default

    def _run(self, config: Config, args: tuple, kwargs: dict) -> Any:
        values = config.all_kwargs()
        for hook in (config.pre_hook, self.pre_hook):
            if hook is not None:
                hook(values)
        with _hints(config):
            result = self.fn(*args, **{**kwargs, **values})
        if self.post_hook is not None:
            self.post_hook(values)
        return result

    def _prepare(self, args: tuple, kwargs: dict) -> None:
        named = self._named(args, kwargs)
        for name in self.reset_to_zero:
            _zero(named[name])

    def _named(self, args: tuple, kwargs: dict) -> dict[str, Any]:
        """Return the arguments of a call by parameter name; what the configuration sets is missing."""
        bound = self.signature.bind_partial(*args, **kwargs).arguments
        variadic = [n for n, p in self.signature.parameters.items() if p.kind is p.VAR_KEYWORD]
        extra = {k: v for n in variadic for k, v in bound.pop(n, {}).items()}
        return {**bound, **extra}

    def _with_defaults(self, args: tuple, kwargs: dict) -> dict[str, Any]:
        defaults = {n: p.default for n, p in self.signature.parameters.items() if p.default is not p.empty}
        return {**defaults, **self._named(args, kwargs)}

    # --- search ------------------------------------------------------------------------------------------------------

    def _search(self, args: tuple, kwargs: dict, check: bool = False) -> Config:
        configs = self.configs(*args, **kwargs) if callable(self.configs) else self.configs
        configs = self._prune(list(configs), args, kwargs)
        if check:
            for config in configs:
                _check_storable(config)
        self.skipped = {}
        results: list[tuple[Config, float]] = []
        artifacts = self._compiled(configs, args, kwargs)
        for config in configs:
            if config in self.skipped:
                continue
            try:
                results.append((config, self._cost(config, args, kwargs, artifacts.get(config))))
            except Exception as e:  # a configuration may fail in any way: it is not chosen
                self.skipped[config] = f"{type(e).__name__}: {e}"
        for config, reason in self.skipped.items():
            log.info("autotune %s: %r is skipped: %s", self._name, config, reason.splitlines()[0])
        if not results:
            first = next(iter(self.skipped.items()), None)
            detail = f"; the first one, {first[0]!r}: {first[1]}" if first else ""
            raise RuntimeError(f"autotune of {self._name}: no configuration of {len(configs)} can be used{detail}")
        if self.select_config is not None:
            best, cost = self.select_config(results)
        else:
            best, cost = min(results, key=lambda r: r[1])
        log.info("autotune %s: %r of %d configurations (%g)", self._name, best, len(configs), cost)
        return best

    @property
    def _name(self) -> str:
        return getattr(self.fn, "__name__", "kernel")

    def _prune(self, configs: list[Config], args: tuple, kwargs: dict) -> list[Config]:
        if self.prune_configs_by is None:
            return configs
        return list(self.prune_configs_by(configs, self._named(args, kwargs)))

    def _compiled(self, configs: Sequence[Config], args: tuple, kwargs: dict) -> dict[Config, Any]:
        """Compile all configurations in parallel; those that fail are noted as skipped. Other functions are left
        alone.
        """
        from flydsl.compiler.jit_function import JitFunction

        if not isinstance(self.fn, JitFunction):
            return {}
        from flydsl.compiler.parallel import Job, compile_many

        jobs = [Job(self.fn, args, {**kwargs, **c.all_kwargs()}, c.compiler_opts()) for c in configs]
        results = compile_many(jobs, progress=_progress_bar(self._name))
        self.skipped |= {c: r.error for c, r in zip(configs, results, strict=True) if r.error is not None}
        return {c: r.artifact for c, r in zip(configs, results, strict=True) if r.artifact is not None}

    def _cost(self, config: Config, args: tuple, kwargs: dict, artifact: Any) -> float:
        """Return milliseconds, or estimated cycles where no GPU is in use."""
        from flydsl.runtime.kinds import runtime_kind

        if artifact is not None and self.do_bench_fn is None and runtime_kind() != "rocm":
            return self._static_cost(config, args, kwargs, artifact)
        with self._restored(args, kwargs) as restore, self._validation(config, args, kwargs):

            def call() -> Any:
                restore()
                return self._run(config, args, kwargs)

            with _current(_device_of(self._named(args, kwargs))):
                time = (self.do_bench_fn or do_bench)(call, self.warmup, self.rep)
        return float(time)

    def _static_cost(self, config: Config, args: tuple, kwargs: dict, artifact: Any) -> float:
        from flydsl.tuning.cost import static_cost

        arguments = self.fn.wrap_arguments(args, {**kwargs, **config.all_kwargs()})
        with self._restored(args, kwargs) as restore, self._validation(config, args, kwargs) as validated:
            if validated:
                restore()
                self._run(config, args, kwargs)
        return static_cost(artifact, [v for _, a in arguments for v in a.flat()])

    @contextmanager
    def _validation(self, config: Config, args: tuple, kwargs: dict) -> Iterator[bool]:
        """Ask `validate_hook`: a context manager around the runs, or a truth value; what it raises rejects the
        configuration.
        """
        if self.validate_hook is None:
            yield False
            return
        verdict = self.validate_hook({**self._with_defaults(args, kwargs), **config.all_kwargs()})
        if verdict is False:
            raise ValueError("validate_hook rejected it")
        with verdict if isinstance(verdict, AbstractContextManager) else nullcontext():
            yield True

    @contextmanager
    def _restored(self, args: tuple, kwargs: dict) -> Iterator[Callable[[], None]]:
        """Yield what puts the named tensors into their first state; it is called once more at the end."""
        named = self._named(args, kwargs)
        saved = {n: _copy(named[n]) for n in self.restore_value}

        def restore() -> None:
            for name, value in saved.items():
                _assign(named[name], value)
            for name in self.reset_to_zero:
                _zero(named[name])

        try:
            yield restore
        finally:
            restore()

    # --- keys and files ----------------------------------------------------------------------------------------------

    def _make_key(self, args: tuple, kwargs: dict) -> tuple[str, ...]:
        """Return what selects a result: key values, forms of all tensors, device, toolchain, environment, hints."""
        named = self._with_defaults(args, kwargs)
        parts = [f"{n}={_form(named[n]) if _is_tensor(named[n]) else named[n]!r}" for n in self.key if n in named]
        tensors = sorted((n, v) for n, v in named.items() if _is_tensor(v))
        parts += [f"{n}:{v.dtype}:{_normalize_strides(v)}" for n, v in tensors]
        hints = getattr(self.fn, "_effective_compile_hints", None)
        hints = hints() if hints is not None else getattr(self.fn, "compile_hints", {})
        where = _device_of(named)
        with chosen_for(chip_for(where)):
            device = _device_descriptor(where) if self._looks_up_artifacts else _device_fingerprint()
        axes = {"device": device, "toolchain": _toolchain_fingerprint(), "env": _env_fingerprint()}
        axes["hints"] = sorted(hints.items())
        return (*parts, *(f"_{n}_{v}" for n, v in axes.items()), f"_artifact_{self.artifact_name}")

    @property
    def _looks_up_artifacts(self) -> bool:
        return self.artifact_name is not None and bool(env.autotune.config_dir)

    def _load_cache(self) -> None:
        try:
            stored = json.loads(self._cache_file.read_text())
            self.cache = {tuple(json.loads(key)): Config.from_dict(value) for key, value in stored.items()}
        except FileNotFoundError:
            pass
        except (OSError, ValueError, TypeError, AttributeError) as e:
            log.warning("autotune %s: %s is ignored: %s", self._name, self._cache_file, e)

    def _save_cache(self) -> None:
        stored = {json.dumps(list(key)): config.to_dict() for key, config in self.cache.items()}
        try:
            self._cache_file.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(self._cache_file, mode="w", encoding="utf-8") as f:
                json.dump(stored, f, indent=1)
        except (OSError, TypeError) as e:
            log.warning("autotune %s: the result is not kept: %s", self._name, e)

    def _artifact_ref(self, args: tuple, kwargs: dict, required: bool = False) -> _ArtifactRef | None:
        """Return where the shipped artifact for these arguments is; None without a folder, a name or a device.

        Raises   ValueError: it is `required`, and the device or the key values have no lasting identity
        """
        if not self._looks_up_artifacts:
            return None
        named = self._with_defaults(args, kwargs)
        where = _device_of(named)
        with chosen_for(chip_for(where)):
            device = _device_descriptor(where)
        key = {n: _form(named[n]) if _is_tensor(named.get(n)) else named.get(n) for n in self.key}
        identity = {"name": self.artifact_name, "key": key, "device": device}
        if device is None or not _survives_json(key):
            if required:
                problem = "no device is known" if device is None else f"the key {key} does not survive JSON"
                raise ValueError(f"cannot generate offline config identity: {problem}")
            return None
        text = json.dumps(identity, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        return _ArtifactRef(Path(env.autotune.config_dir).expanduser() / f"{self.artifact_name}-{digest}.json", text)

    def _load_artifact(self, ref: _ArtifactRef | None, args: tuple, kwargs: dict) -> Config | None:
        """Return the configuration of a shipped artifact; None where there is none that fits this call."""
        if ref is None:
            return None
        try:
            payload = json.loads(ref.path.read_text())
            identity = json.dumps(payload["identity"], sort_keys=True)
            if payload["version"] != ARTIFACT_VERSION or identity != ref.identity:
                raise ValueError("it was made for another kernel, key, device or version")
            config = Config.from_dict(payload["config"])
            self._check_override(config, args, kwargs)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as e:
            log.warning("autotune %s: %s is ignored: %s", self._name, ref.path, e)
            return None
        return config

    def _check_override(self, config: Config, args: tuple, kwargs: dict) -> None:
        """Refuse a configuration that sets what the caller gives, a key, something unknown, or a value of a wrong
        type.
        """
        given, parameters = self._named(args, kwargs), self.signature.parameters
        open_ended = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        for name, value in config.all_kwargs().items():
            if name in given or name in self.key or name not in parameters and not open_ended:
                raise ValueError(f"it sets {name}")
            annotation = parameters[name].annotation if name in parameters else None
            if isinstance(annotation, str):
                annotation = getattr(self.fn, "_annotations", {}).get(name)
            _check_type(annotation, value, name)

    def _emit_artifact(self, config: Config, ref: _ArtifactRef, args: tuple, kwargs: dict) -> None:
        """Write the artifact of a search."""
        _check_storable(config)
        ref.path.parent.mkdir(parents=True, exist_ok=True)
        payload = {"version": ARTIFACT_VERSION, "identity": json.loads(ref.identity), "config": config.to_dict()}
        with atomic_write(ref.path, mode="w", encoding="utf-8") as f:
            json.dump(payload, f, indent=1, sort_keys=True)


def autotune(
    configs: Sequence[Config] | Callable,
    key: Sequence[str] | None = None,
    warmup: int = 5,
    rep: int = 25,
    prune_configs_by: Callable | None = None,
    reset_to_zero: Sequence[str] | None = None,
    restore_value: Sequence[str] | None = None,
    pre_hook: Callable | None = None,
    post_hook: Callable | None = None,
    do_bench: Callable | None = None,
    default: Config | Callable | None = None,
    artifact_name: str | None = None,
    validate_hook: Callable | None = None,
    select_config: Callable | None = None,
) -> Callable[[Callable], Autotuner]:
    """Decorate a jit function with configurations.

    `configs`, `default`: values, or functions of the call's arguments. `key`: parameters whose values (tensors:
    shape, strides, dtype) select
    a result. `prune_configs_by(configs, named arguments)`. `reset_to_zero`, `restore_value`: tensors put back
    between runs.
    `validate_hook(named arguments)` may reject by raising, with False, or as a context manager around the runs;
    `select_config([(config, cost), ...])` returns the pair to use.
    """
    options = (warmup, rep, prune_configs_by, reset_to_zero, restore_value, pre_hook, post_hook, do_bench, default)

    def decorate(fn: Callable) -> Autotuner:
        return Autotuner(fn, configs, key, *options, artifact_name, validate_hook, select_config)

    return decorate


# --- identity --------------------------------------------------------------------------------------------------------


def _device_of(named: dict[str, Any]) -> int | None:
    """Return the GPU that holds the first tensor on one; None where all are on the host."""
    for value in named.values():
        device = getattr(value, "device", None)
        if getattr(device, "type", None) == "cuda":
            return device.index or 0
    return None


def _current(device: int | None) -> AbstractContextManager:
    """Return what makes a GPU torch's current one: events are recorded where the launches go."""
    torch = sys.modules.get("torch")
    return nullcontext() if device is None or torch is None else torch.cuda.device(device)


def _device_descriptor(device: int | None = None) -> dict[str, Any] | None:
    """Return product name, chip and compute units of the GPU in use; a simulated one says so. None if nothing is
    known.
    """
    from flydsl import arch as chips
    from flydsl.runtime.kinds import runtime_kind

    arch = target_arch()
    if runtime_kind() != "rocm":
        return {"name": f"simulated {arch}", "arch": arch, "compute_units": board(arch).compute_units}
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        products = chips.get(arch).products
        return {"name": "/".join(products) or arch, "arch": arch, "compute_units": board(arch).compute_units}
    found = torch.cuda.get_device_properties(torch.cuda.current_device() if device is None else device)
    return {"name": found.name, "arch": arch, "compute_units": found.multi_processor_count}


def _device_fingerprint() -> str:
    from flydsl.runtime.kinds import runtime_kind

    return f"{runtime_kind()}:{target_arch()}"


def _toolchain_fingerprint() -> str:
    from flydsl.compiler.jit_function import _flydsl_key

    return _flydsl_key()


def _env_fingerprint() -> tuple:
    return env.key_values()


# --- tensors and values ----------------------------------------------------------------------------------------------


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _strides(tensor: Any) -> tuple[int, ...]:
    stride = getattr(tensor, "stride", None)
    if callable(stride):
        return tuple(stride())
    return tuple(s // tensor.itemsize for s in tensor.strides)


def _normalize_strides(tensor: Any) -> tuple:
    """Return strides as what matters for a choice: 0, 1, or anything else ('s')."""
    return tuple(s if s in (0, 1) else "s" for s in _strides(tensor))


def _form(tensor: Any) -> list:
    return [list(tensor.shape), list(_strides(tensor)), str(tensor.dtype)]


def _zero(tensor: Any) -> None:
    if hasattr(tensor, "zero_"):
        tensor.zero_()
    else:
        tensor[...] = 0


def _copy(tensor: Any) -> Any:
    return tensor.clone() if hasattr(tensor, "clone") else tensor.copy()


def _assign(tensor: Any, value: Any) -> None:
    if hasattr(tensor, "copy_"):
        tensor.copy_(value)
    else:
        tensor[...] = value


def _check_type(annotation: Any, value: Any, name: str) -> None:
    from flydsl.expr.typing import Constexpr

    if hasattr(annotation, "__coerce__"):
        annotation.__coerce__(value)
    elif Constexpr.is_annotation(annotation):
        annotation.accept(value, name)
    elif annotation in (int, float, str, bool) and type(value) is not annotation:
        raise TypeError(f"{name} is {annotation.__name__}, not {type(value).__name__}")


def _check_storable(config: Config) -> None:
    if config.pre_hook is not None:
        raise ValueError(f"{config!r} has a pre_hook, which is code of this process and cannot be in an artifact")
    if not _survives_json(config.to_dict()):
        raise ValueError(f"the values of {config!r} do not preserve their types in JSON")


def _survives_json(value: Any) -> bool:
    try:
        return repr(json.loads(json.dumps(value))) == repr(value)
    except (TypeError, ValueError):
        return False


def _hints(config: Config) -> AbstractContextManager:
    options = config.compiler_opts()
    if not options:
        return nullcontext()
    from flydsl.compiler.context import CompilationContext

    return CompilationContext.compile_hints(options)


def _progress_bar(name: str) -> Callable[[int, int], None] | None:
    """Return what draws the state of the compiles on a terminal; None elsewhere."""
    if not sys.stderr.isatty():
        return None

    def draw(done: int, total: int) -> None:
        filled = 30 * done // total
        bar = "#" * filled + "." * (30 - filled)
        sys.stderr.write(f"\rautotune {name}: compiling [{bar}] {done}/{total}" + ("\n" if done == total else ""))
        sys.stderr.flush()

    return draw
