"""Compile every matrix instruction of a chip with LLVM and print `row number, mnemonic`, one a line.

Run by test_isa_names.py in a process of its own: LLVM ends the process on an intrinsic that it cannot select.
"""
import re
import sys

from llvmlite import binding as llvm

from flydsl import atoms
from flydsl.atoms.elements import llvm_type

# LLVM 22.1 takes a negation flag before A and B where newer LLVM does not.
_FLAGS = {"cbsz": "i32", "abid": "i32", "blgp": "i32", "sign_a": "i1", "sign_b": "i1", "clamp": "i1", "opsel": "i1",
          "mod_c": "i16", "reuse_a": "i1", "reuse_b": "i1", "opsel_a": "i32", "opsel_b": "i32",
          "scale_fmt_a": "i32", "scale_fmt_b": "i32", "fmt_a": "i32", "fmt_b": "i32"}
_FORMATS = {"fp8": 0, "bf8": 1, "fp6": 2, "bf6": 3, "fp4": 4}


def function(number: int, row: atoms.MatrixRow) -> tuple[str, str]:
    """Return (declaration, definition) of a kernel that loads A, B, C, runs the instruction and stores D."""
    types = {n: llvm_type(t) for n, t in zip("abc", row.regs)}
    body = [f"  %{n} = load {t}, ptr addrspace(1) %p{n}" for n, t in types.items()]
    declared, given = [], []
    for name in row.operands.split():
        if name in types:
            if row.feature == "wmma_gfx1250" and name in "ab" and row.a in ("f32", "f16", "bf16"):
                declared.append("i1")
                given.append("i1 false")
            declared.append(types[name])
            given.append(f"{types[name]} %{name}")
        elif name.startswith("scale_") and "fmt" not in name:
            declared.append(row.scale_type)
            given.append(f"{row.scale_type} %{name[-1]}s")
        else:
            value = _FORMATS.get(getattr(row, name[-1]), 0) if name in ("fmt_a", "fmt_b") else 0
            text = "false" if _FLAGS[name] == "i1" else str(value)
            declared.append(_FLAGS[name])
            given.append(f"{_FLAGS[name]} {text}")
    d = types["c"]
    scales = f", {row.scale_type} %as, {row.scale_type} %bs" if row.scale_type else ""
    pointers = ", ".join(f"ptr addrspace(1) %p{n}" for n in "abcd")
    define = (f"define amdgpu_kernel void @f{number}({pointers}{scales}) {{\n" + "\n".join(body) +
              f"\n  %d = call {d} @{row.llvm_name}({', '.join(given)})\n"
              f"  store {d} %d, ptr addrspace(1) %pd\n  ret void\n}}\n")
    return f"declare {d} @{row.llvm_name}({', '.join(declared)})\n", define


def assembly(chip: str, rows: list) -> str:
    """Return the ISA of all rows in one module."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    declarations, definitions = set(), []
    for number, row in enumerate(rows):
        declaration, definition = function(number, row)
        declarations.add(declaration)
        definitions.append(definition)
    text = 'target triple = "amdgcn-amd-amdhsa"\n' + "".join(sorted(declarations)) + "".join(definitions)
    module = llvm.parse_assembly(text)
    target = llvm.Target.from_triple("amdgcn-amd-amdhsa")
    return target.create_target_machine(cpu=chip, opt=2).emit_assembly(module)


def main(chip: str) -> None:
    rows = list(atoms.supported(chip))
    text = assembly(chip, rows)
    for number in range(len(rows)):
        part = text.split(f"\nf{number}:", 1)[1].split("s_endpgm", 1)[0]
        found = re.findall(r"^\s+(v_(?:mfma|wmma)\w+)", part, re.M)
        print(number, ",".join(found))


if __name__ == "__main__":
    main(sys.argv[1])
