"""Lowered IR to the LLVM dialect: upstream's conversions plus what they lack, then LLVM IR text.

Before  one gpu.module of lowered IR (scf, arith, math, vector, gpu, llvm, rocdl)
After   a builtin.module of `llvm`/`rocdl` ops only, kernels with their AMDGPU attributes
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from flydsl.arch import Chip
from flydsl.diag import Span
from flydsl.diag.errors.target import NoGpuModule, RocmOpLeft
from flydsl.ir import PassManager, ir, translate_module_to_llvmir, walks
from flydsl.ir.location import span_of_location
from flydsl.targets.rocm import attributes, bridges, guards, intrinsics, shuffles
from flydsl.targets.rocm.llvm_text import to_llvm22
from flydsl.targets.rocm.options import CodegenOptions
from flydsl.targets.rocm.prepare import finish, prepare
from flydsl.targets.rocm.printf import PrintfFormat

# convert-gpu-to-rocdl holds upstream's arith, vector, math, cf and func patterns as well
PIPELINE = (
    "convert-scf-to-cf",
    "convert-gpu-to-rocdl{{chipset={arch} runtime=HIP}}",
    "reconcile-unrealized-casts",
)


@dataclass
class KernelFacts:
    """What the lowered kernel says about itself."""

    name: str
    params: tuple[str, ...] = ()
    workgroup: tuple[int, int, int] | None = None
    lds_arrays: dict[str, int] = field(default_factory=dict)
    has_dynamic_lds: bool = False
    printf_formats: tuple[PrintfFormat, ...] = ()
    at: Span | None = None


@dataclass
class DeviceModule:
    """A module in the LLVM dialect, ready to be translated."""

    module: ir.Module
    kernels: dict[str, KernelFacts]
    facts: guards.ModuleFacts


def find_gpu_module(module: ir.Operation) -> ir.Operation:
    """Return the one gpu.module of `module`.

    Raises   NoGpuModule: there is none, or more than one
    """
    found = [op for op in walks.children(module) if op.name == "gpu.module"]
    if len(found) != 1:
        raise NoGpuModule(problem="no kernel was launched" if not found else f"{len(found)} gpu.modules")
    return found[0]


def lower_to_llvm(lowered: ir.Module, chip: Chip, options: CodegenOptions) -> DeviceModule:
    """Return the device code of `lowered` in the LLVM dialect; `lowered` itself stays as it is."""
    with lowered.context, lowered.operation.location:
        host = lowered.operation.clone().operation
        device = find_gpu_module(host)
        kernels = {k.name: k for k in map(_kernel_facts, _kernel_functions(device))}
        if not kernels:
            raise NoGpuModule(problem="the gpu.module has no kernel function")
        odd_types = _check_and_prepare(device, kernels, chip)
        _drop_host(host)
        _run_pipeline(host, chip)
        module = _unwrap(find_gpu_module(host))
        groups = walks.by_name(walks.everything(module.operation))
        if finish(groups):
            groups = walks.by_name(walks.everything(module.operation))
        facts = guards.check_llvm(groups, _defined(groups), chip, bool(options.link_libs))
        facts.odd_types = odd_types
        for name, at in facts.rocdl_ops.items():
            intrinsics.check_chip(name.removeprefix("rocdl."), chip, at)
        for name, at in facts.intrinsics.items():
            intrinsics.check_chip(name, chip, at)
        attributes.set_attributes(module, facts, chip, options)
        if options.debug_info:
            _add_line_tables(module)
    return DeviceModule(module, kernels, facts)


def _check_and_prepare(device: ir.Operation, kernels: dict[str, KernelFacts], chip: Chip) -> set[str]:
    """Make a gpu.module ready for upstream's conversions; return its types that LLVM may have trouble with."""
    ops = walks.everything(device)
    odd_types = guards.check_types(ops)
    _check_limits(device, kernels, chip)
    for function in _kernel_functions(device):
        attributes.keep_workgroup_range(function)
    for name, formats in prepare(device, ops, bridges.RULES | shuffles.rules(chip)).items():
        kernels[name].printf_formats = formats
    return odd_types


