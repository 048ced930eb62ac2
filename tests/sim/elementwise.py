"""Elementwise kernels from plain functions: run in the simulator, or as LLVM IR on the host, on operands of any
scalar class.

Operands and results travel as bits in int64 arrays, so that the classes under test are not those of the
tensors.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import llvmlite.binding as llvm
import numpy as np

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.expr.numeric import CLASSES, Numeric

BLOCK = 64


@dataclass(frozen=True)
class Case:
    """A function of scalars and the operands to call it with, one array of each operand's NumPy type."""

    function: Callable[..., Any]
    classes: tuple[type[Numeric], ...]
    operands: tuple[np.ndarray, ...]


def to_bits(values: np.ndarray, cls: type[Numeric]) -> np.ndarray:
    """Return values of a class as int64 words holding their bits."""
    array = np.asarray(values).astype(cls.numpy_dtype)
    if cls.width == 1:
        return array.astype(np.int64)
    return array.view(f"u{cls.width // 8}").astype(np.uint64).view(np.int64)


def from_bits(words: np.ndarray, cls: type[Numeric]) -> np.ndarray:
    """Return the values whose bits the words hold."""
    if cls.width == 1:
        return words.astype(bool)
    return words.view(np.uint64).astype(f"u{cls.width // 8}").view(cls.numpy_dtype)


def bits_class(cls: type[Numeric]) -> type[Numeric]:
    return CLASSES[f"Uint{cls.width}"]


def load(tensor: Any, slot: int, i: Any, cls: type[Numeric]) -> Numeric:
    """Return operand number `slot` of lane `i`."""
    word = tensor[slot, i]
    if cls.width == 1:
        return cls(word)
    return bits_class(cls)(word).bitcast(cls) if cls.is_float else cls(word)


def keep(tensor: Any, slot: int, i: Any, x: Any) -> None:
    """Write a result's bits."""
    if x.dtype.width == 1:
        tensor[slot, i] = fx.Int64(x)
        return
    if x.is_static():
        x = fx.Int64(x) if x.dtype.is_integer else x
    word = x.bitcast(bits_class(x.dtype)) if x.dtype.is_float else bits_class(x.dtype)(x)
    tensor[slot, i] = fx.Int64(word)


class Program:
    """All cases in one kernel; `results` holds the class of each result once the kernel is traced."""

    def __init__(self, cases: Sequence[Case]):
        self.cases = cases
        self.lanes = max(len(op) for case in cases for op in case.operands)
        self.results: list[type[Numeric]] = []
        words = [to_bits(np.resize(op, self.lanes), c) for case in cases for op, c in zip(case.operands, case.classes)]
        self.inputs = np.stack(words)

    def body(self, a: Any, o: Any, i: Any) -> None:
        """Trace every case for lane `i`."""
        self.results, slot = [], 0
        for number, case in enumerate(self.cases):
            operands = [load(a, slot + k, i, c) for k, c in enumerate(case.classes)]
            slot += len(operands)
            x = case.function(*operands)
            self.results.append(x.dtype)
            keep(o, number, i, x)

    def simulate(self) -> list[np.ndarray]:
        """Return the results of a kernel with one lane per thread."""
        body = self.body

        @flyc.kernel
        def kernel(a: fx.Tensor, o: fx.Tensor, n: fx.Int32):
            i = fx.block_idx.x * BLOCK + fx.thread_idx.x
            if i < n:
                body(a, o, i)

        @flyc.jit
        def run(a: fx.Tensor, o: fx.Tensor, n: fx.Int32):
            kernel(a, o, n).launch(grid=((n + BLOCK - 1) // BLOCK, 1, 1), block=(BLOCK, 1, 1))

        out = np.zeros((len(self.cases), self.lanes), np.int64)
        run(self.inputs, out, self.lanes)
        return self._typed(out)

    def run_on_host(self) -> list[np.ndarray]:
        """Return the results of the LLVM IR of a kernel with one thread, which loops over the lanes, run on this machine."""
        body = self.body

        @flyc.kernel
        def kernel(a: fx.Tensor, o: fx.Tensor, n: fx.Int32):
            for i in range(n):
                body(a, o, i)

        @flyc.jit
        def run(a: fx.Tensor, o: fx.Tensor, n: fx.Int32):
            kernel(a, o, n).launch(grid=(1, 1, 1), block=(1, 1, 1))

        out = np.zeros((len(self.cases), self.lanes), np.int64)
        artifact = run.artifact_for(run.wrap_arguments((self.inputs, out, self.lanes), {}))
        text = artifact.codegen(()).llvm_ir
        call_on_host(text, self.inputs, out)
        return self._typed(out)

    def _typed(self, out: np.ndarray) -> list[np.ndarray]:
        return [from_bits(words, c) for words, c in zip(out, self.results, strict=True)]


class GpuIntrinsics(Exception):
    """The LLVM IR calls intrinsics of the GPU, so this machine cannot run it."""


def host_text(text: str) -> str:
    """Return the LLVM IR of a kernel as an ordinary function of this machine.

    Raises   GpuIntrinsics
    """
    intrinsics = sorted(set(re.findall(r"@(llvm\.amdgcn\.[\w.]+)", text)))
    if intrinsics:
        raise GpuIntrinsics(", ".join(intrinsics))
    text = re.sub(r"^attributes #.*$|^![^\n]*$|^target .*$", "", text, flags=re.M)
    text = re.sub(r" #\d+|, ![\w.]+ !\d+| ![\w.]+ !\d+", "", text)
    return text.replace("amdgpu_kernel ", "").replace(" addrspace(1)", "").replace(" addrspace(5)", "")


def call_on_host(text: str, a: np.ndarray, o: np.ndarray) -> None:
    """Run a kernel(a, o, n) of two row-major matrices, given as LLVM IR of the GPU, on this machine."""
    import ctypes

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(host_text(text))
    module.verify()
    target = llvm.Target.from_default_triple()
    machine = target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=2
    )
    name = next(f.name for f in module.functions if not f.is_declaration)
    with llvm.create_mcjit_compiler(module, machine) as engine:
        engine.finalize_object()
        # Per matrix: pointer, two extents, one run-time stride, each an argument of its own.
        matrix = (ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32, ctypes.c_int64)
        function = ctypes.CFUNCTYPE(None, *matrix, *matrix, ctypes.c_int32)(engine.get_function_address(name))
        function(a.ctypes.data, *a.shape, a.shape[1], o.ctypes.data, *o.shape, o.shape[1], a.shape[1])
