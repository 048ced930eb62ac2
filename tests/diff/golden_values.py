"""Evaluates the recorded expressions on layouts, tensors and atoms; prints the rows that differ when run as a program.

python tests/diff/golden_values.py layout|tensor|mma
"""

import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import flydsl.expr as fx
from flydsl.dialects.values import KIND_OF_CLASS, inner_text
from flydsl.expr.fly_types import FlyType
from flydsl.expr.numeric import Numeric, wrap
from flydsl.expr.values import FlyValue
from flydsl.ir import ir

sys.path.insert(0, str(Path(__file__).parent.parent))
from kernel_trace import A, B, P, kernel

DATA = Path(__file__).parent / "data"
_GFX950 = ("cdna4", "BufferCopyLDS128b")  # refused where the chip lacks them


def read_rows(name: str) -> list[list[str]]:
    """Return the columns of each row."""
    text = (DATA / f"golden_{name}.tsv").read_text()
    return [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]


def namespace(arguments: list[ir.Value]) -> dict[str, Any]:
    """Return the names that the rows use."""
    a, b, p, n, m = arguments
    return {
        "fx": fx,
        "L": fx.make_layout,
        "E": fx.E,
        "SW": lambda *bits: fx.static(fx.SwizzleType.get(*bits)),
        "A": fx.Tensor(a),
        "B": fx.Tensor(b),
        "P": fx.Pointer(p),
        "n": wrap(fx.Int32, n),
        "m": wrap(fx.Int32, m),
    }


def evaluate(expression: str, arch: str = "gfx942") -> str:
    """Return the outcome of one expression, evaluated in a kernel of its own (one SharedAllocator per kernel)."""
    try:
        with kernel(A, B, P, "i32", "i32", arch=arch) as (_, arguments):
            return show(eval(expression, namespace(arguments)))
    except Exception as e:  # any error can be the recorded outcome
        return f"INVALID {type(e).__name__}: {getattr(e, 'message', e)}"


def plain_text(text: str) -> str:
    """Return a printed type without the dialects' prefixes."""
    return text.replace("!fly_", "").replace("!fly.", "")


def show(x: Any) -> str:
    """Return a value in the notation of the rows."""
    match x:
        case None:
            return "object"
        case Enum():
            return repr(x)
        case bool() | int() | str():
            return str(x)
        case tuple() | list():
            return f"({', '.join(show(i) for i in x)})"
        case FlyValue():
            return plain_text(f"{KIND_OF_CLASS[type(x.plain)]}<{inner_text(x.plain)}>")
        case FlyType():
            return repr(x)
        case Numeric() if x.is_static():
            return f"{type(x).__name__}({x.value!r})"
        case Numeric():
            return f"{type(x).__name__}[{x.ir_value().type}]"
        case fx.Vector():
            return str(x.ir_value().type)
        case ir.Value():
            return str(x.type)
        case type():
            return x.__name__
        case ir.Attribute():
            return "none"
    return str(x)


def same(recorded: str, ours: str) -> bool:
    """Return whether two outcomes agree; a refusal agrees with any refusal."""
    if recorded.startswith("INVALID"):
        return ours.startswith("INVALID")
    return recorded == ours


def outcomes(name: str) -> Iterator[tuple[str, str, str]]:
    """Yield (row, recorded, ours)."""
    for columns in read_rows(name):
        if name == "mma":
            arch, atom, recorded = columns
            parts = "(lambda a: (a.thr_layout, a.shape_mnk, a.layout_A_tv, a.layout_B_tv, a.layout_C_tv))"
            yield f"{arch} {atom}", recorded, evaluate(f"{parts}(fx.make_mma_atom({atom}))", arch)
        else:
            arch = "gfx950" if any(word in columns[0] for word in _GFX950) else "gfx942"
            yield columns[0], columns[1], evaluate(columns[0], arch)


def main() -> None:
    for name in sys.argv[1:] or ("layout", "tensor", "mma"):
        total = different = 0
        for row, recorded, ours in outcomes(name):
            total += 1
            if not same(recorded, ours):
                different += 1
                sys.stdout.write(f"{row}\n    recorded {recorded}\n    ours     {ours}\n")
        sys.stdout.write(f"{name}: {total - different} of {total} rows agree\n")


if __name__ == "__main__":
    main()