def to_llvm_ir(device: DeviceModule) -> str:
    """Return LLVM IR text that LLVM 22.1 parses."""
    return to_llvm22(translate_module_to_llvmir(device.module.operation))


def _kernel_functions(device: ir.Operation) -> list[ir.Operation]:
    return [op for op in walks.children(device) if op.name == "gpu.func" and "kernel" in op.attributes]


def _kernel_facts(function: ir.Operation) -> KernelFacts:
    held = function.attributes
    params = held["fly.params"] if "fly.params" in held else ()
    block = held["known_block_size"] if "known_block_size" in held else None
    return KernelFacts(
        name=walks.symbol(function),
        params=tuple(ir.StringAttr(p).value for p in params),
        workgroup=tuple(block) if block is not None else None,
        at=guards.place(function),
    )


def _check_limits(device: ir.Operation, kernels: dict[str, KernelFacts], chip: Chip) -> None:
    """Refuse what LLVM would abort on: too much LDS, too large workgroups."""
    arrays = _lds_arrays(device)
    for function in _kernel_functions(device):
        kernel = kernels[walks.symbol(function)]
        guards.check_workgroup(kernel.name, kernel.workgroup, chip, kernel.at)
        used = _used_symbols(function) & arrays.keys() if arrays else set()
        kernel.has_dynamic_lds = any(arrays[name] == 0 for name in used)
        kernel.lds_arrays = {name: arrays[name] for name in used}
        guards.check_lds(kernel.name, kernel.lds_arrays, chip, kernel.at)


def _lds_arrays(device: ir.Operation) -> dict[str, int]:
    """Return the bytes of each global in LDS."""
    sizes = {}
    for op in walks.children(device):
        held = op.attributes
        if op.name == "llvm.mlir.global" and "addr_space" in held and ir.IntegerAttr(held["addr_space"]).value == 3:
            sizes[walks.symbol(op)] = guards.type_bytes(str(ir.TypeAttr(held["global_type"]).value))
    return sizes


def _used_symbols(function: ir.Operation) -> set[str]:
    uses = walks.collect(function, {"llvm.mlir.addressof"})
    return {ir.FlatSymbolRefAttr(op.attributes["global_name"]).value for op in uses}


def _drop_host(host: ir.Operation) -> None:
    """Remove the jit function: a kernel that prints no longer fits its launch."""
    if "gpu.container_module" in host.attributes:
        del host.attributes["gpu.container_module"]
    for op in walks.children(host):
        if op.name != "gpu.module":
            op.erase()


def _run_pipeline(host: ir.Operation, chip: Chip) -> None:
    text = f"builtin.module(gpu.module({','.join(PIPELINE).format(arch=chip.name)}))"
    try:
        PassManager.parse(text).run(host)
    except ir.MLIRError as error:
        raise _conversion_error(error) from error


def _conversion_error(error: ir.MLIRError) -> RocmOpLeft:
    """MLIR's diagnostic names the op it could not legalise, and where."""
    diagnostics = error.error_diagnostics
    first = diagnostics[0] if diagnostics else None
    text = first.message if first is not None else str(error)
    found = re.search(r"'([\w.]+)'", text)
    at = span_of_location(first.location) if first is not None else None
    return RocmOpLeft(op=found[1] if found else "?", detail=f" ({text})", at=at)


def _unwrap(device: ir.Operation) -> ir.Module:
    """Move the functions and globals of a gpu.module into a module of their own.

    Its location is a kernel's, which names the compile unit of line tables.
    """
    held = walks.children(device)
    kernel = next((op for op in held if op.name == "llvm.func" and "rocdl.kernel" in op.attributes), device)
    module = ir.Module.create(kernel.location)
    for op in held:
        module.body.append(op)
    return module


def _add_line_tables(module: ir.Module) -> None:
    """Attach subprograms, so that LLVM writes a line table; a location without a scope is dropped in translation."""
    text = "builtin.module(ensure-debug-info-scope-on-llvm-func{emission-kind=LineTablesOnly})"
    PassManager.parse(text).run(module.operation)


def _defined(groups: dict[str, list[ir.Operation]]) -> set[str]:
    return {walks.symbol(op) for op in groups.get("llvm.func", ()) if len(op.regions[0].blocks)}
