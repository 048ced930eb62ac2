"""Every switch of the package: name, type, default, one line of help, and whether it changes the code that is
generated.

Values are read from the environment at each access. Standard library only.

    from flydsl.utils import env
    env.debug.dump_ir            # FLYDSL_DUMP_IR as a bool
    with env.override(FLYDSL_DUMP_IR="1"): ...
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

T = TypeVar("T")
_TRUE = frozenset({"1", "true", "yes", "on"})


class EnvOption(Generic[T]):
    """One switch.

    `in_key`: a different value may give different code, so it is part of the cache key. `watched`: a call of a jit
    function notices a change; what is in the key is watched, too. `unused`: why a switch that programs written for
    FlyDSL set has no effect.
    """

    def __init__(
        self,
        default: T,
        env_var: str,
        description: str = "",
        *,
        in_key: bool = False,
        watched: bool = False,
        unused: str = "",
    ):
        self.default = default
        self.unused = unused
        self.watched = watched or in_key
        self.env_var = env_var
        self.description = description
        self.in_key = in_key
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        if self.env_var in SWITCHES and SWITCHES[self.env_var] is not self:
            raise AssertionError(f"{self.env_var} is declared twice")
        SWITCHES[self.env_var] = self

    def __get__(self, obj: Any, owner: type | None = None) -> T:
        return self.value()

    def value(self) -> T:
        """Return what the environment states, else the default."""
        text = os.environ.get(self.env_var)
        return self.default if text is None or (text == "" and not self.keeps_empty) else self.parse(text)

    keeps_empty = False

    def parse(self, text: str) -> T:
        """Return the value that a text states; ValueError names the variable and the text."""
        raise NotImplementedError

    def refuse(self, text: str, expected: str) -> ValueError:
        from flydsl.diag import SwitchValue

        return SwitchValue(variable=self.env_var, value=text, expected=expected)


SWITCHES: dict[str, EnvOption] = {}


class OptBool(EnvOption[bool]):
    """True for 1, true, yes, on in any case; false for anything else."""

    def __init__(self, default: bool, env_var: str, description: str = "", **kwargs: Any):
        super().__init__(default, env_var, description, **kwargs)

    def parse(self, text: str) -> bool:
        return text.strip().lower() in _TRUE


class OptInt(EnvOption[int]):
    """An integer in a range."""

    def __init__(
        self,
        default: int,
        env_var: str,
        description: str = "",
        min_value: int | None = None,
        max_value: int | None = None,
        **kwargs: Any,
    ):
        super().__init__(default, env_var, description, **kwargs)
        self.min_value, self.max_value = min_value, max_value

    def parse(self, text: str) -> int:
        try:
            value = int(text, 0)
        except ValueError:
            raise self.refuse(text, "an integer") from None
        if self.min_value is not None and value < self.min_value:
            raise self.refuse(text, f"at least {self.min_value}")
        if self.max_value is not None and value > self.max_value:
            raise self.refuse(text, f"at most {self.max_value}")
        return value


class OptStr(EnvOption[str]):
    """A text, perhaps one of a few."""

    def __init__(
        self, default: str, env_var: str, description: str = "", choices: list[str] | None = None, **kwargs: Any
    ):
        super().__init__(default, env_var, description, **kwargs)
        self.choices = choices

    def parse(self, text: str) -> str:
        if self.choices is None:
            return text
        for choice in self.choices:
            if text.strip().lower() == choice.lower():
                return choice
        raise self.refuse(text, f"one of {', '.join(self.choices)}")


class OptName(OptStr):
    """A name that is registered in lower case."""

    def parse(self, text: str) -> str:
        return super().parse(text.strip().lower())


class OptPath(OptStr):
    """A path; an empty text means none, not the default."""

    keeps_empty = True


class OptList(EnvOption[list]):
    """A list of texts with a separator."""

    def __init__(self, default: list | None, env_var: str, description: str = "", separator: str = ",", **kwargs: Any):
        super().__init__(default or [], env_var, description, **kwargs)
        self.separator = separator

    def parse(self, text: str) -> list:
        return [part for part in (p.strip() for p in text.split(self.separator)) if part]


class EnvManager:
    """A group of switches with attribute access."""

    def options(self) -> Iterator[EnvOption]:
        """Yield the switches of the group."""
        for value in vars(type(self)).values():
            if isinstance(value, EnvOption):
                yield value

    def to_dict(self) -> dict[str, Any]:
        """Return the current values by attribute name."""
        return {o.name: getattr(self, o.name) for o in self.options()}

    def help(self) -> str:
        """Return a line per switch: variable, default, what it does."""
        return "\n".join(f"{o.env_var:32} {o.default!r:14} {o.description}" for o in self.options())


KTRACE_UNUSED = "in-kernel tracing is not implemented; `flydsl report` and FLYDSL_SIM_TRACE look into kernels"
_LLVM = "code is generated with llvmlite's LLVM"


class CompileEnvManager(EnvManager):
    """How kernels are compiled."""

    arch = OptStr("", "ARCH", "compile target such as gfx942; wins over detection", watched=True)
    compile_only = OptBool(False, "COMPILE_ONLY", "compile, do not launch", watched=True)
    gpu_arch = OptStr("", "FLYDSL_GPU_ARCH", "the architecture that is detected or simulated", watched=True)
    hsa_override = OptStr("", "HSA_OVERRIDE_GFX_VERSION", "second choice for detection, such as 9.4.2", watched=True)
    opt_level = OptInt(2, "FLYDSL_COMPILE_OPT_LEVEL", "backend optimisation level", 0, 3, in_key=True)
    backend = OptName("rocm", "FLYDSL_COMPILE_BACKEND", "backend name", in_key=True)
    warn = OptBool(True, "FLYDSL_WARN", "warn about suspicious code in kernels when they are compiled")
    llvm_dir = OptStr("", "FLYDSL_COMPILE_LLVM_DIR", "external LLVM for code generation", unused=_LLVM)
    lld = OptStr("", "FLYDSL_LLD", "path of ld.lld")
    xnack = OptStr("", "LLVM_GFX1250_ANY_XNACK_CODEGEN", "part of the cache key", in_key=True)


class RuntimeEnvManager(EnvManager):
    """Where kernels run, and the caches."""

    kind = OptStr(
        "auto",
        "FLYDSL_RUNTIME_KIND",
        "auto (an AMD GPU for tensors on it, else the simulator), rocm, sim, null (launches do nothing), or a registered kind",
        watched=True,
    )
    cache_dir = OptPath("~/.flydsl/cache", "FLYDSL_RUNTIME_CACHE_DIR", "disk cache; empty: none")
    cache_limit = OptInt(1024, "FLYDSL_RUNTIME_CACHE_LIMIT_MB", "size of the disk cache; what rests longest goes", 1)
    enable_cache = OptBool(True, "FLYDSL_RUNTIME_ENABLE_CACHE", "use the memory and disk cache", watched=True)
    run_only = OptBool(False, "FLYDSL_RUNTIME_RUN_ONLY", "never compile; a cache miss is an error")
    extra_source_dirs = OptList([], "FLYDSL_EXTRA_SOURCE_DIRS", "further sources hashed in the cache key", ":")
    rocm_agent_timeout = OptInt(
        300, "FLYDSL_ROCM_AGENT_TIMEOUT", "seconds for the agent enumerator", 0, unused="GPUs are found without one"
    )


class DebugEnvManager(EnvManager):
    """Dumps, diagnostics and logging."""

    level = OptInt(0, "FLYDSL_DEBUG", "1 times, 2 decisions, 3 Python, 4 and 5 IR, 6 LLVM and ISA", 0, 6)
    dump_ir = OptBool(False, "FLYDSL_DUMP_IR", "write every stage of each kernel")
    dump_dir = OptStr("~/.flydsl/debug", "FLYDSL_DUMP_DIR", "folder of the dumps")
    dump_asm = OptBool(False, "FLYDSL_DEBUG_DUMP_ASM", "write the final assembly")
    ast_diff = OptBool(False, "FLYDSL_DEBUG_AST_DIFF", "show the source before and after rewriting")
    log_level = OptStr("WARNING", "FLYDSL_DEBUG_LOG_LEVEL", "logger level", ["DEBUG", "INFO", "WARNING", "ERROR"])
    log_to_file = OptStr("", "FLYDSL_DEBUG_LOG_TO_FILE", "log to this file")
    log_to_console = OptBool(False, "FLYDSL_DEBUG_LOG_TO_CONSOLE", "log to standard error")
    print_origin_ir = OptBool(False, "FLYDSL_DEBUG_PRINT_ORIGIN_IR", "print the traced module")
    print_after_all = OptBool(False, "FLYDSL_DEBUG_PRINT_AFTER_ALL", "print the module after every pass")
    enable_debug_info = OptBool(False, "FLYDSL_DEBUG_ENABLE_DEBUG_INFO", "line tables in the code object", in_key=True)
    enable_verifier = OptBool(True, "FLYDSL_DEBUG_ENABLE_VERIFIER", "verify the IR at layer borders")
    show_stacktrace = OptBool(False, "FLYDSL_DEBUG_SHOW_STACKTRACE", "full Python stacks in errors")
    max_loc_depth = OptInt(5, "FLYDSL_DEBUG_MAX_LOC_DEPTH", "call-site chain kept in locations", 1, in_key=True)


class AutotuneEnvManager(EnvManager):
    """Autotuning."""

    force = OptBool(False, "FLYDSL_AUTOTUNE", "force searching")
    cache_dir = OptStr("~/.flydsl/autotune", "FLYDSL_AUTOTUNE_CACHE_DIR", "results of searches")
    config_dir = OptStr("", "FLYDSL_AUTOTUNE_CONFIG_DIR", "shipped artifacts")


class KtraceEnvManager(EnvManager):
    """In-kernel tracing."""

    enable = OptBool(False, "FLYDSL_KTRACE_ENABLE", "instrument kernels", unused=KTRACE_UNUSED)
    buffer_bytes = OptInt(67108864, "FLYDSL_KTRACE_BUFFER_BYTES", "bytes of records", 4096, 2147483648, unused=KTRACE_UNUSED)
    blocks = OptStr("", "FLYDSL_KTRACE_BLOCKS", "block filter", unused=KTRACE_UNUSED)
    dump_dir = OptStr("", "FLYDSL_KTRACE_DUMP_DIR", "folder of the trace files", unused=KTRACE_UNUSED)


class SimEnvManager(EnvManager):
    """The simulator."""

    check = OptStr("", "FLYDSL_SIM_CHECK", "checks, such as bounds,race; empty or default: the cheap ones; all; none")
    on_finding = OptStr("", "FLYDSL_SIM_ON_FINDING", "what a fault does", ["raise", "warn", "collect"])
    schedule = OptStr("", "FLYDSL_SIM_SCHEDULE", "lockstep, ahead, reverse, random:SEED")
    trace = OptStr("", "FLYDSL_SIM_TRACE", "block=0,wave=1: print the values of this wave's source lines as they change")
    trace_lines = OptStr("", "FLYDSL_SIM_TRACE_LINES", "source lines of the trace, such as 40-60")
    dump = OptPath("", "FLYDSL_SIM_DUMP", "folder for launches with faults; `python -m flydsl.tools.replay` repeats them")


compile = CompileEnvManager()
runtime = RuntimeEnvManager()
debug = DebugEnvManager()
autotune = AutotuneEnvManager()
ktrace = KtraceEnvManager()
sim = SimEnvManager()
GROUPS = {"compile": compile, "runtime": runtime, "debug": debug, "autotune": autotune, "ktrace": ktrace, "sim": sim}


def key_values() -> tuple[tuple[str, str], ...]:
    """Return the variables that change generated code, with their values as text, for the cache key: two spellings of a
    value, or none and the default, are one.
    """
    return tuple((name, str(option.value())) for name, option in SWITCHES.items() if option.in_key)


def watched_values() -> tuple[str | None, ...]:
    """Return the texts of the watched variables."""
    return tuple(os.environ.get(name) for name, option in SWITCHES.items() if option.watched)


def watch(absent: Callable[[Mapping, Any], None], equal: Callable[[Mapping, Any, Any], None]) -> None:
    """State what keeps the watched variables as they are: `absent(mapping, key)` of those not set, `equal(mapping,
    key, value)` of the others.

    `os.environ` itself takes a microsecond per read, which is too much for each launch, so its table is used where it
    has one.
    """
    table = getattr(os.environ, "_data", None)
    table = table if type(table) is dict else os.environ
    for name, option in SWITCHES.items():
        if option.watched:
            key = os.environ.encodekey(name) if table is not os.environ else name
            if key in table:
                equal(table, key, table[key])
            else:
                absent(table, key)


def set_without_effect() -> list[EnvOption]:
    """Return the switches that are set and have no effect."""
    return [option for name, option in SWITCHES.items() if option.unused and os.environ.get(name)]


@contextmanager
def override(**values: str | None) -> Iterator[None]:
    """Set environment variables inside the block; None removes one."""
    saved = {name: os.environ.get(name) for name in values}
    try:
        for name, value in values.items():
            _set(name, value)
        yield
    finally:
        for name, value in saved.items():
            _set(name, value)


def _set(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
