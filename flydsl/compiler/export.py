"""Ahead of time: one file with code for several chips, launched without MLIR and LLVM (`runtime.exported`)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flydsl import layout as la
from flydsl.compiler.jit_argument import JitArgument, MemRefJitArg, NumericJitArg, PointerJitArg, StreamJitArg
from flydsl.compiler.jit_executor import CompiledArtifact
from flydsl.compiler.jit_function import JitFunction
from flydsl.diag import NotExportable
from flydsl.runtime import stored_artifact as stored
from flydsl.runtime.disk_cache import Entry
from flydsl.runtime.exported import FORMAT
from flydsl.utils import env


def export(path: str | Path, function: JitFunction, *args: Any, archs: Sequence[str] = (), **kwargs: Any) -> Path:
    """Compile a jit function for arguments and `archs` (default: the present target) and write all of it to one file.

    Nothing is launched; the arguments may be tensors of any device. Constants are compiled in and are no parameters of the exported function.
    Raises   NotExportable
    """
    artifacts = materialise(function, *args, archs=archs, **kwargs)
    arguments = function.wrap_arguments(args, kwargs)
    first = next(iter(artifacts.values()))
    facts = {
        "export": FORMAT,
        "name": first.name,
        "kernels": list(first.kernel_names),
        "parameters": parameters(arguments),
        "archs": list(artifacts),
    }
    entry = Entry(facts)
    for arch, artifact in artifacts.items():
        for name, data in _sections(artifact).items():
            entry.sections[f"{arch}/{name}"] = data
    path = Path(path)
    path.write_bytes(entry.to_bytes())
    return path


def materialise(
    function: JitFunction, *args: Any, archs: Sequence[str] = (), **kwargs: Any
) -> dict[str, CompiledArtifact]:
    """Compile to code objects without a launch; return the artifact of each chip. Fills the disk cache where one is in force."""
    artifacts = {}
    for arch in archs or (None,):
        target = {} if arch is None else {"ARCH": arch, "FLYDSL_GPU_ARCH": arch}
        with env.override(**target):
            artifact = function.artifact_for(function.wrap_arguments(args, kwargs))
            if artifact.kernel_names:
                artifact.code_object()
            artifacts[artifact.arch] = artifact
    return artifacts


def parameters(arguments: Sequence[tuple[str, JitArgument]]) -> list[dict[str, Any]]:
    """Return what the launch's arguments must be, as JSON values; constants are left out.

    Raises   NotExportable: an argument of a class of the user's
    """
    return [_parameter(name, argument) for name, argument in arguments if argument.ir_types()]


def _parameter(name: str, argument: JitArgument) -> dict[str, Any]:
    if isinstance(argument, MemRefJitArg):
        layout = argument.plain.layout
        shape, stride = ([None if isinstance(n, la.Sym) else n for n in _modes(x)] for x in (layout.shape, layout.stride))
        stride_bits = argument.stride_width
        return {"kind": "tensor", "name": name, "elem": argument.dtype, "shape": shape, "stride": stride, "stride_bits": stride_bits}
    if isinstance(argument, PointerJitArg):
        return {"kind": "pointer", "name": name, "elem": argument.plain.elem}
    if isinstance(argument, NumericJitArg):
        return {"kind": "number", "name": name, "elem": argument.dsl_type.element.mlir, "dtype": argument.dsl_type.__name__}
    if isinstance(argument, StreamJitArg):
        return {"kind": "stream", "name": name}
    raise NotExportable(problem=f"parameter `{name}` is a {type(argument).__name__}")


def _modes(x: Any) -> tuple:
    return x if isinstance(x, tuple) else (x,)


def _sections(artifact: CompiledArtifact) -> dict[str, bytes]:
    """Return what is exported of one chip's artifact."""
    code, kernels = artifact.code_object()
    payload = {**artifact.sim_program().to_payload(), "ir": ""}
    return {
        stored.HOST: stored.pack(stored.HOST, artifact.host_text),
        stored.CODE: code,
        stored.KERNELS: stored.pack(stored.KERNELS, stored.kernels_to_json(kernels)),
        stored.SIM: stored.pack(stored.SIM, json.dumps(payload)),
    }
