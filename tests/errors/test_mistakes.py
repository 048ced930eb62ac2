"""Typical mistakes in kernels: each is one Python exception with its code, at the file, line and column of the mistake, with a fix.

The table holds a body, the code, and the text under the carets; the last line of a body is the one that is at fault unless `# <-` marks another.
"""

import ast
import importlib.util
import sys

import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.diag import FlyError
from flydsl.utils import env

HAS_COLUMNS = sys.version_info >= (3, 11)  # Python 3.10 keeps lines only

MISTAKES = [
    # control flow
    ("integer as a condition", "if n:\n    out[i] = 1.0", "FLY_CONDITION_NOT_BOOLEAN", "if n"),
    ("float accumulated in an integer", "s = 0\nfor k in range(n):\n    s = s + x[k]  # <-\nout[i] = s", "FLY_CARRY_MISMATCH", "s"),
    ("None before a loop", "best = None\nfor k in range(n):\n    best = x[k]  # <-\nout[i] = best", "FLY_CARRY_NONE", "best"),
    ("name bound in one branch", "if i < n:\n    v = x[i]\nout[i] = v", "FLY_REGION_LOCAL", "v"),
    ("const_expr of a run-time value", "if fx.const_expr(i < n):  # <-\n    out[i] = 1.0", "FLY_CONST_EXPR_DYNAMIC", "fx.const_expr(i < n)"),
    ("range_constexpr of a run-time value", "for k in fx.range_constexpr(n):  # <-\n    out[k] = 1.0", "FLY_CONST_EXPR_DYNAMIC", "fx.range_constexpr(n)"),
    ("list grown in a loop", "xs = []\nfor k in range(n):\n    xs.append(x[k])  # <-\nout[i] = 1.0", "FLY_CARRY_MISMATCH", "xs.append"),
    ("falling range", "for k in range(8, 0, -1):  # <-\n    out[k] = 1.0", "FLY_LOOP_STEP", None),
    ("64-bit bound", "for k in range(fx.Int64(n)):  # <-\n    out[k] = 1.0", "FLY_LOOP_BOUND_TYPE", None),
    ("endless loop", "while True:  # <-\n    i = i + 1", "FLY_ENDLESS_LOOP", None),
    ("assert on a run-time value", "assert i < n", "FLY_DYNAMIC_AS_PYTHON", "i < n"),
    ("branches of two types", "v = 1 if i < n else 2.0", "FLY_CARRY_MISMATCH", "1 if i < n else 2.0"),
    # types
    ("shift by a float", "y = i << 1.5", "FLY_OPERAND_UNSUPPORTED", "i << 1.5"),
    ("bits of a float", "y = x[i] & 3", "FLY_OPERAND_UNSUPPORTED", "x[i] & 3"),
    ("division by a static zero", "y = fx.Int32(4) // 0", "FLY_STATIC_DIVISION_BY_ZERO", "fx.Int32(4) // 0"),
    ("int() of a run-time value", "y = int(i)", "FLY_DYNAMIC_AS_INTEGER", "int(i)"),
    ("run-time index of a Python list", "y = [1.0, 2.0][i]", "FLY_DYNAMIC_AS_INTEGER", None),
    ("two 8-bit floats", "y = fx.Float8E4M3FN(1.0) + fx.Float8E5M2(1.0)", "FLY_NO_COMMON_FLOAT", "fx.Float8E4M3FN(1.0) + fx.Float8E5M2(1.0)"),
    ("vector element out of range", "y = fx.Vector.from_elements([1.0, 2.0])[5]", "FLY_VECTOR_INDEX", None),
    ("vector of no elements", "y = fx.Vector.from_elements([])", None, "fx.Vector.from_elements([])"),
    ("reduction that does not exist", 'y = fx.Vector.from_elements([1.0, 2.0]).reduce("median")', "FLY_UNKNOWN_REDUCTION", None),
    ("rounding mode of an integer", "y = i.to(fx.Float32, rounding_mode=fx.RoundingMode.downward)", "FLY_ROUNDING_MODE_TYPES", None),
    ("largest of nothing", "y = fx.max()", "FLY_NO_OPERANDS", "fx.max()"),
    # layouts
    ("shape and stride of two profiles", "y = fx.make_layout((4, 8), (1, 2, 3))", "FLY_LAYOUT_PROFILE", None),
    ("mode that is not there", "y = fx.get_(fx.make_layout(4, 1), 3)", None, None),
    ("composition that cuts a mode", "y = fx.composition(fx.make_layout((4, 6), (6, 1)), fx.make_layout(5, 3))", None, None),
    ("tile of a run-time size", "y = fx.make_tile(n, 4)", "FLY_TILE_DYNAMIC", "fx.make_tile(n, 4)"),
    ("float in a shape", "y = fx.make_shape(4, 2.5)", "FLY_LEAF_NOT_INTEGER", None),
    ("slice that keeps nothing", "y = fx.slice(x, (1,))", None, None),
    ("too many coordinates", "y = x[i, i]", None, "x[i, i]"),
    # memory
    ("registers of a run-time size", "y = fx.make_rmem_tensor(n, fx.Float32)", "FLY_FRAGMENT_DYNAMIC", None),
    ("vector of a run-time size", "y = x.load()", "FLY_VECTOR_DYNAMIC", "x.load()"),
    ("copy of two shapes", "fx.copy(fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32), fx.make_rmem_tensor((1, 2), fx.Float32), fx.make_rmem_tensor((1, 3), fx.Float32))", "FLY_COPY_SIZES", None),
    ("copy of two element types", "fx.copy(fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32), fx.make_rmem_tensor(2, fx.Float16), fx.make_rmem_tensor(1, fx.Float32))", "FLY_COPY_ELEMENT", None),
    ("operation as an atom", "fx.copy(fx.UniversalCopy32b(), x, out)", "FLY_ATOM_EXPECTED", None),
    ("state that the atom lacks", 'fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32).set_value("soffset", 1)', None, None),
    ("LDS beyond the chip", "y = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 1 << 20])", None, None),
    ("two allocators", "a = fx.SharedAllocator()\nb = fx.SharedAllocator()", "FLY_SECOND_ALLOCATOR", "fx.SharedAllocator()"),
    ("fields of a struct", "P = fx.Struct['a' : fx.Int32]\nP(a=1, b=2)", "FLY_FIELD_ARGUMENT", None),
    # matrix instructions and printing
    ("shape of a matrix instruction", "y = fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 24, fx.Float16))", "FLY_ATOM_SHAPE", None),
    ("fragments that do not fit", "fx.gemm(fx.make_mma_atom(fx.UniversalFMA(fx.Float32)), *(fx.make_rmem_tensor((1, k, 2), fx.Float32) for k in (2, 2, 3, 2)))", None, None),
    ("instruction that does not exist", "fx.rocdl.s_nopp(1)", "FLY_ROCDL_UNKNOWN", None),
    ("placeholders of printf", 'fx.printf("{} {}", i)', "FLY_PRINTF_PLACEHOLDERS", None),
    ("chip instruction elsewhere", "fx.rocdl.WMMA(16, 16, 16, fx.Float16)", None, None),
    # what a loop carries
    ("text carried through a loop", "for k in range(n):\n    out = 'text'  # <-", "FLY_CARRY_OPAQUE", "out"),
    ("init without yield", "for k, s in range(n, init=[i]):\n    s = s[0] + 1  # <-", "FLY_YIELD_MISSING", "s = s[0] + 1"),
]  # fmt: skip


