"""`@flyc.jit`: a host function that is traced, compiled once per specialisation, and launched."""

from __future__ import annotations

import functools
import inspect
import threading
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Hashable, Sequence
from typing import Any, overload

import flydsl
from flydsl import arch as chips
from flydsl.compiler.annotations import resolved_annotations
from flydsl.compiler.backends import backend_key
from flydsl.compiler.compile_module import MlirCompiler, compile_module  # noqa: F401  (public tests reach it here)
from flydsl.compiler.context import CompilationContext, ambient, checked_hints
from flydsl.compiler.declared import warn_of_class
from flydsl.compiler.disk import disk_cache, disk_key, load_or_compile, version_of
from flydsl.compiler.dispatch import MOST_PATTERNS, Pattern
from flydsl.compiler.fingerprint import NOT_BOUND, Captured, captured_state
from flydsl.compiler.jit_argument import JitArgument, PointerJitArg, described_signature, wrap
from flydsl.compiler.jit_executor import CompiledArtifact, CompiledFunction
from flydsl.compiler.kernel_function import check_launched
from flydsl.compiler.loading import compiling
from flydsl.diag import ArgumentCount
from flydsl.diag.stack import trimmed
from flydsl.expr.fastmath import hinted
from flydsl.frontend import rewritten
from flydsl.ir import Trace, emit, ir
from flydsl.ir.trace import active
from flydsl.runtime.device import chip_for, chosen_for, get_rocm_arch, target_arch
from flydsl.runtime.host_arrays import HostArray, common_device
from flydsl.runtime.kinds import current_runtime, suited_to
from flydsl.utils import env
from flydsl.utils.collector import paused_collector
from flydsl.utils.logger import log, say_once


def _flydsl_key() -> str:
    """Return what identifies the toolchain in cache keys: our version and the bindings'."""
    return f"{flydsl.__version__}-{version_of('torch-mlir')}-{version_of('llvmlite')}"


CacheInfo = namedtuple("CacheInfo", "hits misses currsize disk_size")
MANY_SPECIALISATIONS = 256
_MANY = "`%s` has %d specialisations; a constant or static shape that changes with each call compiles each time"
_MOST_BOUND = 64  # objects whose bound methods keep their state


class _State:
    """What holds as long as nothing that was captured, no switch and no hint changes: the patterns of the fast path."""

    def __init__(self, captured: Captured, hints: dict[str, Any]):
        self.captured = captured
        self.holds = captured.holds
        self.hints = hints
        self.patterns: list[Pattern] = []
        self.calls: tuple[Callable, ...] = ()


