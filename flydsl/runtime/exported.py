"""Kernels exported to one file, loaded and launched where neither MLIR nor LLVM is installed.

    run = flydsl.runtime.exported.load("gemm.flyc")
    run(a, b, c, m, n, k)

The file (`disk_cache.Entry`) holds for each chip the code object, the facts of its kernels, the host function and the
simulator's text; the manifest says what the parameters are. `compiler.export` writes it.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from flydsl.diag import ExportedArch, ExportedArgument, ExportedCount, ExportedFile, TensorPromise
from flydsl.diag.source import mark_internal
from flydsl.runtime import host_math
from flydsl.runtime import stored_artifact as stored
from flydsl.runtime.device import chip_for, chosen_for, target_arch
from flydsl.runtime.disk_cache import Entry
from flydsl.runtime.host_arrays import HostArray, argument_array, broken_promise, common_device
from flydsl.runtime.kinds import Loaded, current_runtime, suited_to
from flydsl.runtime.small_floats import NAMES, small_float_bits
from flydsl.runtime.streams import stream_handle
from flydsl.targets.base import KernelInfo
from flydsl.targets.stored_text import run_text

FORMAT = 2
_WIDTHS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "index": 64}


def load(path: str | Path) -> Exported:
    """Return the function of an exported file.

    Raises   ExportedFile: it is damaged, or of another format
    """
    try:
        entry = Entry.from_bytes(Path(path).read_bytes())
        if entry.facts.get("export") != FORMAT:
            raise ValueError(f"its format is {entry.facts.get('export')}, not {FORMAT}")
        return Exported(entry)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
        raise ExportedFile(path=str(path), problem=str(e)) from None


class ForArch:
    """The exported code for one chip, as runtimes load it."""

    def __init__(self, entry: Entry, arch: str):
        self.entry, self.arch = entry, arch
        self.name: str = entry.facts["name"]
        self.kernel_names = tuple(entry.facts["kernels"])
        text = self._text(stored.HOST)
        self.host: Callable = run_text(text, f"<host function of {self.name}>", host_math.NAMES)["host"]
        mark_internal(self.host.__code__, True)
        self.loaded: dict[str, Loaded] = {}
        self.post_load: tuple[Callable, ...] = ()  # functions with initialisers are not exportable

    def _text(self, name: str) -> str | None:
        section = f"{self.arch}/{name}"
        return (
            stored.unpack(Entry({}, {name: self.entry.sections[section]}), name)
            if section in self.entry.sections
            else None
        )

    def code_object(self) -> tuple[bytes, dict[str, KernelInfo]]:
        """Return the code object and the facts of its kernels."""
        return self.entry.sections[f"{self.arch}/{stored.CODE}"], stored.kernels_from_json(self._text(stored.KERNELS))

    def sim_program(self) -> Any:
        """Return the simulator's program."""
        from flydsl.targets.sim import Program

        return Program.from_payload({**json.loads(self._text(stored.SIM)), "ir": ""}, checked=True)


class Exported:
    """A function from a file: called with the launch's arguments, without those that were constants."""

    def __init__(self, entry: Entry):
        self.name: str = entry.facts["name"]
        self.parameters: list[dict[str, Any]] = entry.facts["parameters"]
        self.archs: tuple[str, ...] = tuple(entry.facts["archs"])
        self._readers = [(p, _READERS[p["kind"]]) for p in self.parameters]
        self._entry = entry
        self._code: dict[str, ForArch] = {}

    def __call__(self, *args: Any) -> None:
        if len(args) != len(self._readers):
            names = ", ".join(p["name"] for p in self.parameters)
            raise ExportedCount(function=self.name, given=len(args), expected=len(self._readers), names=names)
        flat: list[Any] = []
        buffers: list[tuple[str, HostArray]] = []
        for (parameter, read), value in zip(self._readers, args, strict=True):
            array = read(self.name, parameter, value, flat)
            if array is not None:
                buffers.append((parameter["name"], array))
        with suited_to(array.device for _, array in buffers):
            self._launch(flat, buffers)

    def _launch(self, flat: list[Any], buffers: list[tuple[str, HostArray]]) -> None:
        with chosen_for(chip_for(common_device(buffers))):
            code = self.code(target_arch())
        runtime = current_runtime()
        if runtime.name not in code.loaded:
            code.loaded[runtime.name] = runtime.load(code)
        code.host(code.loaded[runtime.name].launcher(buffers), *flat)

    def code(self, arch: str) -> ForArch:
        """Return the code for a chip.

        Raises   ExportedArch: the file has none
        """
        if arch not in self.archs:
            raise ExportedArch(function=self.name, arch=arch, archs=", ".join(self.archs))
        if arch not in self._code:
            self._code[arch] = ForArch(self._entry, arch)
        return self._code[arch]


