"""Where code is generated: in this process for modules within the proven set, else in a worker process.

LLVM ends the process on faults it did not expect (cannot select, bad constraints, too much LDS). A module that
uses only ops and intrinsics that are known to work on its chip is compiled here; any other, and any with LLVM
options, in a worker.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import re
from types import ModuleType
from typing import Any

from flydsl.arch import Chip
from flydsl.diag import Span
from flydsl.diag.errors.target import (
    CodegenFailed,
    IntrinsicUnknown,
    LlvmOptionBad,
    LlvmRejected,
    MissingLlvm,
    UndefinedSymbol,
)
from flydsl.targets.rocm import intrinsics, worker
from flydsl.targets.rocm.guards import ModuleFacts
from flydsl.targets.rocm.options import CodegenOptions
from flydsl.utils.record import record


@record
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
            text=text,
            cpu=chip.mcpu,
            options=options,
            has_inline_asm=facts.has_inline_asm,
            is_proven=is_proven(facts, text, chip),
            kernel=kernel,
            places=tuple(facts.intrinsics.items()),
        )


# ops of the LLVM dialect that were compiled for every chip with every type below (tests/unit/rocm/test_proven.py)
_PROVEN_LLVM = frozenset(
    f"llvm.{name}"
    for name in """
    add addrspacecast alloca and ashr atomicrmw bitcast br call call_intrinsic cmpxchg cond_br extractelement
    extractvalue fadd fcmp fdiv fence fmul fneg fpext fptosi fptoui fptrunc frem fsub func getelementptr icmp
    insertelement insertvalue inttoptr load lshr mlir.addressof mlir.constant mlir.global mlir.poison mlir.undef
    mlir.zero mul or ptrtoint return sdiv select sext shl shufflevector sitofp srem store sub switch trunc udiv
    uitofp unreachable urem xor zext intr.abs intr.bitreverse intr.bswap intr.ceil intr.copysign intr.ctlz
    intr.ctpop intr.cttz intr.exp intr.exp2 intr.fabs intr.floor intr.fma intr.fmuladd intr.fshl intr.fshr
    intr.is.fpclass intr.ldexp intr.log intr.log10 intr.log2 intr.maximum intr.maxnum intr.minimum intr.minnum
    intr.round intr.roundeven intr.sadd.sat intr.smax intr.smin intr.sqrt intr.ssub.sat intr.trunc intr.uadd.sat
    intr.uadd.with.overflow intr.umax intr.umin intr.usub.sat intr.vector.reduce.add intr.vector.reduce.and
    intr.vector.reduce.fadd intr.vector.reduce.fmax intr.vector.reduce.fmaximum intr.vector.reduce.fmin
    intr.vector.reduce.fminimum intr.vector.reduce.fmul intr.vector.reduce.mul intr.vector.reduce.or
    intr.vector.reduce.smax intr.vector.reduce.smin intr.vector.reduce.umax intr.vector.reduce.umin
    intr.vector.reduce.xor
    """.split()
)


_PROVEN_INTRINSICS = frozenset(
    f"llvm.{name}"
    for name in "ceil copysign exp exp2 fabs floor fma ldexp log log10 log2 round roundeven sqrt trunc".split()
)


def is_proven(facts: ModuleFacts, text: str, chip: Chip) -> bool:
    """Return whether code for a module may be generated in this process.

    That is: only ops that are known to compile on every chip, intrinsics that are known to compile on this one,
    and no types, private arrays or calls outside what was tried.
    """
    return (
        _LEAVES_STATE not in text
        and facts.llvm_ops <= _PROVEN_LLVM
        and all(name.startswith(intrinsics.PREFIX) or name in _PROVEN_INTRINSICS for name in facts.intrinsics)
        and all(intrinsics.is_proven(line, chip) for line in intrinsics.declarations(text))
        and not facts.odd_types
        and not facts.calls
        and facts.private_bytes <= _MOST_PRIVATE_BYTES
    )


# Its strategies keep counters of the first kernel they see in static variables of LLVM: the second fails an assertion.
_LEAVES_STATE = "@llvm.amdgcn.iglp.opt"
_MOST_PRIVATE_BYTES = 32768  # per lane; LLVM refuses far above, and what is needed with spills is not known before


@functools.cache
def load_codegen() -> ModuleType:
    """Return `codegen`, with llvmlite imported.

    Raises   MissingLlvm
    """
    try:
        return importlib.import_module("flydsl.targets.rocm.codegen")
    except (ImportError, OSError) as error:  # OSError: its library does not load
        raise MissingLlvm(problem=str(error)) from error


def run_codegen(source: CodegenInput, outputs: tuple[str, ...], bitcode: bytes = b"") -> dict[str, str | bytes]:
    """Return `outputs` of `source`, and the optimised `bitcode`.

    Raises   IntrinsicUnknown, LlvmRejected: LLVM 22.1 refuses the text; CodegenFailed: LLVM gave up on it;
             LlvmOptionBad, MissingLlvm
    """
    codegen = load_codegen()
    level = codegen.codegen_level(source.options.opt_level, source.text)
    libraries = source.options.link_libs
    request = codegen.Request(source.cpu, source.options.opt_level, level, outputs, source.text, bitcode, libraries)
    options = source.options.llvm_options
    isolated = source.options.isolate
    if options or libraries or (not source.is_proven if isolated is None else isolated):
        return _run_isolated(source, request, options)
    try:
        return codegen.generate(request)
    except codegen.LlvmError as error:
        raise _rejected(source, str(error), error.symbols) from error
    except codegen.NoAmdgpu as error:
        raise MissingLlvm(problem=str(error)) from error


def _run_isolated(source: CodegenInput, request: Any, options: tuple[tuple[str, Any], ...]) -> dict[str, str | bytes]:
    for name, _ in options:
        _check_option(name)
    once = _LEAVES_STATE in source.text
    try:
        host = worker.Worker(options) if once else worker.get_worker(options)
    except worker.WorkerDied as died:
        raise LlvmOptionBad(option=", ".join(n for n, _ in options), detail=f": {died}") from died
    try:
        return host.generate(request)
    except worker.WorkerRefused as refused:
        raise _rejected(source, str(refused), refused.symbols) from refused
    except worker.WorkerDied as died:
        raise _failed(source, died.log, died.status) from died
    finally:
        if once:
            host.close()


def _check_option(name: str) -> None:
    known = worker.known_llvm_options()
    if known and name.lstrip("-") not in known:
        close = difflib.get_close_matches(name, known, n=2)
        raise LlvmOptionBad(option=name, detail=f"; did you mean {' or '.join(close)}?" if close else "")


def _rejected(source: CodegenInput, problem: str, symbols: tuple[str, ...]) -> Exception:
    if symbols and not symbols[0].startswith("llvm."):
        return UndefinedSymbol(arch=source.cpu, symbols=symbols, symbols_text=", ".join(symbols))
    if symbols:
        return _unknown(source, symbols[0], "")
    return LlvmRejected(problem=problem)


def _unknown(source: CodegenInput, symbol: str, hint: str) -> IntrinsicUnknown:
    """Name the op: LLVM may have added the types to the name."""
    called = [(name, at) for name, at in source.places if symbol == name or symbol.startswith(f"{name}.")]
    name, at = called[0] if called else (symbol, None)
    if intrinsics.find(name):
        hint = hint or " with these operand types"
    return IntrinsicUnknown(
        name=name, hint=hint, at=at, reason_text="a call of it would become a call of an undefined function"
    )


# what LLVM prints before it ends the process -> (why, fix)
_REASONS = (
    (
        r"Cannot select|cannot select|unable to legalize",
        "the chip has no instruction for an operation of the kernel, or not for these operand types",
        "use an instruction that {arch} has; the line above names the operation",
    ),
    (r"local memory|LDS", "the kernel's LDS arrays do not fit a workgroup", "use smaller or fewer LDS arrays"),
    (
        r"constraint|inline asm",
        "the constraint string of an inline assembly does not fit its operands or the chip",
        "check the constraints: v is a VGPR, s an SGPR, a an AGPR, and the width must match the operand",
    ),
    (
        r"ran out of registers",
        "the register allocator found no solution under the limits that were set",
        "relax waves_per_eu, or keep fewer values live",
    ),
    (
        r"stack frame size|scratch",
        "private arrays do not fit the chip's scratch memory",
        "use smaller private arrays",
    ),
)


_WRONG_TYPES = re.compile(r"^ptr @(?P<name>llvm\.[\w.]+)\s+LLVM ERROR: Broken module", re.MULTILINE)


def _failed(source: CodegenInput, log: str, status: int | None) -> Exception:
    if wrong := _WRONG_TYPES.search(log):
        return _unknown(source, wrong["name"], "; its operand or result types differ from those of the call")
    lines = [line for line in log.splitlines() if line.strip()]
    problem = next((ln for ln in lines if "error" in ln.lower() or "LLVM ERROR" in ln), lines[0] if lines else "")
    problem = re.sub(r"^(LLVM ERROR|error): ", "", problem) or f"it ended without a message (status {status})"
    unknown = ("LLVM met a condition that it treats as fatal", "please report this with the kernel")
    why, fix = next(((why, fix) for pattern, why, fix in _REASONS if re.search(pattern, log)), unknown)
    return CodegenFailed(
        arch=source.cpu,
        problem=f"{problem} (kernel `{source.kernel}`)",
        log=log,
        reason_text=why,
        advice_text=fix.format(arch=source.cpu),
    )
