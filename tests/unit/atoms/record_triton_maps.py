"""Record which element Triton puts in which register of its matrix instructions: triton_maps.json is this script's output.

    PYTHON_WITH_TRITON record_triton_maps.py > triton_maps.json

Triton 3.9 or newer, no GPU. For each case a kernel of one tile is written in Gluon with the layouts below, compiled for the
chip, and the instruction read from the ISA: so Triton's own checks and code generation accepted the layouts for it. Triton may
number k as it likes where A and B do it alike; where scales or unlike widths fix the order, on gfx1250, its own compiler of
`tl.dot_scaled` is asked for its choice. The linear layouts are printed as bases. Scales: "SA" and "SB" map (lane, byte) to
(row or column, block of k).
"""
import re
from dataclasses import dataclass

import linear_maps
import triton
import triton.language as tl
from triton._C.libtriton import gluon_ir, ir
from triton.backends import backends
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.experimental import gluon
from triton.experimental.gluon import language as ttgl
from triton.experimental.gluon._runtime import GluonASTSource
from triton.experimental.gluon.language import DotOperandLayout, amd
from triton.experimental.gluon.language.amd import AMDMFMALayout, AMDWMMALayout

VERSIONS = {"gfx942": 3, "gfx950": 4, "gfx1100": 1, "gfx1201": 2, "gfx1250": 3}
KINDS = {
    "fp64": "f64", "fp32": "f32", "fp16": "f16", "bf16": "bf16", "i8": "i8", "fp8e4nv": "fp8", "fp8e4b8": "fp8", "e4m3": "fp8",
    "fp8e5": "bf8", "fp8e5b16": "bf8", "e5m2": "bf8", "e2m1": "fp4",
}
SCALED_TYPES = {"e4m3": "fp8e4nv", "e5m2": "fp8e5", "e2m1": "u8"}
ACC = {"fp32": ttgl.float32, "i32": ttgl.int32, "fp64": ttgl.float64}


