"""`flydsl compile FILE:FUNCTION`: the IR or the code of one specialisation of a jit function.

The arguments come from `--arg` (`f32[64,128]`, `i32:5`, `const:4`), or from the first call of the function when
FILE runs as a script; what the script prints goes to standard error. FILE alone means its only jit function.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import pathlib
import runpy
import sys
from typing import Any

from flydsl.diag import CompileCommandArgument, CompileCommandFunction, CompileCommandOutput
from flydsl.utils import env

EMIT = ("origin", "lowered", "llvm", "isa", "obj", "hsaco")


class _Captured(BaseException):
    """Ends the script once the wanted artifact exists."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "function", metavar="FILE[:FUNCTION]", help="a file and the name of a @flyc.jit function in it, if it has several"
    )
    parser.add_argument("--arch", help="target chip, such as gfx942")
    parser.add_argument("--emit", choices=EMIT, default="isa", help="what to print (default: isa)")
    parser.add_argument(
        "--arg", action="append", default=[], help="f32[64,128] tensor, i32:5 scalar, const:4 constant"
    )
    parser.add_argument("-o", "--output", help="write to this file instead of standard output")


def run(args: argparse.Namespace) -> int:
    with env.override(**({"ARCH": args.arch, "FLYDSL_GPU_ARCH": args.arch} if args.arch else {})):
        data = emit(artifact_of(args.function, args.arg), args.emit)
    if args.output:
        pathlib.Path(args.output).write_bytes(data if isinstance(data, bytes) else data.encode())
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


def artifact_of(wanted: str, arguments: list[str]) -> Any:
    """Return the artifact of `FILE:FUNCTION` for arguments in text form; without any, of its first call when FILE runs.

    Raises   CompileCommandFunction: no such file or function, or it is never called
    """
    path, _, name = wanted.rpartition(":")
    if not pathlib.Path(path).is_file():
        path, name = wanted, ""
    if not pathlib.Path(path).is_file():
        raise CompileCommandFunction(wanted=wanted, problem="there is no such file", found="")
    with env.override(COMPILE_ONLY=None), contextlib.redirect_stdout(sys.stderr):
        return _compile(path, name, arguments)


def _compile(path: str, name: str, arguments: list[str]) -> Any:

    sys.path.insert(0, str(pathlib.Path(path).resolve().parent))
    if arguments:
        function = _chosen(path, name, vars(_load(path)))
        return function.artifact_for(function.wrap_arguments(tuple(map(parse_argument, arguments)), {}))
    artifact, names = _first_call(path, name)
    if artifact is not None:
        return artifact
    function = _chosen(path, name, names)
    problem = f"running the file never calls {function.func.__name__}"
    raise CompileCommandFunction(wanted=f"{path}:{name}", problem=problem, found="pass its arguments with --arg")


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


def _first_call(path: str, name: str) -> tuple[Any, dict[str, Any]]:
    """Run a file as a script until it calls the jit function (any one without a name); return the artifact, or None
    and the file's names."""
    from flydsl.compiler.jit_function import JitFunction

    captured: list = []
    launch = JitFunction.launch

    def catch(self: JitFunction, artifact: Any, wrapped: Any) -> None:
        if name in ("", self.func.__name__):
            captured.append(artifact)
            raise _Captured
        launch(self, artifact, wrapped)

    JitFunction.launch = catch
    names: dict[str, Any] = {}
    try:
        names = runpy.run_path(path, run_name="__main__")
    except _Captured:
        return captured[0], {}
    finally:
        JitFunction.launch = launch
    return None, names


def _load(path: str) -> Any:
    spec = importlib.util.spec_from_file_location(pathlib.Path(path).stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def parse_argument(text: str) -> Any:
    """Return the argument that a text such as `f32[64,128]`, `i32:5`, `const:4` describes."""
    import ml_dtypes
    import numpy as np

    kind, bracket, rest = text.partition("[")
    if bracket:
        dtypes = {"f32": np.float32, "f16": np.float16, "f64": np.float64, "bf16": ml_dtypes.bfloat16}
        dtypes |= {f"i{w}": f"int{w}" for w in (8, 16, 32, 64)} | {"f8E4M3FN": ml_dtypes.float8_e4m3fn}
        if kind not in dtypes or not rest.endswith("]"):
            raise CompileCommandArgument(text=text)
        try:
            return np.zeros([int(n) for n in rest[:-1].split(",")], dtypes[kind])
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
