"""Where code is generated: in this process for modules within the proven set, else in a worker process.

LLVM ends the process on faults it did not expect (cannot select, bad constraints, too much LDS). A module that uses only
ops and intrinsics that are known to work on its chip is compiled here; any other, and any with LLVM options, in a worker.
"""

from __future__ import annotations

import functools
import importlib
from dataclasses import dataclass
from types import ModuleType

from flydsl.arch import Chip
from flydsl.diag import Span
from flydsl.diag.errors.target import IntrinsicUnknown, LlvmRejected, MissingLlvm
from flydsl.targets.rocm.guards import ModuleFacts
from flydsl.targets.rocm.options import CodegenOptions


@dataclass(frozen=True)
class CodegenInput:
    """LLVM IR text and what is needed to generate code from it, again if necessary."""

    text: str
    cpu: str
    options: CodegenOptions
    has_inline_asm: bool
    is_proven: bool
    kernel: str
    places: tuple[tuple[str, Span | None], ...] = ()

    @classmethod
    def of(cls, text: str, chip: Chip, options: CodegenOptions, facts: ModuleFacts, kernel: str) -> CodegenInput:
        """Return the input for one module; `facts` come from the guards' walk."""
        return cls(
            text=text, cpu=chip.mcpu, options=options, has_inline_asm=facts.has_inline_asm,
            is_proven=is_proven(facts), kernel=kernel, places=tuple(facts.intrinsics.items()),
        )


def is_proven(facts: ModuleFacts) -> bool:
    """Return whether code for a module may be generated in this process."""
    return not facts.has_inline_asm


@functools.cache
def _codegen() -> ModuleType:
    try:
        return importlib.import_module("flydsl.targets.rocm.codegen")
    except ImportError as error:
        raise MissingLlvm(problem=str(error)) from error


def run_codegen(source: CodegenInput, outputs: tuple[str, ...], bitcode: bytes = b"") -> dict[str, str | bytes]:
    """Return `outputs` of `source`, and the optimised `bitcode`.

    Raises   IntrinsicUnknown, LlvmRejected: LLVM 22.1 refuses the text
    """
    codegen = _codegen()
    level = codegen.codegen_level(source.options.opt_level, source.text)
    request = codegen.Request(source.cpu, source.options.opt_level, level, outputs, source.text, bitcode)
    try:
        return codegen.generate(request)
    except codegen.LlvmError as error:
        raise _rejected(source, error) from error


def _rejected(source: CodegenInput, error: Exception) -> Exception:
    places = dict(source.places)
    for symbol in error.symbols:
        return IntrinsicUnknown(
            name=symbol, hint="", at=places.get(symbol),
            reason_text="a call of it would become a call of an undefined function",
        )
    return LlvmRejected(problem=str(error))
