"""The intrinsic table against LLVM: every line compiles on each of its chips, and is recognised as proven."""

import re

import pytest

from flydsl import arch
from flydsl.diag.errors.target import IntrinsicNotOnChip
from flydsl.targets.rocm import codegen, intrinsics, worker
from flydsl.targets.rocm.intrinsic_table import DATA_TYPES

# operands that must have one of a few values
_IMMEDIATES = {
    "update.dpp": {2: 273, 3: 15, 4: 15}, "s.getreg": {0: 2049}, "s.setreg": {0: 2049}, "ds.swizzle": {1: 5},
    "raw.ptr.buffer.load.lds": {2: 4}, "global.load.lds": {2: 4}, "load.to.lds": {2: 4},
    "sched.group.barrier": {0: 8, 1: 1}, "s.sendmsg.rtn.i64": {0: 131}, "s.barrier.signal": {0: -1},
    "s.barrier.wait": {0: -1}, "s.barrier.signal.isfirst": {0: -1},
}
_SCALARS = {"f16": "half", "bf16": "bfloat", "f32": "float", "f64": "double"}


def llvm_type(kind: str) -> str:
    kind = kind.lstrip("#~")
    if kind.startswith("{"):
        return "{ " + ", ".join(llvm_type(k) for k in kind.strip("{}").split(",")) + " }"
    if found := re.fullmatch(r"v(\d+)(\w+)", kind):
        return f"<{found[1]} x {llvm_type(found[2])}>"
    if re.fullmatch(r"p\d", kind):
        return "ptr" if kind == "p0" else f"ptr addrspace({kind[1]})"
    return _SCALARS.get(kind, kind)


def kernel(number: int, row: intrinsics.Intrinsic, data: str | None = None) -> tuple[str, str]:
    """Return (definition, declaration) of a kernel that calls `row`; `data` replaces its `~` types."""
    def concrete(kind: str) -> str:
        return llvm_type(data if data and kind.startswith("~") else kind)

    parameters, arguments, before = ["ptr addrspace(1) %out"], [], []
    for i, kind in enumerate(row.operands):
        text = concrete(kind)
        if kind.startswith("#"):
            value = _IMMEDIATES.get(row.name, {}).get(i, 0)
            arguments.append(f"{text} {str(bool(value)).lower() if text == 'i1' else value}")
        elif kind == "i1":
            parameters.append(f"i32 %a{i}")
            before.append(f"%b{i} = trunc i32 %a{i} to i1")
            arguments.append(f"i1 %b{i}")
        else:
            parameters.append(f"{text} %a{i}")
            arguments.append(f"{text} %a{i}")
    result = concrete(row.result)
    call = f"call {result} @llvm.amdgcn.{row.name}{_suffix(row, data)}({', '.join(arguments)})"
    lines = [*before, call] if result == "void" else [*before, f"%r = {call}", f"store {result} %r, ptr addrspace(1) %out"]
    define = f"define amdgpu_kernel void @k{number}({', '.join(parameters)}) {{\n" + "\n".join(lines) + "\nret void\n}"
    immediates = ", ".join(concrete(k) + (" immarg" if k.startswith("#") else "") for k in row.operands)
    return define, f"declare {result} @llvm.amdgcn.{row.name}{_suffix(row, data)}({immediates})"


def _suffix(row: intrinsics.Intrinsic, data: str | None) -> str:
    return f".{data}" if data else ""


def compiles(cases: list[tuple[intrinsics.Intrinsic, str | None]], chip: arch.Chip) -> None:
    """Compile all cases as one module; declarations of one name with two signatures get a module each."""
    modules: list[tuple[list[str], dict[str, str]]] = []
    for number, (row, data) in enumerate(cases):
        define, declare = kernel(number, row, data)
        name = re.search(r"@([\w.]+)", declare)[1]
        for defines, declares in modules:
            if declares.get(name, declare) == declare:
                break
        else:
            defines, declares = [], {}
            modules.append((defines, declares))
        defines.append(define)
        declares[name] = declare
    for defines, declares in modules:
        text = "\n".join([*defines, *declares.values()])
        worker.get_worker().generate(codegen.Request(chip.name, 1, 1, ("isa",), text))  # LLVM may end its process


@pytest.mark.parametrize("chip", arch.CHIPS.values(), ids=lambda c: c.name)
def test_every_line_on_its_chips(chip):
    compiles([(row, None) for rows in intrinsics.table().values() for row in rows if row.is_on(chip)], chip)


@pytest.mark.parametrize("chip", arch.CHIPS.values(), ids=lambda c: c.name)
def test_every_data_type_of_overloaded_lines(chip):
    rows = [row for rows in intrinsics.table().values() for row in rows if "~" in "".join((row.result, *row.operands))]
    compiles([(row, data) for row in rows if row.is_on(chip) for data in sorted(DATA_TYPES)], chip)


def test_declarations_are_recognised():
    chip = arch.get("gfx942")
    proven = [
        "declare noundef range(i32 0, 1024) i32 @llvm.amdgcn.workitem.id.x() #1",
        "declare <4 x float> @llvm.amdgcn.mfma.f32.16x16x16f16(<4 x half>, <4 x half>, <4 x float>, i32 immarg, i32 immarg, i32 immarg) #0",
        "declare <4 x float> @llvm.amdgcn.raw.ptr.buffer.load.v4f32(ptr addrspace(8) readonly captures(none), i32, i32, i32 immarg) #2",
        "declare void @llvm.amdgcn.s.barrier() #3",
    ]
    for line in proven:
        assert intrinsics.is_proven(line, chip), line
    others = [
        "declare i32 @llvm.amdgcn.nosuch(i32)",
        "declare i32 @llvm.amdgcn.mbcnt.lo(i32)",
        "declare <8 x float> @llvm.amdgcn.wmma.f32.16x16x16.f16(<16 x half>, <16 x half>, <8 x float>)",
    ]
    for line in others:
        assert not intrinsics.is_proven(line, chip), line


def test_suffix_of_types_is_ignored():
    assert intrinsics.find("llvm.amdgcn.readlane.v2f32")[0].name == "readlane"
    assert intrinsics.find("llvm.amdgcn.nosuch.i32") == ()


def test_older_matrix_forms_are_on_no_chip():
    with pytest.raises(IntrinsicNotOnChip, match="older chips only"):
        intrinsics.check_chip("llvm.amdgcn.mfma.f32.16x16x8bf16", arch.get("gfx942"), None)
