"""One-tile kernels of matrix atoms: operands laid into registers by the manuals' lane maps, not by our tables.

`Case` describes one instruction on one chip; `run` launches it on given matrices, `expected` computes with NumPy in float64.
"""

import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import ml_dtypes
import numpy as np

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.atoms import mma_ops
from flydsl.atoms.matrix_rows import MatrixRow
from flydsl.utils import env

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "atoms"))

CHIPS = ("gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250")
BITS = {"f64": 64, "f32": 32, "xf32": 32, "i32": 32, "f16": 16, "bf16": 16, "fp8": 8, "bf8": 8, "i8": 8, "fp6": 6, "bf6": 6,
        "fp4": 4, "i4": 4}  # fmt: skip
NUMPY = {
    "f64": np.float64, "f32": np.float32, "xf32": np.float32, "i32": np.int32, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
    "fp8": ml_dtypes.float8_e4m3fn, "bf8": ml_dtypes.float8_e5m2, "fp6": ml_dtypes.float6_e2m3fn, "bf6": ml_dtypes.float6_e3m2fn,
    "fp4": ml_dtypes.float4_e2m1fn,
}  # fmt: skip
FNUZ = {"fp8": ml_dtypes.float8_e4m3fnuz, "bf8": ml_dtypes.float8_e5m2fnuz}
ELEMENT = {
    "f64": "f64", "f32": "f32", "xf32": "tf32", "f16": "f16", "bf16": "bf16", "fp8": "f8E4M3FN", "bf8": "f8E5M2", "i8": "i8",
    "fp6": "f6E2M3FN", "bf6": "f6E3M2FN", "fp4": "f4E2M1FN", "i4": "i4",
}  # fmt: skip
FNUZ_ELEMENT = {"fp8": "f8E4M3FNUZ", "bf8": "f8E5M2FNUZ"}


@dataclass(frozen=True)
class Case:
    """One matrix instruction on one chip."""

    arch: str
    row: MatrixRow
    opsel: tuple[int, int] = (0, 0)
    raw: str = ""  # "list", "plain" or "keywords": the raw intrinsic in this form, not the atom

    def __str__(self) -> str:
        return f"{self.raw}{self.arch}-{self.row.isa.removeprefix('v_')}-{self.row.a}-{self.row.b}-{self.row.scale_type}{self.opsel[0]}{self.opsel[1]}"

    @property
    def lanes(self) -> int:
        return self.row.wave_size

    @property
    def has_scales(self) -> bool:
        return bool(self.row.scale_type)

    def numpy(self, kind: str) -> type:
        return FNUZ.get(kind, NUMPY.get(kind)) if self.arch == "gfx942" else NUMPY.get(kind)

    def element(self, kind: str) -> str:
        return FNUZ_ELEMENT.get(kind, ELEMENT[kind]) if self.arch == "gfx942" else ELEMENT[kind]

    @property
    def atom(self):
        """The MMA atom of this instruction, or None when only the raw intrinsic reaches it."""
        r = self.row
        a, b = self.element(r.a), self.element(r.b)
        if self.raw or r.blocks > 1 or r.operands.endswith("opsel"):
            return None
        if r.family == "mfma":
            return mma_ops.MFMA(r.m, r.n, r.k, a, b, r.acc)
        if r.family == "mfma_scale":
            return mma_ops.MFMAScale(r.m, r.n, r.k, a, b, r.acc, *self.opsel)
        if r.family == "wmma":
            signs = {"sign_a": True, "sign_b": True} if r.a in ("i8", "i4") else {}
            return mma_ops.wmma(self.arch, r.m, r.n, r.k, a, r.acc, b=b, **signs)
        block = 32 if r.scale_type == "i32" else 16
        return mma_ops.WMMAScale(r.m, r.n, r.k, a, b, r.acc, *self.opsel, block_size=block)

    @cache
    def places(self, operand: str) -> tuple:
        """Return (x, k or y, block) index arrays of shape (lanes, values) from the manual, at the hardware's k."""
        from test_lane_maps import expected_output, hardware_input

        r = self.row
        values = r.values_per_lane["ABC".index(operand)]
        at = {
            "A": lambda l, i: hardware_input(r, r.m, r.a, l, i),
            "B": lambda l, i: hardware_input(r, r.n, r.b, l, i),
            "C": lambda l, i: expected_output(r, l, i),
        }[operand]
        table = np.array([[at(lane, i) for i in range(values)] for lane in range(self.lanes)])
        return table[..., 0], table[..., 1], table[..., 2]


def cases() -> list[Case]:
    """Return every matrix instruction of every chip."""
    return [Case(arch, row) for arch in CHIPS for row in mma_ops.supported(arch)]