def _tensor(function: str, parameter: dict, value: Any, flat: list) -> HostArray:
    array = value if isinstance(value, HostArray) else argument_array(value, parameter["name"], missing_ok=True)
    shape, stride = parameter["shape"], parameter["stride"]
    if array is None:
        raise _wrong(function, parameter, type(value).__name__)
    got = f"{array.elem} of shape {tuple(array.shape)}, strides {tuple(array.strides)}"
    if array.elem != parameter["elem"] or len(array.shape) != len(shape):
        raise _wrong(function, parameter, got)
    fixed = [(n, w) for n, w in zip((*array.shape, *array.strides), (*shape, *stride), strict=True) if w is not None]
    if any(n != w for n, w in fixed) or max(array.shape) >= 2**31:
        raise _wrong(function, parameter, got)
    divisors = [{int(i): div for i, div in parameter[f"{what}_divisors"]} for what in ("shape", "stride")]
    problem = broken_promise(array, parameter["align"], *divisors, parameter["stride_bits"])
    if problem:
        raise TensorPromise(problem=f"`{parameter['name']}`: {problem}")
    flat.append(array.address)
    flat += [n for n, w in zip(array.shape, shape, strict=True) if w is None]
    flat += [n for n, w in zip(array.strides, stride, strict=True) if w is None]
    return array


def _pointer(function: str, parameter: dict, value: Any, flat: list) -> None:
    value = value.value if isinstance(value, ctypes.c_void_p) else getattr(value, "address", value)
    if value is not None and type(value) is not int:
        raise _wrong(function, parameter, type(value).__name__)
    flat.append(value or 0)


def _number(function: str, parameter: dict, value: Any, flat: list) -> None:
    width = _WIDTHS.get(parameter["elem"])
    value = value.item() if isinstance(value, np.generic) and value.dtype.kind in "biuf" else value
    if width and isinstance(value, float) and value.is_integer():  # as the jit function does
        value = int(value)
    if not isinstance(value, (int, float)) or (width and not isinstance(value, int)):
        raise _wrong(function, parameter, type(value).__name__)
    if width and not -(1 << width - 1) <= value < 1 << width:
        raise _wrong(function, parameter, str(value))
    if parameter["elem"] in NAMES:
        flat.append(small_float_bits(parameter["elem"], value))
    else:
        flat.append(value if width else float(value))


def _stream(function: str, parameter: dict, value: Any, flat: list) -> None:
    flat.append(stream_handle(value))


def _wrong(function: str, parameter: dict, got: str) -> ExportedArgument:
    if parameter["kind"] != "tensor":
        wanted = f"{parameter['kind']} {parameter.get('elem', '')}"
    else:
        shape, stride = (", ".join("?" if n is None else str(n) for n in parameter[k]) for k in ("shape", "stride"))
        wanted = f"{parameter['elem']} of shape ({shape}), strides ({stride})"
    return ExportedArgument(function=function, parameter=parameter["name"], got=got, wanted=wanted)


_READERS: dict[str, Callable] = {"tensor": _tensor, "pointer": _pointer, "number": _number, "stream": _stream}