class JitFunction:
    """A jit function. Called from plain Python it compiles and launches; called while tracing it runs inline."""

    def __init__(self, func: Callable, compile_hints: dict[str, Any] | None = None):
        functools.update_wrapper(self, func)
        self.func = func
        self.signature = inspect.signature(func)
        self.compile_hints = checked_hints(compile_hints)
        self._bound: Any = NOT_BOUND
        self._methods: OrderedDict[int, JitFunction] = OrderedDict()
        self._annotations = resolved_annotations(func, self.signature)
        self._count = len(self.signature.parameters)
        self._artifacts: dict[Hashable, CompiledArtifact] = {}
        self._state: _State | None = None
        self._states: dict[Hashable, _State] = {}
        self._lock = threading.RLock()
        self._hits = self._misses = 0
        self._last_compiled: tuple[Hashable, CompiledArtifact] | None = None  # read by public tests

    def __get__(self, obj: Any, owner: type | None = None) -> JitFunction:
        if obj is None:
            return self
        method = self._methods.get(id(obj))
        if method is None:
            method = self._methods[id(obj)] = self._method(obj)
            while len(self._methods) > _MOST_BOUND:
                self._methods.popitem(last=False)
        return method

    def _method(self, obj: Any) -> JitFunction:
        """Return this function with its first parameter bound; the object is a compile-time value."""
        method = JitFunction(self.func)
        first, *rest = method.signature.parameters.values()
        method.signature = method.signature.replace(parameters=rest)
        method._annotations.pop(first.name)
        method._count -= 1
        method._bound = obj
        method.compile_hints = self.compile_hints
        return method

    _mem_cache = property(lambda self: self._artifacts)  # read by public tests

    def __captured__(self) -> list[tuple[str, Any]]:
        """What code generated from this function depends on (`compiler.fingerprint`)."""
        return [("func", self.func), ("hints", self.compile_hints)]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if active.trace is not None:
            return rewritten(self.func)(*self._receiver(), *args, **kwargs)
        state = self._state
        try:
            if kwargs or len(args) != self._count:
                args = self.positional(args, kwargs)
            if state is not None and not ambient.stack and state.holds() and state.hints == self.compile_hints:
                for call in state.calls:
                    if call(*args):
                        self._hits += 1
                        return None
            self._call_slowly(args)
        except Exception as e:
            __tracebackhide__ = True  # the one frame of ours that is left: pytest leaves it out
            raise trimmed(e)  # noqa: B904  (the same error; what caused it stays chained to it)
        return None

    def _receiver(self) -> tuple:
        return () if self._bound is NOT_BOUND else (self._bound,)

    def positional(self, args: tuple, kwargs: dict) -> tuple:
        """Return one value per parameter, in the signature's order.

        Raises   ArgumentCount
        """
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as e:
            raise ArgumentCount(function=self.func.__name__, problem=str(e), signature=self.signature) from None
        bound.apply_defaults()
        return tuple(bound.arguments.values())

    def _call_slowly(self, args: tuple) -> None:
        """Call through wrapped arguments, compiling if need be; the next call of this form takes the fast path."""
        arguments = self._wrapped(args)
        with suited_to(array.device for _, array in _buffers(arguments)):
            self._launch_compiled(arguments, args)

    def _launch_compiled(self, arguments: Sequence[tuple[str, JitArgument]], args: tuple) -> None:
        artifact = self.artifact_for(arguments)
        if env.compile.compile_only:
            _say_not_launched()
            return
        self.launch(artifact, arguments)
        if not ambient.stack and env.runtime.enable_cache and _has_fast_path(arguments):
            self._remember(self.state(), arguments, args, artifact)

    def wrap_arguments(self, args: tuple, kwargs: dict) -> list[tuple[str, JitArgument]]:
        """Return (name, JitArgument) of each parameter.

        Raises   ArgumentCount, ArgumentType, ArgumentClass, ArgumentRange
        """
        return self._wrapped(self.positional(args, kwargs))

    def _wrapped(self, args: tuple) -> list[tuple[str, JitArgument]]:
        function = self.func.__name__
        return [(n, wrap(v, a, n, function)) for (n, a), v in zip(self._annotations.items(), args, strict=True)]

    def state(self) -> _State:
        """Return the state that holds now; what is captured is walked only after a change."""
        state = self._state
        if state is None or not state.holds() or state.hints != self.compile_hints:
            captured = captured_state(self.func, self._bound)
            key = (captured.digest, captured.places, env.watched_values(), repr(self.compile_hints))
            known = self._states.get(key)
            state = self._states[key] = _State(captured, dict(self.compile_hints))
            if known is not None:
                state.patterns, state.calls = known.patterns, known.calls
            self._state = state
        return state

    def key(self, arguments: Sequence[tuple[str, JitArgument]]) -> Hashable:
        """Return what identifies a specialisation: argument signatures, target, hints, switches, captured state."""
        hints = {**self.compile_hints, **CompilationContext.get_compile_hints()}
        return (
            signatures(arguments),
            (target_arch(), get_rocm_arch()),
            repr(sorted(hints.items())),
            (*env.key_values(), *backend_key(target_arch())),
            self.state().captured.digest,
        )

    def artifact_for(self, arguments: Sequence[tuple[str, JitArgument]]) -> CompiledArtifact:
        """Return the compiled artifact of a specialisation, from memory or newly made: for the chip of the device that
        holds the tensors.

        Raises   DevicesMixed
        """
        with chosen_for(chip_for(common_device(_buffers(arguments)))):
            return self._artifact_for(arguments)

    def _artifact_for(self, arguments: Sequence[tuple[str, JitArgument]]) -> CompiledArtifact:
        key = self.key(arguments)
        here = (*key, self.state().captured.places)  # equal code from another place has findings of its own
        with self._lock:
            artifact = self._artifacts.get(here) if env.runtime.enable_cache else None
            if artifact is not None:
                self._hits += 1
                return artifact
            artifact, from_disk = self._from_disk_or_compiled(key, arguments)
            self._hits += from_disk
            self._misses += not from_disk
            self._artifacts[here] = artifact
            self._last_compiled = (here, artifact)
            if len(self._artifacts) == MANY_SPECIALISATIONS:
                log.warning(_MANY, self.func.__name__, MANY_SPECIALISATIONS)
            return artifact

    def _from_disk_or_compiled(self, key: Hashable, arguments: Sequence) -> tuple[CompiledArtifact, bool]:
        if disk_cache() is None:
            return self._compile(arguments), False
        captured = self.state().captured
        on_disk = disk_key(key, [name for name, _ in arguments], captured)
        return load_or_compile(self.func.__name__, on_disk, captured.codes, lambda: self._compile(arguments))

    def launch(self, artifact: CompiledArtifact, arguments: Sequence[tuple[str, JitArgument]]) -> None:
        """Run a compiled artifact on wrapped arguments."""
        buffers = _buffers(arguments)
        common_device(buffers)
        artifact.run([v for _, argument in arguments for v in argument.flat()], buffers)

    def pattern(
        self, arguments: Sequence[tuple[str, JitArgument]], args: Sequence[Any], artifact: CompiledArtifact
    ) -> Pattern | None:
        """Return a fast path for arguments of this form with `artifact` as its entry; None where they have none."""
        if not _has_fast_path(arguments):
            return None
        runtime, loaded = current_runtime(), artifact.loaded
        known_device = bool(_buffers(arguments)) and not runtime.reads_host_memory()  # that of the arrays, all on a GPU
        where = None if known_device else runtime.device_reader()
        pattern = Pattern(arguments, args, self._annotations, self.func.__name__, loaded.needs_buffers, where)
        key = pattern.key(*args)
        if key is False:
            return None
        pattern.entries[key] = artifact.entry_point(key[0] if isinstance(key, tuple) else key, pattern.array_names)
        return pattern

    def _remember(self, state: _State, arguments: Sequence, args: tuple, artifact: CompiledArtifact) -> None:
        """Let the fast path find `artifact` for arguments of this form."""
        needs_arrays = artifact.loaded.needs_buffers
        for known in state.patterns:
            key = known.key(*args) if known.takes_arrays == needs_arrays else False
            if key is not False:
                known.entries[key] = artifact.entry_point(key[0] if isinstance(key, tuple) else key, known.array_names)
                return
        if len(state.patterns) < MOST_PATTERNS:
            pattern = self.pattern(arguments, args, artifact)
            if pattern is not None:
                state.patterns.append(pattern)
                state.calls = tuple(p.call for p in state.patterns)

    def check_signature(self, arguments: Sequence[tuple[str, JitArgument]], compiled: tuple) -> None:
        """Refuse arguments that do not have the compiled signature."""
        from flydsl.diag import SignatureChanged

        for (name, argument), expected in zip(arguments, compiled, strict=True):
            actual = argument.signature()
            if actual != expected:
                got, wanted = argument.describe(), described_signature(expected)
                raise SignatureChanged(function=self.func.__name__, parameter=name, got=got, compiled=wanted)

    def compile(self, args: tuple, kwargs: dict) -> CompiledFunction | None:
        """Compile for these arguments, and launch once where they are live: no placeholders. With COMPILE_ONLY nothing is
        returned."""
        arguments = self._wrapped(self.positional(args, kwargs))
        artifact = self.artifact_for(arguments)
        if env.compile.compile_only:
            _say_not_launched()
            return None
        if (args or kwargs) and not any(_is_placeholder(argument) for _, argument in arguments):
            self.launch(artifact, arguments)
        return CompiledFunction(self, artifact, arguments)

    def cache_info(self) -> CacheInfo | None:
        """Return hits and misses of the memory cache, or None when caching is off."""
        if not env.runtime.enable_cache:
            return None
        cache = disk_cache()
        on_disk = 0 if cache is None else len(cache.entries(self.func.__name__))
        return CacheInfo(self._hits, self._misses, len(self._artifacts), on_disk)

    def _compile(self, arguments: Sequence[tuple[str, JitArgument]]) -> CompiledArtifact:
        compiling.set()
        hints = {**self.compile_hints, **CompilationContext.get_compile_hints()}
        with CompilationContext.create(hints) as context, paused_collector():
            trace = Trace(chips.get(target_arch()).name)
            with trace, hinted(hints):
                self._trace(trace, arguments)
                return compile_module(trace, self.func.__name__, context)

    def _trace(self, trace: Trace, arguments: Sequence[tuple[str, JitArgument]]) -> None:
        """Trace the body into the module's host function."""
        module = trace.module
        module.operation.attributes["gpu.container_module"] = ir.UnitAttr.get()
        module.operation.attributes["fly.arch"] = ir.StringAttr.get(trace.arch)
        for name, argument in arguments:
            warn_of_class(self._annotations[name], argument.dsl_type, name, self.func.__name__)
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
            _call(functools.partial(body, *self._receiver()), self.signature, args)
            check_launched(trace)
            emit("func.return", loc=loc)


