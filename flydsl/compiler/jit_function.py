"""`@flyc.jit`: a host function that is traced, compiled once per specialisation, and launched."""

from __future__ import annotations

import functools
import importlib.metadata
import inspect
import threading
from collections import namedtuple
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import flydsl
from flydsl import arch as chips
from flydsl.compiler.compile_module import MlirCompiler, compile_module  # noqa: F401  (public tests reach it here)
from flydsl.compiler.context import CompilationContext, checked_hints
from flydsl.compiler.fingerprint import captured_state
from flydsl.compiler.jit_argument import JitArgument, wrap
from flydsl.compiler.jit_executor import CompiledArtifact, CompiledFunction
from flydsl.compiler.kernel_function import check_launched
from flydsl.diag import ArgumentCount
from flydsl.expr.fastmath import hinted
from flydsl.frontend import rewritten
from flydsl.ir import Trace, emit, ir, is_tracing
from flydsl.runtime.device import target_arch
from flydsl.utils import env

def _flydsl_key() -> str:
    """Return what identifies the toolchain in cache keys: our version and the bindings'."""
    return f"{flydsl.__version__}-{importlib.metadata.version('torch-mlir')}-{importlib.metadata.version('llvmlite')}"


CacheInfo = namedtuple("CacheInfo", "hits misses currsize disk_size")


class JitFunction:
    """A jit function. Called from plain Python it compiles and launches; called while tracing it runs inline."""

    def __init__(self, func: Callable, compile_hints: dict[str, Any] | None = None):
        functools.update_wrapper(self, func)
        self.func = func
        self.signature = inspect.signature(func)
        self.compile_hints = checked_hints(compile_hints)
        self._annotations = _resolved_annotations(func, self.signature)
        self._artifacts: dict[Hashable, CompiledArtifact] = {}
        self._lock = threading.RLock()
        self._hits = self._misses = 0
        self._last_compiled: tuple[Hashable, CompiledArtifact] | None = None  # read by public tests

    def __get__(self, obj: Any, owner: type | None = None) -> Any:
        return self if obj is None else functools.partial(self, obj)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if is_tracing():
            return rewritten(self.func)(*args, **kwargs)
        arguments = self.wrap_arguments(args, kwargs)
        artifact = self.artifact_for(arguments)
        if not env.compile.compile_only:
            self.launch(artifact, arguments)
        return None

    def wrap_arguments(self, args: tuple, kwargs: dict) -> list[tuple[str, JitArgument]]:
        """Return (name, JitArgument) of each parameter.

        Raises ArgumentCount, ArgumentType
        """
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as e:
            raise ArgumentCount(function=self.func.__name__, problem=str(e), signature=self.signature) from None
        bound.apply_defaults()
        return [
            (name, wrap(value, self._annotations[name], name, self.func.__name__))
            for name, value in bound.arguments.items()
        ]

    def key(self, arguments: Sequence[tuple[str, JitArgument]]) -> Hashable:
        """Return what identifies a specialisation: argument signatures, target, hints, switches, captured state."""
        hints = {**self.compile_hints, **CompilationContext.get_compile_hints()}
        return (
            tuple(argument.signature() for _, argument in arguments),
            target_arch(),
            repr(sorted(hints.items())),
            env.key_values(),
            captured_state(self.func),
        )

    def artifact_for(self, arguments: Sequence[tuple[str, JitArgument]]) -> CompiledArtifact:
        """Return the compiled artifact of a specialisation, from memory or newly made."""
        key = self.key(arguments)
        with self._lock:
            artifact = self._artifacts.get(key) if env.runtime.enable_cache else None
            if artifact is not None:
                self._hits += 1
                return artifact
            self._misses += 1
            artifact = self._compile(arguments)
            self._artifacts[key] = artifact
            self._last_compiled = (key, artifact)
            return artifact

    def launch(self, artifact: CompiledArtifact, arguments: Sequence[tuple[str, JitArgument]]) -> None:
        """Run a compiled artifact on wrapped arguments."""
        flat = [v for _, argument in arguments for v in argument.flat()]
        buffers = [(name, b) for name, argument in arguments if (b := argument.buffer()) is not None]
        artifact.run(flat, buffers)

    def check_signature(self, arguments: Sequence[tuple[str, JitArgument]], key: Hashable) -> None:
        """Refuse arguments that do not have the compiled signature."""
        from flydsl.diag import SignatureChanged

        compiled = key[0]
        for (name, argument), expected in zip(arguments, compiled, strict=True):
            actual = argument.signature()
            if actual != expected:
                raise SignatureChanged(function=self.func.__name__, parameter=name, got=actual, compiled=expected)

    def compile(self, args: tuple, kwargs: dict) -> CompiledFunction | None:
        """Compile for these arguments; with COMPILE_ONLY nothing is returned."""
        arguments = self.wrap_arguments(args, kwargs)
        artifact = self.artifact_for(arguments)
        if env.compile.compile_only:
            return None
        return CompiledFunction(self, artifact, self.key(arguments))

    def cache_info(self) -> CacheInfo | None:
        """Return hits and misses of the memory cache, or None when caching is off."""
        if not env.runtime.enable_cache:
            return None
        return CacheInfo(self._hits, self._misses, len(self._artifacts), 0)

    def _compile(self, arguments: Sequence[tuple[str, JitArgument]]) -> CompiledArtifact:
        hints = {**self.compile_hints, **CompilationContext.get_compile_hints()}
        with CompilationContext.create(hints) as context:
            trace = Trace(chips.get(target_arch()).name)
            with trace, hinted(hints):
                self._trace(trace, arguments)
                return compile_module(trace, self.func.__name__, context)

    def _trace(self, trace: Trace, arguments: Sequence[tuple[str, JitArgument]]) -> None:
        """Trace the body into the module's host function."""
        module = trace.module
        module.operation.attributes["gpu.container_module"] = ir.UnitAttr.get()
        module.operation.attributes["fly.arch"] = ir.StringAttr.get(trace.arch)
        types = [argument.ir_types() for _, argument in arguments]
        flat = [t for group in types for t in group]
        names = [name for (name, _), group in zip(arguments, types, strict=True) for _ in group]
        loc = trace.locations.of_code(self.func.__code__)
        attributes = {
            "sym_name": ir.StringAttr.get(self.func.__name__),
            "function_type": ir.TypeAttr.get(ir.FunctionType.get(flat, [])),
            "fly.params": ir.ArrayAttr.get([ir.StringAttr.get(n) for n in names]),
        }
        function = ir.Operation.create("func.func", [], [], attributes, None, 1, loc, trace.ip)
        entry = function.regions[0].blocks.append(*flat, arg_locs=[loc] * len(flat))
        values = iter(entry.arguments)
        body = rewritten(self.func)
        with trace.in_function(entry, "host", body.__code__, self):
            args = {name: a.dsl([next(values) for _ in g]) for (name, a), g in zip(arguments, types, strict=True)}
            _call(body, self.signature, args)
            check_launched(trace)
            emit("func.return", loc=loc)


