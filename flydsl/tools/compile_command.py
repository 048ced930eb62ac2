"""`flydsl compile FILE:FUNCTION`: the IR or the code of one specialisation of a jit function.

The arguments come from `--arg` (`f32[64,128]`, `i32:5`, `const:4`), or from the first call of the function when
FILE runs as a script.
"""

from __future__ import annotations

import argparse
import importlib.util
import pathlib
import runpy
import sys
from typing import Any

from flydsl.diag import CompileCommandArgument, CompileCommandFunction
from flydsl.utils import env

EMIT = ("origin", "lowered", "llvm", "isa", "obj", "hsaco")


class _Captured(BaseException):
    """Ends the script once the wanted artifact exists."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("function", metavar="FILE:FUNCTION", help="a file and the name of a @flyc.jit function in it")
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
    if not path or not pathlib.Path(path).is_file():
        raise CompileCommandFunction(wanted=wanted, problem="there is no such file", found="")
    with env.override(COMPILE_ONLY=None):
        return _compile(path, name, arguments)


def _compile(path: str, name: str, arguments: list[str]) -> Any:
    from flydsl.compiler.jit_function import JitFunction

    sys.path.insert(0, str(pathlib.Path(path).resolve().parent))
    if arguments:
        function = getattr(_load(path), name, None)
        if not isinstance(function, JitFunction):
            raise CompileCommandFunction(wanted=f"{path}:{name}", problem="it is not a @flyc.jit function", found="")
        with env.override(FLYDSL_DEBUG_PRINT_ORIGIN_IR=None):
            return function.artifact_for(function.wrap_arguments(tuple(map(parse_argument, arguments)), {}))
    captured: list = []
    launch = JitFunction.launch

    def catch(self: JitFunction, artifact: Any, wrapped: Any) -> None:
        if self.func.__name__ == name:
            captured.append(artifact)
            raise _Captured
        launch(self, artifact, wrapped)

    JitFunction.launch = catch
    try:
        runpy.run_path(path, run_name="__main__")
    except _Captured:
        return captured[0]
    finally:
        JitFunction.launch = launch
    raise CompileCommandFunction(
        wanted=f"{path}:{name}", problem="running the file never calls it", found="pass its arguments with --arg"
    )


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
        return np.zeros([int(n) for n in rest[:-1].split(",")], dtypes[kind])
    kind, colon, value = text.partition(":")
    if not colon:
        raise CompileCommandArgument(text=text)
    if value in ("True", "False"):
        return value == "True"
    return float(value) if kind.startswith("f") else int(value)