def load_body(tmp_path, name: str, text: str):
    """Return the function of a file of its own with `text` as the body, and (line, column of its first character) of the fault."""
    lines = ["i = fx.thread_idx.x", *text.split("\n")]
    source = "import flydsl.expr as fx\n\n\ndef body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):\n" + "".join(f"    {line}\n" for line in lines)
    path = tmp_path / f"mistake_{name.replace(' ', '_').replace('(', '').replace(')', '').replace('-', '_')}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    all_lines = source.splitlines()
    marked = [k for k, line in enumerate(all_lines, 1) if line.endswith("# <-")]
    return module.body, path, marked[0] if marked else fault_line(all_lines, text)


def fault_line(lines: list[str], text: str) -> int:
    """Return the last line of the body, or of a compound statement that ends it the first one."""
    last = ast.parse(text).body[-1]
    return len(lines) - len(text.split("\n")) + last.lineno


@pytest.mark.parametrize("name, text, code, underlined", MISTAKES, ids=[m[0] for m in MISTAKES])
def test_mistake(tmp_path, name, text, code, underlined):
    body, path, line = load_body(tmp_path, name, text)
    kernel = flyc.kernel(body)

    @flyc.jit
    def launch(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        kernel(x, out, n).launch(grid=(1, 1, 1), block=(64, 1, 1))

    with env.override(ARCH="gfx942", FLYDSL_GPU_ARCH="gfx942"), pytest.raises(FlyError) as caught:
        launch(np.zeros(64, np.float32), np.zeros(64, np.float32), 3)
    error = caught.value
    said = str(error)
    assert code is None or error.code == code, said
    assert (error.span.file, error.span.line) == (str(path), line), said
    assert not HAS_COLUMNS or error.span.column > 4 and "^" in said, said
    assert f"error[{error.code}]: " in said and "  why: " in said and "  fix: " in said, said
    assert error.others == (), said
    builtin = [c for c in type(error).__mro__ if c.__module__ == "builtins" and c not in (Exception, BaseException, object)]
    assert builtin, "a class of Python's that a caller would expect"
    if underlined is not None and HAS_COLUMNS:
        assert path.read_text().splitlines()[line - 1][error.span.column - 1 : error.span.end_column - 1] == underlined, said


def test_the_list_is_long_enough():
    assert len(MISTAKES) >= 40 and len({m[0] for m in MISTAKES}) == len(MISTAKES)