def _call(fn: Callable, signature: inspect.Signature, values: dict[str, Any]) -> Any:
    args, kwargs = [], {}
    for name, parameter in signature.parameters.items():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            args.append(values[name])
        elif parameter.kind is parameter.KEYWORD_ONLY:
            kwargs[name] = values[name]
    return fn(*args, **kwargs)


def _resolved_annotations(func: Callable, signature: inspect.Signature) -> dict[str, Any]:
    """Return the annotation objects of the parameters; texts (`from __future__ import annotations`) are evaluated."""
    out = {}
    for name, parameter in signature.parameters.items():
        annotation = parameter.annotation
        if isinstance(annotation, str):
            try:
                annotation = eval(annotation, func.__globals__, _closure(func))
            except Exception:  # an annotation that cannot be evaluated says nothing; the value decides
                annotation = inspect.Parameter.empty
        out[name] = annotation
    return out


def _closure(func: Callable) -> dict[str, Any]:
    cells = func.__closure__ or ()
    return dict(zip(func.__code__.co_freevars, (c.cell_contents for c in cells), strict=False))


def jit(func: Callable | None = None) -> Any:
    """Make a function a host function that launches kernels; usable bare or as `@flyc.jit()`."""
    return JitFunction if func is None else JitFunction(func)


class CompileCallable:
    """`flyc.compile(fn, *args)` and `flyc.compile[hints](fn, *args)`."""

    def __init__(self, compile_hints: dict[str, Any] | None = None):
        self._hints = compile_hints

    def __getitem__(self, hints: dict[str, Any]) -> CompileCallable:
        return CompileCallable({**(self._hints or {}), **hints})

    def __call__(self, func: JitFunction, *args: Any, **kwargs: Any) -> Any:
        """Compile a jit function for arguments; without arguments return it with the hints merged."""
        if not isinstance(func, JitFunction):
            raise TypeError(f"flyc.compile takes a @flyc.jit function, got {type(func).__name__}")
        if self._hints:
            func.compile_hints = checked_hints({**func.compile_hints, **self._hints})
        if not args and not kwargs and self._hints is not None:
            return func
        compiled = func.compile(args, kwargs)
        if compiled is not None and _has_live_device_tensor(args):
            compiled(*args)
        return compiled


def _has_live_device_tensor(args: Sequence[Any]) -> bool:
    return any(getattr(getattr(a, "device", None), "type", "") == "cuda" for a in args)