@dataclass(frozen=True)
class Case:
    """One instruction: chip, shape, element types in Triton's words, and how many k a lane holds at a time."""

    arch: str
    shape: tuple[int, int, int]
    a: str
    b: str
    acc: str
    k_width: int
    is_scaled: bool = False

    @property
    def kinds(self) -> str:
        return f"{KINDS[self.a]},{KINDS[self.b]}"

    @property
    def wave(self) -> int:
        return 64 if self.arch in ("gfx942", "gfx950") else 32

    def parent(self, per_byte: int = 1):
        """Return the layout of the result; of fp4 operands, which Triton counts in bytes, with k halved."""
        m, n, k = self.shape
        shape = [m, n, k // per_byte]
        if self.wave == 64:
            bits = 64 if self.acc == "fp64" else 32
            return AMDMFMALayout(VERSIONS[self.arch], shape, False, [1, 1], element_bitwidth=bits)
        return AMDWMMALayout(VERSIONS[self.arch], False, [], instr_shape=shape)

    def per_byte(self, operand: str) -> int:
        """Return how many elements a byte holds where Triton counts bytes, else 1."""
        return 2 if self.is_scaled and {"A": self.a, "B": self.b}.get(operand) == "e2m1" else 1

    def layout(self, operand: str):
        """Return Triton's layout of an operand."""
        if operand == "C":
            return self.parent()
        # gfx1250 halves the shape of fp4 operands, gfx950 does not
        parent = self.parent(self.per_byte(operand)) if self.wave == 32 else self.parent()
        return DotOperandLayout("AB".index(operand), parent, self.k_width)


@gluon.jit
def tile(A, B, C, LA: ttgl.constexpr, LB: ttgl.constexpr, LC: ttgl.constexpr, M: ttgl.constexpr, N: ttgl.constexpr,
         KA: ttgl.constexpr, KB: ttgl.constexpr, ACC: ttgl.constexpr, kind: ttgl.constexpr, FA: ttgl.constexpr,
         FB: ttgl.constexpr):
    a = ttgl.load(A + ttgl.arange(0, M, ttgl.SliceLayout(1, LA))[:, None] * KA
                  + ttgl.arange(0, KA, ttgl.SliceLayout(0, LA))[None, :])
    b = ttgl.load(B + ttgl.arange(0, KB, ttgl.SliceLayout(1, LB))[:, None]
                  + ttgl.arange(0, N, ttgl.SliceLayout(0, LB))[None, :] * KB)
    c = ttgl.zeros([M, N], ACC, LC)
    if kind == "gfx1250":
        c = amd.cdna5.wmma(a, b, c)
    elif kind == "gfx1250-scaled":
        c = amd.cdna5.wmma_scaled(a, 120, FA, b, 121, FB, c)
    elif kind == "gfx950-scaled":
        c = amd.cdna4.mfma_scaled(a, 120, FA, b, 121, FB, c)
    elif kind == "gfx1201":
        c = amd.rdna4.wmma(a, b, c)
    elif kind == "gfx1100":
        c = amd.rdna3.wmma(a, b, c)
    else:
        c = amd.cdna3.mfma(a, b, c)
    ttgl.store(C + ttgl.arange(0, M, ttgl.SliceLayout(1, LC))[:, None] * N
               + ttgl.arange(0, N, ttgl.SliceLayout(0, LC))[None, :], c)


@triton.jit
def dot_scaled(A, B, C, SA, SB, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, KA: tl.constexpr, KB: tl.constexpr,
               FA: tl.constexpr, FB: tl.constexpr):
    m, n, blocks = tl.arange(0, M)[:, None], tl.arange(0, N), tl.arange(0, K // 32)[None, :]
    a = tl.load(A + m * KA + tl.arange(0, KA)[None, :])
    b = tl.load(B + tl.arange(0, KB)[:, None] + n[None, :] * KB)
    scale_a, scale_b = tl.load(SA + m * (K // 32) + blocks), tl.load(SB + n[:, None] * (K // 32) + blocks)
    tl.store(C + m * N + n[None, :], tl.dot_scaled(a, scale_a, FA, b, scale_b, FB))


def chosen_widths(case: Case) -> set[int]:
    """Return the k widths that Triton's compiler gives the operands of `tl.dot_scaled`."""
    m, n, k = case.shape
    constants = {"M": m, "N": n, "K": k, "KA": k // case.per_byte("A"), "KB": k // case.per_byte("B"), "FA": case.a, "FB": case.b}
    pointers = [SCALED_TYPES[case.a], SCALED_TYPES[case.b], "fp32", "u8", "u8"]
    signature = {**dict(zip(("A", "B", "C", "SA", "SB"), ("*" + p for p in pointers))), **dict.fromkeys(constants, "constexpr")}
    source = ASTSource(dot_scaled, signature=signature, constexprs=constants)
    text = triton.compile(source, target=GPUTarget("hip", case.arch, case.wave), options={"num_warps": 1}).asm["ttgir"]
    return {int(width) for width in re.findall(r"dot_op<{opIdx = \d, parent = #\w+, kWidth = (\d+)}>", text)}


def instruction(case: Case) -> str:
    """Return the matrix instruction that Triton emits for a case.

    Raises   ValueError: not exactly one
    """
    m, n, k = case.shape
    pointers = [SCALED_TYPES.get(x, x) for x in (case.a, case.b, case.acc)]
    constants = {
        "LA": case.layout("A"), "LB": case.layout("B"), "LC": case.layout("C"), "M": m, "N": n, "KA": k // case.per_byte("A"),
        "KB": k // case.per_byte("B"), "ACC": ACC[case.acc], "kind": case.arch + ("-scaled" if case.is_scaled else ""),
        "FA": case.a, "FB": case.b,
    }
    signature = {**dict(zip("ABC", ("*" + p for p in pointers))), **dict.fromkeys(constants, "constexpr")}
    source = GluonASTSource(tile, signature=signature, constexprs=constants)
    text = triton.compile(source, target=GPUTarget("hip", case.arch, case.wave), options={"num_warps": 1}).asm["amdgcn"]
    found = re.findall(r"^\s+(v_(?:wmma|mfma)_\w+)", text, re.MULTILINE)
    if len(found) != 1:
        raise ValueError(f"{case}: {found}")
    return found[0]


def builder(arch: str, wave: int):
    """Return an object that converts layouts, with its context kept alive."""
    context = ir.context()
    ir.load_dialects(context)
    backends["amd"].compiler(GPUTarget("hip", arch, wave)).load_dialects(context)
    return gluon_ir.GluonOpBuilder(context), context


def linear(case: Case, layout, shape: list[int]):
    """Return Triton's linear layout of a tensor."""
    convert, _context = builder(case.arch, case.wave)
    return convert.to_linear_layout(layout._to_ir(convert), shape)


def record(case: Case, name: str, operand: str) -> dict:
    """Return the record of A, B or C; fp4 in elements, the low half of a byte first."""
    m, n, k = case.shape
    per_byte = case.per_byte(operand)
    shape = {"A": [m, k // per_byte], "B": [k // per_byte, n], "C": [m, n]}[operand]
    found = linear(case, case.layout(operand), shape)

    def places(bases):
        points = [b[::-1] if operand == "B" else b for b in bases]
        return [(x, y * per_byte, 0) for x, y in points]

    item = places(found.reg_bases)
    item = ([(0, 1, 0)] if per_byte == 2 else []) + item
    return {"arch": case.arch, "instruction": name, "kinds": case.kinds, "operand": operand, "lane": places(found.lane_bases),
            "item": item}


def scale_records(case: Case, name: str) -> list[dict]:
    """Return where Triton puts the scales of A and B, one for 32 and on gfx1250 also one for 16 k."""
    m, n, k = case.shape
    out = []
    for operand, rows in (("A", m), ("B", n)):
        for block in (32, 16) if case.arch == "gfx1250" else (32,):
            if case.arch == "gfx1250":
                layout = amd.cdna5.get_wmma_scale_layout(case.layout(operand), [rows, k // block], block)
            else:
                layout = amd.cdna4.get_mfma_scale_layout(case.layout(operand), [rows, k // block], block)
            found = linear(case, layout, [rows, k // block])
            lane, item = ([(*b, 0) for b in bases] for bases in (found.lane_bases, found.reg_bases))
            scale_name = name.replace("scale_", "scale16_") if block == 16 else name
            out.append({"arch": case.arch, "instruction": scale_name, "kinds": case.kinds, "operand": "S" + operand,
                        "lane": lane, "item": item})
    return out


def cases():
    """Return every instruction that Triton has, with the k width it takes for the type."""
    for arch, fp8 in (("gfx942", ("fp8e4b8", "fp8e5b16")), ("gfx950", ("fp8e4nv", "fp8e5"))):
        double = 2 if arch == "gfx950" else 1
        for size, k in ((16, 4), (32, 2)):
            yield Case(arch, (size, size, k), "fp32", "fp32", "fp32", 1)
            for kind in ("fp16", "bf16"):
                for factor in {1, double}:
                    yield Case(arch, (size, size, 4 * k * factor), kind, kind, "fp32", 4 * factor)
            for factor in {1, double}:
                yield Case(arch, (size, size, 8 * k * factor), "i8", "i8", "i32", 8 * factor)
            yield from (Case(arch, (size, size, 8 * k), a, b, "fp32", 8) for a in fp8 for b in fp8)
        yield Case(arch, (16, 16, 4), "fp64", "fp64", "fp64", 1)
    for shape in ((16, 16, 128), (32, 32, 64)):
        yield from (Case("gfx950", shape, a, b, "fp32", 16, True) for a in SCALED_TYPES for b in SCALED_TYPES)
    for arch, width in (("gfx1100", 16), ("gfx1201", 8)):
        yield from (Case(arch, (16, 16, 16), kind, kind, "fp32", width) for kind in ("fp16", "bf16"))
        yield Case(arch, (16, 16, 16), "i8", "i8", "i32", width)
    fp8 = ("fp8e4nv", "fp8e5")
    yield from (Case("gfx1201", (16, 16, 16), a, b, "fp32", 8) for a in fp8 for b in fp8)
    yield Case("gfx1250", (16, 16, 4), "fp32", "fp32", "fp32", 2)
    yield from (Case("gfx1250", (16, 16, 32), kind, kind, "fp32", 8) for kind in ("fp16", "bf16"))
    yield Case("gfx1250", (16, 16, 64), "i8", "i8", "i32", 8)
    yield from (Case("gfx1250", (16, 16, k), a, b, "fp32", 8) for k in (64, 128) for a in fp8 for b in fp8)
    yield from (Case("gfx1250", (16, 16, 128), a, b, "fp32", 16, True) for a in SCALED_TYPES for b in SCALED_TYPES)
    yield Case("gfx1250", (32, 16, 128), "e2m1", "e2m1", "fp32", 16, True)


def main() -> None:
    """Print the file."""
    records = []
    for case in cases():
        name = instruction(case)
        if case.is_scaled and case.arch == "gfx1250" and chosen_widths(case) != {case.k_width}:
            raise ValueError(f"{case}: tl.dot_scaled has other k widths")
        records += [record(case, name, operand) for operand in "ABC"]
        if case.is_scaled:
            records += scale_records(case, name)
    print(linear_maps.write(f"Triton {triton.__version__}, layouts of Gluon", records), end="")


if __name__ == "__main__":
    main()