# --- registers -----------------------------------------------------------------------------------------------------


def pack_registers(case: Case, operand: str, matrix: np.ndarray) -> np.ndarray:
    """Return bytes (lanes, bytes per lane) of a matrix (blocks, rows, columns) of storage items or codes."""
    kind = {"A": case.row.a, "B": case.row.b, "C": case.row.acc}[operand]
    x, y, block = case.places(operand)
    items = matrix[block, x, y]
    bits = BITS[kind]
    if bits >= 8:
        return np.ascontiguousarray(items).view(np.uint8).reshape(case.lanes, -1)
    spread = (items.view(np.uint8)[..., None] >> np.arange(bits)) & 1
    return np.packbits(spread.reshape(case.lanes, -1).astype(np.uint8), axis=1, bitorder="little")


def unpack_result(case: Case, registers: np.ndarray) -> np.ndarray:
    """Return D (blocks, m, n) of the bytes of the result registers."""
    r = case.row
    items = registers.view(NUMPY[r.acc])
    x, y, block = case.places("C")
    out = np.zeros((r.blocks, r.m, r.n), NUMPY[r.acc])
    out[block, x, y] = items
    return out


# --- kernels ---------------------------------------------------------------------------------------------------------


def lane_bytes(tensor, count, lane):
    """Return the bytes of a lane's register operand as a vector."""
    return fx.make_view(fx.add_offset(tensor.iter, lane * count), fx.make_layout(count, 1)).load()


_CASES: dict[str, Case] = {}


@flyc.kernel
def tile_kernel(
    A: fx.Tensor,
    B: fx.Tensor,
    C: fx.Tensor,
    D: fx.Tensor,
    sA: fx.Tensor,
    sB: fx.Tensor,
    name: fx.Constexpr[str],
    sizes: fx.Constexpr[tuple],
):
    case = _CASES[name]
    lane = fx.thread_idx.x
    atom = case.atom
    raw = [lane_bytes(t, n, lane) for t, n in zip((A, B, C), sizes)]
    if fx.const_expr(atom is None):
        d = raw_call(case, raw, (sA[lane], sB[lane]))
    else:
        kinds = (atom.a, atom.b, atom.acc)
        frags = []
        for values, kind, count in zip(raw, kinds, atom.values_per_thread):
            frag = fragment(kind, count)
            frag.store(typed(values, kind))
            frags.append(frag)
        state = {}
        if fx.const_expr(case.has_scales):
            state = {"scale_a": sA[lane], "scale_b": sB[lane]}
        a, b, c = frags
        fx.mma_atom_call(fx.make_mma_atom(atom), c, a, b, c, **state)
        d = c.load().bitcast(fx.Uint8)
    fx.make_view(fx.add_offset(D.iter, lane * sizes[2]), fx.make_layout(sizes[2], 1)).store(d)


def fragment(kind, count):
    return fx.make_rmem_tensor(count, storage_class(kind))


def typed(values, kind):
    return values.bitcast(storage_class(kind))


def storage_class(kind):
    names = {
        "f64": fx.Float64, "f32": fx.Float32, "tf32": fx.Float32, "f16": fx.Float16, "bf16": fx.BFloat16, "i8": fx.Int8,
        "i32": fx.Int32, "i4": fx.Int4, "f8E4M3FN": fx.Float8E4M3FN, "f8E5M2": fx.Float8E5M2, "f8E4M3FNUZ": fx.Float8E4M3FNUZ,
        "f8E5M2FNUZ": fx.Float8E5M2FNUZ, "f6E2M3FN": fx.Float6E2M3FN, "f6E3M2FN": fx.Float6E3M2FN, "f4E2M1FN": fx.Float4E2M1FN,
    }  # fmt: skip
    return names[kind]


FORMAT = {"fp8": 0, "bf8": 1, "fp6": 2, "bf6": 3, "fp4": 4}


def raw_call(case, raw, scales):
    """Call the raw intrinsic on registers of its own types."""
    row = case.row
    from flydsl.ir import current, emit1, parse_type

    types = [parse_type(text, current().context) for text in row.regs]

    def register(values, type_):
        value = values.ir_value()
        if str(type_).startswith("vector"):
            return emit1("vector.bitcast", type_, (value,))
        one = emit1("vector.bitcast", parse_type(f"vector<1x{type_}>", current().context), (value,))
        return fx.Vector(one)[0].ir_value()

    a, b, c = (register(v, t) for v, t in zip(raw, types))
    d = raw_forms(case, types[2], a, b, c, *(s.ir_value() for s in scales))
    d = getattr(d, "ir_value", lambda: d)()
    vector = (
        d
        if str(d.type).startswith("vector")
        else emit1("vector.broadcast", parse_type(f"vector<1x{d.type}>", current().context), (d,))
    )
    return fx.Vector(vector).bitcast(fx.Uint8)


