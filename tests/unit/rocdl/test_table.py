"""The table of instructions against the bindings' generated builders, which come from MLIR's own definitions."""

import ast
import re

import pytest

from flydsl.expr.rocdl import table
from flydsl.ir import dialect
from flydsl.targets.rocm import intrinsics

_KINDS = {
    "I32Attr": "i32",
    "I16Attr": "i16",
    "I1Attr": "i1",
    "MFMAPermBAttr": "perm_b",
    "MFMANegModifierAttr": "neg",
    "MatrixFormatAttr": "format",
    "SchedGroupMaskAttr": "sched",
    "WMMACModifierAttr": "mod_c",
    "WMMAMatrixScaleAttr": "scale_row",
    "WMMAMatrixScaleFormatAttr": "scale_format",
}


def _generated():
    """Return {function name: (op name, required, optional)} read from the source of the generated module."""
    path = dialect("_rocdl_ops_gen").__file__
    with open(path) as source:
        tree = ast.parse(source.read())
    classes = {n.name: n for n in tree.body if isinstance(n, ast.ClassDef)}
    out = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            cls = classes[re.search(r"return (\w+)\(", ast.unparse(node))[1]]
            out[node.name] = _signature(cls, [a.arg for a in node.args.args], [a.arg for a in node.args.kwonlyargs])
    return out


def _signature(cls, required, optional):
    op = next(n.value.value for n in cls.body if isinstance(n, ast.Assign) and n.targets[0].id == "OPERATION_NAME")
    init = next(n for n in cls.body if isinstance(n, ast.FunctionDef) and n.name == "__init__")
    text = ast.unparse(init)
    attrs = dict(re.findall(r"attributes\['(\w+)'\] = .*?AttrBuilder\.get\('(?:rocdl\.)?(?:ROCDL_)?([^']+)'\)", text))
    mlir = [a.arg for a in init.args.args[1:]] + [a.arg for a in init.args.kwonlyargs]
    python = required + optional
    kinds = {p: _kind(m, attrs) for p, m in zip(python, mlir)}
    return op, [(p, kinds[p]) for p in required], [(p, kinds[p]) for p in optional if p not in ("loc", "ip")]


def _kind(name, attrs):
    if name not in attrs:
        return "res" if name == "res" else ""
    return "i32" if "CachePolicy" in attrs[name] else _KINDS.get(attrs[name], "raw")


GENERATED = _generated()


def test_the_table_lists_exactly_the_instructions_of_the_bindings():
    assert {n.rstrip("_") for n in GENERATED} == set(table.names())


@pytest.mark.parametrize("name", sorted(GENERATED))
def test_row_matches_generated_builder(name):
    op, required, optional = GENERATED[name]
    spec = table.lookup(name)
    assert spec.op == op
    assert [(p, kind) for p, _, kind in spec.params] == required
    assert [(p, kind) for p, _, kind in spec.options] == optional


def test_chips_agree_with_the_intrinsics_that_llvm_selects():
    """What the simulator accepts and code generation refuses would be found out on the target only."""
    declared = {key.replace(".", "").replace("_", ""): rows for key, rows in intrinsics.table().items()}
    differing = {}
    for name in table.names():
        rows = declared.get(name.replace("_", ""))
        if rows and set(table.chips_with(name)) != set(intrinsics.chips_of(rows)):
            differing[name] = table.chips_with(name)
    assert differing == {"iglp_opt": ("gfx942", "gfx950")}  # strategies exist for kernels with MFMA


def test_tables_name_instructions_and_their_arguments():
    specs = [table.lookup(name) for name in table.names()]
    for listed, _ in table._FEATURES:
        for known in listed.split():
            assert any(table._is_listed(spec.name, known) for spec in specs), known
    for listed, param, _ in table._LIMITS:
        for known in listed.split():
            assert any(table._is_listed(s.name, known) and param in {p for p, _, _ in s.params} for s in specs), (known, param)


def test_chips():
    assert table.chips_with("rcp") == table.chips_with("s_barrier")
    assert table.chips_with("mfma_f32_16x16x16f16") == ("gfx942", "gfx950")
    assert table.chips_with("mfma_f32_16x16x32_f16") == ("gfx950",)
    assert table.chips_with("wmma_scale_f32_16x16x128_f8f6f4") == ("gfx1250",)
    assert "gfx1201" in table.chips_with("s_wait_dscnt") and "gfx942" not in table.chips_with("s_wait_dscnt")
    assert table.chips_with("cvt_scalef32_pk_fp4_f32") == ("gfx950",)
    assert table.chips_with("cvt_scalef32_pk8_fp8_f32") == ("gfx1250",)
    assert table.chips_with("permlane32_swap") == ("gfx950",)
    assert table.chips_with("permlane16_swap") == ("gfx950", "gfx1250")
    assert table.chips_with("mfma_f32_32x32x4bf16") == ()