def _buffers(arguments: Sequence[tuple[str, JitArgument]]) -> list[tuple[str, HostArray]]:
    """Return the memory of those arguments that have some."""
    return [(name, b) for name, argument in arguments if (b := argument.buffer()) is not None]


def _has_fast_path(arguments: Sequence[tuple[str, JitArgument]]) -> bool:
    """Return whether the runtime need not look at the arrays of each call: it may reach only some memory of the host."""
    return current_runtime().reads_host_memory() or all(array.device >= 0 for _, array in _buffers(arguments))


def signatures(arguments: Sequence[tuple[str, JitArgument]]) -> tuple:
    """Return what of the arguments the generated code depends on."""
    return tuple(argument.signature() for _, argument in arguments)


def _call(fn: Callable, signature: inspect.Signature, values: dict[str, Any]) -> Any:
    args, kwargs = [], {}
    for name, parameter in signature.parameters.items():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            args.append(values[name])
        elif parameter.kind is parameter.KEYWORD_ONLY:
            kwargs[name] = values[name]
    return fn(*args, **kwargs)


@overload
def jit(func: Callable) -> JitFunction: ...


@overload
def jit(func: None = None) -> Callable[[Callable], JitFunction]: ...


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
        try:
            return func.compile(args, kwargs)
        except Exception as e:
            __tracebackhide__ = True
            raise trimmed(e)  # noqa: B904  (the same error)


def _say_not_launched() -> None:
    say_once(f"COMPILE_ONLY is set: kernels are compiled for {target_arch()} and not launched, their outputs stay as they are")


def _is_placeholder(argument: JitArgument) -> bool:
    """Whether an argument only states its type: a tensor on the host, a null pointer."""
    array = argument.buffer()
    return array.device < 0 if array is not None else isinstance(argument, PointerJitArg) and not argument.address
