"""Read a lowered module: its kernels, LDS arrays and architecture; translate kernels on request."""

from __future__ import annotations

from typing import Any

from flydsl import arch as chips
from flydsl.diag.errors.simulator import SimBadLaunch
from flydsl.targets.sim.translate import arith, control, convert, dma, gpu, math, matrix, memory, rocdl, sync, vector  # noqa: F401  (register rules)
from flydsl.targets.sim.translate.function import INDENT, FunctionTranslator
from flydsl.targets.sim.translate.limits import approximations
from flydsl.targets.sim.translate.rules import PREFIX_RULES, RULES
from flydsl.targets.sim.translate.text import KernelText
from flydsl.targets.sim.translate.types import IrType, layout_of
from flydsl.targets.sim.translate.values import Piece, Scalar, Struct, Value, Vector


class LoweredModule:
    """The gpu functions of a lowered module, by name."""

    def __init__(self, module: Any, arch: str):
        self.module = module
        self.arch = arch
        self.wave_size = chips.get(arch).wave_size
        self.functions: dict[str, Any] = {}
        self.globals: dict[str, tuple[int, int]] = {}
        for op in module.body.operations:
            self._collect(op.operation)

    def _collect(self, op: Any) -> None:
        if op.name == "gpu.module":
            for inner in op.regions[0].blocks[0].operations:
                self._collect(inner.operation)
        elif op.name == "gpu.func":
            self.functions[op.attributes["sym_name"].value] = op
        elif op.name == "llvm.mlir.global":
            self._collect_global(op)

    def _collect_global(self, op: Any) -> None:
        attrs = op.attributes
        if "addr_space" in attrs and int(attrs["addr_space"].value) == 3:
            size, natural = layout_of(str(attrs["global_type"].value))
            align = int(attrs["alignment"].value) if "alignment" in attrs else natural
            self.globals[attrs["sym_name"].value] = (size, align)

    def translate(self, name: str, value_checks: frozenset[str] = frozenset()) -> KernelText:
        """Return the text of kernel `name`; `value_checks`: opt-in checks of results that become part of it."""
        if name not in self.functions:
            known = ", ".join(self.functions) or "none"
            raise SimBadLaunch(
                kernel=name,
                problem="there is no such kernel in the module",
                reason_text=f"kernels here: {known}",
                advice_text="use one of these",
            )
        func = self.functions[name]
        ops = walk(func)
        info = ModuleFacts(self, ops)
        t = FunctionTranslator(info, name, value_checks)
        t.op = func
        params = bind_params(t, func)
        terminator = t.run_block(func.regions[0].blocks[0])
        assert terminator.name == "gpu.return", terminator.name
        return KernelText(
            name=name,
            source=source_of(t, len(params)),
            params=params,
            sites=tuple(t.sites),
            lds=info.arrays,
            static_lds_bytes=info.static_bytes,
            dynamic_offset=info.dynamic_offset,
            private_bytes=-(-t.private_bytes // 16) * 16,
            private_arrays={f"p{i}": (off, off + size) for i, (off, size, _) in enumerate(t.private_arrays)},
            widest_bytes=t.widest_bytes,
            has_barrier=t.has_barrier,
            uses_dma=t.uses_dma,
            cell_bytes=t.accesses.cell_bytes(),
            reads=tuple(sorted(t.accesses.reads, key=repr)),
            writes=tuple(sorted(t.accesses.writes, key=repr)),
            has_sync=t.accesses.has_sync,
            needs_waves=any(barrier_is_nested(op) for op in ops if op.name in BARRIERS),
            block=known_block(func),
            num_ops=len(ops),
            approximated=approximations((op.name for op in ops), t.accesses.has_sync),
        )


BARRIERS = ("gpu.barrier", "rocdl.s.barrier", "rocdl.barrier", "rocdl.s.barrier.wait", "rocdl.s.barrier.signal")


def walk(op: Any) -> list[Any]:
    """Return all ops inside `op`."""
    found = []
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                found.append(inner.operation)
                found.extend(walk(inner.operation))
    return found


def barrier_is_nested(op: Any) -> bool:
    """Return whether a barrier is inside a branch, where waves may have to run apart."""
    parent = op.parent
    while parent is not None and parent.name != "gpu.func":
        if parent.name in ("scf.if", "scf.while", "scf.index_switch"):
            return True
        parent = parent.operation.parent
    return False


class ModuleFacts:
    """What the translator of one kernel knows about its module; lays out the LDS arrays that the kernel names."""

    def __init__(self, module: LoweredModule, ops: list[Any]):
        self.arch = module.arch
        self.wave_size = module.wave_size
        used = {op.attributes["global_name"].value for op in ops if op.name == "llvm.mlir.addressof"}
        names = [n for n in module.globals if n in used]
        self.arrays: dict[str, tuple[int, int]] = {}
        offset = 0
        for name in (n for n in names if module.globals[n][0] > 0):
            size, align = module.globals[name]
            offset = -(-offset // align) * align
            self.arrays[name] = (offset, offset + size)
            offset += size
        self.static_bytes = offset
        self.dynamic_offset = None
        for name in (n for n in names if module.globals[n][0] == 0):
            self.dynamic_offset = -(-offset // module.globals[name][1]) * module.globals[name][1]
            self.arrays[name] = (self.dynamic_offset, -1)

    def lds_offsets(self, _kernel: str) -> dict[str, int]:
        """Return the first byte of each LDS array."""
        return {name: first for name, (first, _) in self.arrays.items()}


def bind_params(t: FunctionTranslator, func: Any) -> tuple:
    """Bind the block arguments to `a0, a1, ...`; return their (name, element, length)."""
    names = param_names(func)
    params = []
    for i, arg in enumerate(func.regions[0].blocks[0].arguments):
        type_ = t.type_of(arg)
        t.define(arg, param_value(f"a{i}", type_))
        params.append((names[i] if i < len(names) else f"arg{i}", type_.elem, type_.n))
    return tuple(params)


def param_value(name: str, type_: IrType) -> Value:
    if type_.elem == "struct":
        return Struct(type_, [param_value(f"{name}[{i}]", f) for i, f in enumerate(type_.fields)])
    if type_.is_vector:
        return Vector(type_, [Piece(name, 0, type_.n, type_.n)])
    return Scalar(name, type_, None, name if type_.is_pointer else None)


def param_names(func: Any) -> list[str]:
    """Return the names that the front end recorded for the arguments."""
    attrs = func.attributes
    return [a.value for a in attrs["fly.params"]] if "fly.params" in attrs else []


def known_block(func: Any) -> tuple[int, int, int] | None:
    """Return the block size that the kernel was compiled for."""
    for key in ("known_block_size", "gpu.known_block_size"):
        if key in func.attributes:
            return tuple(int(v) for v in func.attributes[key])
    return None


def source_of(t: FunctionTranslator, num_params: int) -> str:
    """Return the Python text of the generator."""
    params = "".join(f", a{i}" for i in range(num_params))
    constants = [f"{name} = {text}" for (_, text), name in t.constants.items()]
    head = f"def kernel(M, m0{params}):"
    body = t.lines or [INDENT + "pass"]
    tail = [] if t.has_barrier else [f"{INDENT}return", f"{INDENT}yield"]
    return "\n".join([*constants, "", head, *body, *tail, ""])


def supported_ops() -> list[str]:
    """Return the names of all ops that have a rule (a trailing `*` stands for any ending)."""
    return sorted({*RULES, *(f"{p}*" for p, _ in PREFIX_RULES)})
