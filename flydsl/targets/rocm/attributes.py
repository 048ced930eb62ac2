"""Function attributes of AMDGPU kernels: calling convention, workgroup size, occupancy, unused hidden inputs.

Upstream's conversion sets the calling convention and the workgroup size. Here come those that LLVM's own attributor
would find at O1 and above, which the slim pipeline does not run.
"""

from __future__ import annotations

import math
import re

from flydsl.arch import Chip
from flydsl.diag.errors.target import ClusterUnsupported, KernelAttributeBad, OccupancyImpossible
from flydsl.ir import ir, walks
from flydsl.targets.rocm.guards import ModuleFacts, place
from flydsl.targets.rocm.options import CodegenOptions, waves_range

# attribute -> the rocdl ops or intrinsics that need the hidden input
_HIDDEN_INPUTS: dict[str, tuple[str, ...]] = {
    "amdgpu-no-dispatch-id": ("llvm.amdgcn.dispatch.id",),
    "amdgpu-no-dispatch-ptr": ("llvm.amdgcn.dispatch.ptr", "rocdl.dispatch.ptr"),
    "amdgpu-no-implicitarg-ptr": ("llvm.amdgcn.implicitarg.ptr", "rocdl.implicitarg.ptr"),
    "amdgpu-no-lds-kernel-id": ("llvm.amdgcn.lds.kernel.id",),
    "amdgpu-no-workgroup-id-x": ("llvm.amdgcn.workgroup.id.x", "rocdl.workgroup.id.x"),
    "amdgpu-no-workgroup-id-y": ("llvm.amdgcn.workgroup.id.y", "rocdl.workgroup.id.y"),
    "amdgpu-no-workgroup-id-z": ("llvm.amdgcn.workgroup.id.z", "rocdl.workgroup.id.z"),
    "amdgpu-no-workitem-id-x": ("llvm.amdgcn.workitem.id.x", "rocdl.workitem.id.x"),
    "amdgpu-no-workitem-id-y": ("llvm.amdgcn.workitem.id.y", "rocdl.workitem.id.y"),
    "amdgpu-no-workitem-id-z": ("llvm.amdgcn.workitem.id.z", "rocdl.workitem.id.z"),
}
# these belong to the implicit argument block or to features that no lowered op reaches
_NEVER_USED = (
    "amdgpu-no-completion-action",
    "amdgpu-no-default-queue",
    "amdgpu-no-flat-scratch-init",
    "amdgpu-no-heap-ptr",
    "amdgpu-no-hostcall-ptr",
    "amdgpu-no-multigrid-sync-arg",
)
_CLUSTER_INPUTS = ("amdgpu-no-cluster-id-x", "amdgpu-no-cluster-id-y", "amdgpu-no-cluster-id-z")
_RANGE, _KEPT_RANGE = "rocdl.flat_work_group_size", "fly.flat_work_group_size"
_NEEDS_QUEUE = {"llvm.addrspacecast", "llvm.intr.trap", "llvm.intr.ubsantrap", "llvm.intr.debugtrap"}


def set_attributes(module: ir.Module, facts: ModuleFacts, chip: Chip, options: CodegenOptions) -> None:
    """Attach to each kernel of `module` what the ops in `facts` allow.

    Raises   KernelAttributeBad: a `rocdl.` attribute of a type that would end the process in the translation
    """
    values = _common(facts, chip, options)
    for function in walks.children(module.operation):
        if function.name == "llvm.func" and "rocdl.kernel" in function.attributes:
            clusters = _cluster(function, chip)
            unset = _CLUSTER_INPUTS if clusters else ()
            wanted = {k: v for k, v in values.items() if k not in unset} | _waves(function, chip, options) | clusters
            _restore_workgroup_range(function)
            _check(function)
            entries = [_entry(key, value) for key, value in wanted.items()]
            if "passthrough" in function.attributes:
                entries = [*ir.ArrayAttr(function.attributes["passthrough"]), *entries]
            function.attributes["passthrough"] = ir.ArrayAttr.get(entries)
    if options.fast_fp_math:
        _set_fast_math(module.operation)


def _waves(function: ir.Operation, chip: Chip, options: CodegenOptions) -> dict[str, str]:
    """Return the occupancy wish; a range only exists in LLVM's spelling, so both go there.

    Raises   OccupancyImpossible: more waves than a SIMD of the chip holds; LLVM would only warn
    """
    wish = options.waves_per_eu
    if "rocdl.waves_per_eu" in function.attributes:
        held = function.attributes["rocdl.waves_per_eu"]
        text = held.value if isinstance(held, (ir.StringAttr, ir.IntegerAttr)) else ""
        try:
            wish = waves_range(text)
        except ValueError:
            raise _bad(function, "rocdl.waves_per_eu", held, "an integer or 'least,most'") from None
        del function.attributes["rocdl.waves_per_eu"]
    if wish is None:
        return {}
    if wish[0] > chip.waves_per_simd:
        raise OccupancyImpossible(wanted=wish[0], arch=chip.name, limit=chip.waves_per_simd)
    return {"amdgpu-waves-per-eu": ",".join(map(str, wish))}


def keep_workgroup_range(function: ir.Operation) -> None:
    """Put the user's range of workgroup sizes where upstream's conversion, which writes the block size there, leaves it."""
    if _RANGE in function.attributes:
        function.attributes[_KEPT_RANGE] = function.attributes[_RANGE]
        del function.attributes[_RANGE]


