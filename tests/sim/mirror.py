"""The arithmetic of `fx` written again in NumPy, from spec and mathematics: promotion, wrap-around, rounding.
No code of ours is used.
"""

import ml_dtypes
import numpy as np

KINDS = {  # name: (kind, width, NumPy type); kind b Boolean, i signed, u unsigned, f float
    "Boolean": ("b", 1, np.bool_),
    **{f"Int{w}": ("i", w, getattr(np, f"int{w}")) for w in (8, 16, 32, 64)},
    **{f"Uint{w}": ("u", w, getattr(np, f"uint{w}")) for w in (8, 16, 32, 64)},
    "Float16": ("f", 16, np.float16),
    "BFloat16": ("f", 16, ml_dtypes.bfloat16),
    "Float32": ("f", 32, np.float32),
    "Float64": ("f", 64, np.float64),
}
ARITHMETIC = ("+", "-", "*", "/", "//", "%")
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
BITWISE = ("&", "|", "^", "<<", ">>")


def common(a: str, b: str) -> str:
    """Return the common class of two classes."""
    if a == b:
        return a
    (ka, wa, _), (kb, wb, _) = KINDS[a], KINDS[b]
    if ka == kb == "f":
        return "Float32" if wa == wb else a if wa > wb else b
    if "f" in (ka, kb):
        f, wf, wi = (a, wa, wb) if ka == "f" else (b, wb, wa)
        return f if wf >= wi else "Float32" if wi <= 32 else "Float64"
    ka, kb = ka.replace("b", "i"), kb.replace("b", "i")
    if ka == kb:
        return a if wa >= wb else b
    s, ws, u, wu = (a, wa, b, wb) if ka == "i" else (b, wb, a, wa)
    return u if wu >= ws else s


def convert(x: np.ndarray, target: str) -> np.ndarray:
    """Return values converted as C does; floats toward zero."""
    if target == "Boolean":
        return x != 0
    with np.errstate(all="ignore"):
        if x.dtype == np.float64 and target == "BFloat16":
            return x.astype(np.float32).astype(ml_dtypes.bfloat16)
        return x.astype(KINDS[target][2])


def binary(symbol: str, x: np.ndarray, a: str, y: np.ndarray, b: str) -> tuple[np.ndarray, str]:
    """Return the values and class of `x <symbol> y` at run time."""
    if symbol in ARITHMETIC:
        if a == "Boolean":
            x, a = convert(x, "Int32"), "Int32"
        if b == "Boolean":
            y, b = convert(y, "Int32"), "Int32"
    c = common(a, b)
    kind, width, _ = KINDS[c]
    x, y = convert(x, c), convert(y, c)
    if symbol == "/" and kind != "f":
        c = "Float32" if width <= 32 else "Float64"
        x, y = convert(x, c), convert(y, c)
    with np.errstate(all="ignore"):
        if symbol in COMPARISONS:
            return _compare(symbol, x, y), "Boolean"
        return _compute(symbol, x, y, c), c


def _compare(symbol: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    functions = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}
    functions |= {"==": np.equal, "!=": np.not_equal}
    return functions[symbol](x, y)


def _compute(symbol: str, x: np.ndarray, y: np.ndarray, c: str) -> np.ndarray:
    kind, _, dtype = KINDS[c]
    if c == "Boolean":
        return {"&": np.logical_and, "|": np.logical_or, "^": np.logical_xor}[symbol](x, y)
    if kind == "f":
        wide_x, wide_y = (x, y) if c in ("Float32", "Float64") else (x.astype(np.float32), y.astype(np.float32))
        if symbol == "//":
            return np.floor(np.divide(wide_x, wide_y).astype(dtype).astype(wide_x.dtype)).astype(dtype)
        functions = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "%": np.fmod}
        return functions[symbol](wide_x, wide_y).astype(dtype)
    functions = {"+": np.add, "-": np.subtract, "*": np.multiply, "//": np.floor_divide, "%": np.fmod}
    functions |= {"&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor}
    functions |= {"<<": np.left_shift, ">>": np.right_shift}
    return functions[symbol](x, y).astype(dtype)


def defined(symbol: str, x: np.ndarray, a: str, y: np.ndarray, b: str) -> np.ndarray:
    """Return where the operation has a defined result: no integer division by zero, no shift past the width."""
    if symbol in ARITHMETIC:
        a, b = ("Int32" if c == "Boolean" else c for c in (a, b))
    c = common(a, b)
    kind, width, dtype = KINDS[c]
    if kind == "f" or symbol not in ("//", "%", "<<", ">>"):
        return np.ones(len(x), bool)
    x, y = convert(x, c), convert(y, c)
    if symbol in ("<<", ">>"):
        return (y >= 0) & (y < width)
    overflow = (x == np.iinfo(dtype).min) & (y == -1) if kind == "i" else np.zeros(len(x), bool)
    return (y != 0) & ~overflow


def same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return where two arrays hold the same bits; all NaNs count as one."""
    if a.dtype == np.bool_:
        return a == b
    bits = f"u{a.dtype.itemsize}"
    equal = a.view(bits) == b.view(bits)
    if a.dtype.kind == "f" or a.dtype == ml_dtypes.bfloat16:
        equal |= (a != a) & (b != b)
    return equal


def edge_values(name: str) -> np.ndarray:
    """Return the values of a class at which arithmetic goes wrong."""
    kind, _, dtype = KINDS[name]
    if kind == "b":
        return np.array([False, True])
    if kind == "f":
        info = ml_dtypes.finfo(dtype)
        special = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            1.5,
            -2.5,
            7.0,
            np.inf,
            -np.inf,
            np.nan,
            float(info.max),
            float(info.min),
            1e-3,
            0.1,
            1e4,
        ]
        return np.array(special).astype(np.float32 if name == "BFloat16" else dtype).astype(dtype)
    info = np.iinfo(dtype)
    special = [0, 1, 2, 3, 7, info.max, info.min, info.max - 1, info.min + 1]
    if kind == "i":
        special += [-1, -2, -7]
    return np.array(special, dtype)
