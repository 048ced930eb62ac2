"""`flydsl compile FILE:FUNCTION`: the IR or the code of one specialisation of a jit function.

The arguments come from `--arg` (`f32[64,128]`, `i32:5`, `const:4`), or from the first call of the function when
FILE runs as a script; what the script prints goes to standard error. A function that needs no arguments need not be
called. FILE alone means its only jit function.
"""

from __future__ import annotations

import argparse
import contextlib
import pathlib
import sys
import types
from collections.abc import Iterator
from typing import Any

from flydsl.diag import (
    CompileCommandArch,
    CompileCommandArgument,
    CompileCommandFunction,
    CompileCommandOutput,
    OutputUnwritable,
)
from flydsl.utils import env

DESCRIPTION = """Without --arg, FILE is run as a script (as `python FILE` runs it, without arguments) until it calls the
function, whose arguments are then those of this call; the kernel is not launched. With --arg, FILE is imported."""
EMIT = ("origin", "lowered", "llvm", "isa", "obj", "hsaco")


class _Captured(BaseException):
    """Ends the script once the wanted artifact exists."""

    def __init__(self, artifact: Any):
        self.artifact = artifact


class _Exited(Exception):
    """The script ended itself; `names` holds what it had defined by then."""

    def __init__(self, names: dict[str, Any], code: Any):
        self.names = names
        self.status = code if isinstance(code, int) else 1 if code else 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = f"{parser.description} {DESCRIPTION}"
    parser.add_argument(
        "function", metavar="FILE[:FUNCTION]", help="a file and the name of a @flyc.jit function in it, if it has several"
    )
    parser.add_argument("--arch", help="target chip, such as gfx942")
    parser.add_argument("--emit", choices=EMIT, default="isa", help="what to print (default: isa)")
    parser.add_argument(
        "--arg",
        action="append",
        default=[],
        help="one per parameter, in order: f32[64,128] tensor, i32:5 scalar, const:4 constant; without: those of FILE's first call",
    )
    parser.add_argument("-o", "--output", help="write to this file instead of standard output")


def run(args: argparse.Namespace) -> int:
    with env.override(**({"ARCH": args.arch, "FLYDSL_GPU_ARCH": args.arch} if args.arch else {})):
        data = emit(artifact_of(args.function, args.arg, args.arch), args.emit)
    if args.output:
        try:
            pathlib.Path(args.output).write_bytes(data if isinstance(data, bytes) else data.encode())
        except OSError as e:
            raise OutputUnwritable(path=args.output, problem=e.strerror) from e
    elif isinstance(data, bytes) and sys.stdout.isatty():
        raise CompileCommandOutput(what=args.emit, bytes=len(data))
    elif isinstance(data, bytes):
        sys.stdout.buffer.write(data)
    else:
        sys.stdout.write(data if data.endswith("\n") else data + "\n")
    return 0


def emit(artifact: Any, what: str) -> str | bytes:
    """Return one output of an artifact."""
    if what == "origin":
        return artifact.source_ir
    if what == "lowered":
        return artifact.ir
    generated = artifact.codegen(("isa" if what == "llvm" else what,))
    return generated.llvm_ir if what == "llvm" else getattr(generated, what)


def artifact_of(wanted: str, arguments: list[str], arch: str | None = None) -> Any:
    """Return the artifact of `FILE:FUNCTION` for arguments in text form; without any, of its first call when FILE runs.

    Raises   CompileCommandFunction: no such file or function, or it is never called; CompileCommandArch: FILE compiles
             for another chip than `arch`
    """
    path, _, name = wanted.rpartition(":")
    if not pathlib.Path(path).is_file():
        path, name = wanted, ""
    if not pathlib.Path(path).is_file():
        found = f"Relative paths start at {pathlib.Path.cwd()}"
        raise CompileCommandFunction(wanted=wanted, problem="there is no such file", found=found)
    with env.override(COMPILE_ONLY=None), contextlib.redirect_stdout(sys.stderr):
        artifact = _compile(path, name, arguments)
    if arch and artifact.arch != arch:
        raise CompileCommandArch(function=artifact.name, file=path, compiled=artifact.arch, arch=arch)
    return artifact