def _restore_workgroup_range(function: ir.Operation) -> None:
    """Put the range back, unless the block size is known: then it must hold that, which says more than it does."""
    if _KEPT_RANGE not in function.attributes:
        return
    held = function.attributes[_KEPT_RANGE]
    del function.attributes[_KEPT_RANGE]
    found = re.fullmatch(r"(\d+),(\d+)", held.value) if isinstance(held, ir.StringAttr) else None
    if found is None:
        raise _bad(function, _RANGE, held, "a string 'least,most'")
    least, most = map(int, found.groups())
    if "rocdl.reqd_work_group_size" not in function.attributes:
        function.attributes[_RANGE] = held
        return
    threads = math.prod(function.attributes["rocdl.reqd_work_group_size"])
    if not least <= threads <= most:
        raise _bad(function, _RANGE, held, f"a range with the {threads} threads of the launch in it")


def _cluster(function: ir.Operation, chip: Chip) -> dict[str, str]:
    """Return the cluster size in LLVM's spelling: of the launch, or as `rocdl.cluster_dims` says ("2,1,1", or an array).

    Raises   ClusterUnsupported, KernelAttributeBad
    """
    held = None
    for name in ("gpu.known_cluster_size", "rocdl.cluster_dims"):
        if name in function.attributes:
            held = function.attributes[name]
    if "rocdl.cluster_dims" in function.attributes:
        del function.attributes["rocdl.cluster_dims"]
    if held is None:
        return {}
    text = held.value if isinstance(held, ir.StringAttr) else ",".join(map(str, held)) if _is_sizes(held) else ""
    sizes = [int(s) for s in text.split(",") if s.strip().isdigit()]
    if len(sizes) != 3 or text.count(",") != 2 or min(sizes) < 1:
        raise _bad(function, "rocdl.cluster_dims", held, "three positive sizes, such as '2,1,1'")
    if max(sizes) > 1 and not chip.has("clusters"):
        raise ClusterUnsupported(kernel=walks.symbol(function), cluster=tuple(sizes), arch=chip.name, at=place(function))
    return {"amdgpu-cluster-dims": ",".join(map(str, sizes))} if chip.has("clusters") else {}


def _is_sizes(held: ir.Attribute) -> bool:
    return isinstance(held, ir.DenseI32ArrayAttr)


_ATTRIBUTE_KINDS: dict[str, tuple[type, str]] = {
    "rocdl.flat_work_group_size": (ir.StringAttr, "a string 'least,most'"),
    "rocdl.max_flat_work_group_size": (ir.IntegerAttr, "an integer"),
    "rocdl.reqd_work_group_size": (ir.DenseI32ArrayAttr, "an array of three i32"),
    "rocdl.unsafe_fp_atomics": (ir.BoolAttr, "true or false"),
    "rocdl.uniform_work_group_size": (ir.BoolAttr, "true or false"),
    "rocdl.no_fine_grained_memory": (ir.UnitAttr, "a unit attribute"),
    "rocdl.no_remote_memory": (ir.UnitAttr, "a unit attribute"),
    "rocdl.ignore_denormal_mode": (ir.UnitAttr, "a unit attribute"),
    "rocdl.kernel": (ir.UnitAttr, "a unit attribute"),
}


def _check(function: ir.Operation) -> None:
    for name in function.attributes:
        key = name if isinstance(name, str) else name.name
        if key.startswith("rocdl."):
            held = function.attributes[key]
            if key not in _ATTRIBUTE_KINDS:
                raise _bad(function, key, held, f"one of {', '.join(sorted(_ATTRIBUTE_KINDS))}")
            kind, wanted = _ATTRIBUTE_KINDS[key]
            if not isinstance(held, kind):
                raise _bad(function, key, held, wanted)


def _bad(function: ir.Operation, key: str, held: ir.Attribute, wanted: str) -> KernelAttributeBad:
    return KernelAttributeBad(
        kernel=walks.symbol(function), attribute=key, value=str(held), wanted=wanted, at=place(function)
    )


def _common(facts: ModuleFacts, chip: Chip, options: CodegenOptions) -> dict[str, str | None]:
    """Attributes shared by all kernels; a module with calls or assembly keeps every input."""
    values: dict[str, str | None] = {}
    if options.opt_level in (0, 3):  # O3 runs LLVM's attributor; O0 takes what it gets
        return values
    if not facts.has_inline_asm and not facts.calls:
        if chip.has("agpr"):
            values["amdgpu-agpr-alloc"] = "0"
        used = facts.rocdl_ops.keys() | facts.intrinsics.keys()
        values |= {name: None for name, ops in _HIDDEN_INPUTS.items() if used.isdisjoint(ops)}
        values |= dict.fromkeys(_NEVER_USED)
        if facts.llvm_ops.isdisjoint(_NEEDS_QUEUE):
            values["amdgpu-no-queue-ptr"] = None
        if chip.has("clusters") and not any("cluster" in name for name in used):
            values |= dict.fromkeys(_CLUSTER_INPUTS)
        values |= {"nofree": None, "norecurse": None, "nounwind": None}
    return values


def _entry(key: str, value: str | None) -> ir.Attribute:
    name = ir.StringAttr.get(key)
    return name if value is None else ir.ArrayAttr.get([name, ir.StringAttr.get(value)])


def _set_fast_math(root: ir.Operation) -> None:
    fast = ir.Attribute.parse("#llvm.fastmath<fast>")
    for op in walks.everything(root):
        if op.name.startswith("llvm.") and "fastmathFlags" in op.attributes:
            op.attributes["fastmathFlags"] = fast