def raw_forms(case, result, a, b, c, scale_a, scale_b):
    """Return what the intrinsic gives, called with a list, plainly, or by keyword."""
    row, form = case.row, case.raw or "list"
    signs = {"sign_a": True, "sign_b": True} if row.family == "wmma" and row.a in ("i8", "i4") else {}
    if row.family == "mfma":
        args, named = [a, b, c, 0, 0, 0], {"cbsz": 0, "abid": 0, "blgp": 0}
    elif row.family == "mfma_scale":
        args = [a, b, c, FORMAT[row.a], FORMAT[row.b], case.opsel[0], scale_a, case.opsel[1], scale_b]
        named = dict(zip(("cbsz", "blgp", "opsel_a", "scale_a", "opsel_b", "scale_b"), args[3:]))
    elif row.family == "wmma":
        args, named = [a, b, c], {}
    else:
        formats = {} if "f8f6f4" not in row.python_name else {"fmtA": FORMAT[row.a], "fmtB": FORMAT[row.b]}
        args, named, signs = [a, b, c, scale_a, scale_b], {"scale_a": scale_a, "scale_b": scale_b}, formats
    if form == "list" and row.family.startswith("mfma"):
        return getattr(fx.rocdl, row.python_name)(result, args)
    if form == "keywords":
        return getattr(fx.rocdl, row.python_name)(res=result, a=a, b=b, c=c, **named, **signs)
    return getattr(fx.rocdl, row.python_name.rstrip("_") + "_" * (form == "plain"))(result, *args, **signs)


@flyc.jit
def tile(
    A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, D: fx.Tensor, sA: fx.Tensor, sB: fx.Tensor, name: fx.Constexpr[str],
    sizes: fx.Constexpr[tuple], lanes: fx.Constexpr[int],
):  # fmt: skip
    tile_kernel(A, B, C, D, sA, sB, name, sizes).launch(grid=(1, 1, 1), block=(lanes, 1, 1))


def arguments(case: Case, a: np.ndarray, b: np.ndarray, c: np.ndarray, scales: tuple | None = None) -> tuple:
    """Return the launch arguments for operands (blocks, rows, columns) in storage items."""
    _CASES[str(case)] = case
    regs = [pack_registers(case, o, m) for o, m in zip("ABC", (a, b, c))]
    if case.row.opsel_result:  # the result fills the low half of each register
        wide = np.zeros((case.lanes, regs[2].shape[1] // 2, 2), np.uint16)
        wide[..., 0] = regs[2].view(np.uint16)
        regs[2] = wide.reshape(case.lanes, -1).view(np.uint8)
    dtype = np.int64 if case.row.scale_type == "i64" else np.int32
    sa, sb = (np.zeros(case.lanes, dtype),) * 2 if scales is None else scales
    d = np.zeros_like(regs[2])
    sizes = tuple(r.shape[1] for r in regs)
    return *(r.reshape(-1) for r in regs), d.reshape(-1), sa, sb, str(case), sizes, case.lanes


def run(case: Case, a: np.ndarray, b: np.ndarray, c: np.ndarray, scales: tuple | None = None) -> np.ndarray:
    """Return D (blocks, m, n)."""
    args = arguments(case, a, b, c, scales)
    with env.override(ARCH=case.arch, FLYDSL_GPU_ARCH=case.arch):
        tile(*args)
    registers = args[3].reshape(case.lanes, -1)
    if case.row.opsel_result:
        registers = np.ascontiguousarray(registers.view(np.uint16)[:, 0::2]).view(np.uint8)
    return unpack_result(case, registers)


def isa(case: Case, *operands: np.ndarray) -> str:
    """Return the assembly of the kernel."""
    args = arguments(case, *operands)
    with env.override(ARCH=case.arch, FLYDSL_GPU_ARCH=case.arch):
        artifact = tile.artifact_for(tile.wrap_arguments(args, {}))
        return artifact.codegen(("isa",)).isa


# --- values ----------------------------------------------------------------------------------------------------------


def values_of(case: Case, kind: str, items: np.ndarray) -> np.ndarray:
    """Return what the instruction reads from storage items, in float64."""
    if kind == "xf32":
        return (items.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)
    if kind in ("i8", "i4"):
        bits = BITS[kind]
        codes = items.astype(np.int64) & ((1 << bits) - 1)
        return (codes - ((codes >> bits - 1) << bits)).astype(np.float64)
    return items.astype(np.float64)
