"""Ahead of time: one file with code for several chips, launched without MLIR and LLVM (`runtime.exported`)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flydsl.compiler.jit_executor import CompiledArtifact
from flydsl.compiler.jit_function import JitFunction
from flydsl.compiler.parameters import described_parameters, exportable
from flydsl.diag import NotExportable
from flydsl.runtime import stored_artifact as stored
from flydsl.runtime.disk_cache import Entry
from flydsl.runtime.exported import FORMAT
from flydsl.utils import env


def export(path: str | Path, function: JitFunction, *args: Any, archs: Sequence[str] = (), **kwargs: Any) -> Path:
    """Compile a jit function for arguments and `archs` (default: the present target) and write all of it to one file.

    Nothing is launched; the arguments may be tensors of any device. Constants are compiled in and are no parameters of
    the exported function. Raises   NotExportable
    """
    artifacts = materialise(function, *args, archs=archs, **kwargs)
    arguments = function.wrap_arguments(args, kwargs)
    first = next(iter(artifacts.values()))
    if first.post_load:
        raise NotExportable(problem="functions of Python run after its module is loaded")
    facts = {
        "export": FORMAT,
        "name": first.name,
        "kernels": list(first.kernel_names),
        "parameters": exportable(described_parameters(arguments)),
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
    """Compile to code objects without a launch; return the artifact of each chip. Fills the disk cache where one is in
    force."""
    artifacts = {}
    for arch in archs or (None,):
        target = {} if arch is None else {"ARCH": arch, "FLYDSL_GPU_ARCH": arch}
        with env.override(**target):
            artifact = function.artifact_for(function.wrap_arguments(args, kwargs))
            if artifact.kernel_names:
                artifact.code_object()
            artifacts[artifact.arch] = artifact
    return artifacts


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