def _compile(path: str, name: str, arguments: list[str]) -> Any:
    if arguments:
        try:
            names = _names(path, pathlib.Path(path).stem)
        except _Exited as exited:
            names = exited.names
        function = _chosen(path, name, names)
        return function.artifact_for(function.wrap_arguments(tuple(map(parse_argument, arguments)), {}))
    try:
        names, ending = _names(path, "__main__", stop_at=name), "never calls"
    except _Captured as captured:
        return captured.artifact
    except _Exited as exited:
        names, ending = exited.names, f"exits with status {exited.status} and never calls"
    function = _chosen(path, name, names)
    if all(p.default is not p.empty for p in function.signature.parameters.values()):
        return function.artifact_for(function.wrap_arguments((), {}))
    problem = f"running the file {ending} {function.func.__name__}"
    raise CompileCommandFunction(wanted=f"{path}:{name}", problem=problem, found="Pass its arguments with --arg")


def _chosen(path: str, name: str, names: dict[str, Any]) -> Any:
    """Return the jit function of that name, or the only one.

    Raises   CompileCommandFunction
    """
    from flydsl.compiler.jit_function import JitFunction
    from flydsl.compiler.kernel_function import KernelFunction

    functions = {n: f for n, f in names.items() if isinstance(f, JitFunction)}
    if name in functions or not name and len(functions) == 1:
        return functions.get(name) or next(iter(functions.values()))
    if isinstance(names.get(name), KernelFunction):
        problem = f"{name} is a kernel: name the jit function that launches it"
    elif name in names:
        problem = f"{name} is not a @flyc.jit function"
    else:
        problem = f"it has no {name}" if name else f"it has {len(functions) or 'no'} jit functions, and none is named"
    found = f"{path} has {', '.join(functions) or 'none'}"
    raise CompileCommandFunction(wanted=f"{path}:{name}" if name else path, problem=problem, found=found)


def _names(path: str, module_name: str, stop_at: str | None = None) -> dict[str, Any]:
    """Run a file as a module and return its names; as `__main__` it is a script of its own, without arguments.

    Raises   _Captured: it calls the jit function `stop_at` (empty: any one); _Exited: it ends by sys.exit
    """
    module = types.ModuleType(module_name)
    module.__file__ = path
    before = sys.modules.get(module_name), sys.argv
    sys.path.insert(0, str(pathlib.Path(path).resolve().parent))
    sys.modules[module_name], sys.argv = module, [path]
    try:
        code = compile(pathlib.Path(path).read_bytes(), path, "exec", dont_inherit=True)
        with _stopping(stop_at):
            exec(code, module.__dict__)
    except SystemExit as e:
        raise _Exited(module.__dict__, e.code) from None
    finally:
        sys.argv = before[1]
        if before[0] is not None:
            sys.modules[module_name] = before[0]
    return module.__dict__


@contextlib.contextmanager
def _stopping(name: str | None) -> Iterator[None]:
    """Let the first launch of the jit function `name` inside (empty: of any) raise _Captured; None: launches go on."""
    from flydsl.compiler.jit_function import JitFunction

    launch = JitFunction.launch

    def catch(self: JitFunction, artifact: Any, wrapped: Any) -> None:
        if name in ("", self.func.__name__):
            raise _Captured(artifact)
        launch(self, artifact, wrapped)

    if name is not None:
        JitFunction.launch = catch
    try:
        yield
    finally:
        JitFunction.launch = launch


def tensor_types() -> dict[str, str]:
    """Return the element types of `--arg`, in lower case: MLIR's spelling, that of torch and NumPy, u8 to u64 -> the name in `fx`."""
    from flydsl.expr.numeric.elements import ELEMENTS

    found: dict[str, str] = {}
    for name, element in ELEMENTS.items():
        if element.numpy is None or element.width < 8 or name == "Index":
            continue
        short = f"u{element.width}" if element.signed is False else element.mlir
        for spelling in (short, name, element.numpy.removeprefix("ml_dtypes."), short.replace("f8E", "fp8_e")):
            found.setdefault(spelling.lower(), name)
    return {**found, "fp8": "Float8E4M3FN", "bf8": "Float8E5M2"}


def parse_argument(text: str) -> Any:
    """Return the argument that a text such as `f32[64,128]`, `i32:5`, `const:4` describes."""
    import numpy as np

    from flydsl.expr.numeric.elements import ELEMENTS, numpy_type

    kind, bracket, rest = text.partition("[")
    if bracket:
        name = tensor_types().get(kind.lower())
        if name is None or not rest.endswith("]"):
            raise CompileCommandArgument(text=text)
        try:
            return np.zeros([int(n) for n in rest[:-1].split(",")], numpy_type(ELEMENTS[name]))
        except ValueError:
            raise CompileCommandArgument(text=text) from None
    kind, colon, value = text.partition(":")
    if not colon:
        raise CompileCommandArgument(text=text)
    if value in ("True", "False"):
        return value == "True"
    try:
        return float(value) if kind.startswith("f") else int(value)
    except ValueError:
        raise CompileCommandArgument(text=text) from None
