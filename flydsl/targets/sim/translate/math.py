"""Rules of `math`, of LLVM's math intrinsics and of the hardware's approximations in `rocdl`.

f32 functions are computed in f64 and rounded once, f16 and bf16 ones in f64 too: well inside 2 ulp.
"""

from __future__ import annotations

from typing import Any

from flydsl.targets.sim.translate.function import FunctionTranslator
from flydsl.targets.sim.translate.rules import int_attribute, rule

UNARY = (
    "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt cbrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh "
    "erf erfc ceil floor trunc round roundeven"
).split()
LLVM_NAMES = (
    "exp exp2 log log2 log10 sqrt sin cos tan asin acos atan sinh cosh tanh ceil floor trunc round roundeven"
).split()
LLVM_UNARY = {"fabs": "absf", "rint": "roundeven", "nearbyint": "roundeven", "exp10": "exp10"} | {
    n: n for n in LLVM_NAMES
}


@rule(*(f"math.{n}" for n in UNARY))
def unary(t: FunctionTranslator, op: Any) -> None:
    t.elementwise(op.results[0], list(op.operands), f"h_math_{op.name[5:]}({{0}})".format)


@rule("math.absf", "llvm.intr.fabs")
def absf(t: FunctionTranslator, op: Any) -> None:
    t.elementwise(op.results[0], list(op.operands), "h_abs({0})".format)


@rule(*(f"llvm.intr.{n}" for n in LLVM_UNARY if n != "fabs"))
def llvm_unary(t: FunctionTranslator, op: Any) -> None:
    t.elementwise(op.results[0], list(op.operands), f"h_math_{LLVM_UNARY[op.name[10:]]}({{0}})".format)


@rule("math.fma", "llvm.intr.fma", "llvm.intr.fmuladd")
def fma(t: FunctionTranslator, op: Any) -> None:
    t.elementwise(op.results[0], list(op.operands), "h_fma({0}, {1}, {2})".format)


@rule("math.powf", "math.atan2", "math.copysign", "llvm.intr.pow", "llvm.intr.copysign", "llvm.intr.atan2")
def binary(t: FunctionTranslator, op: Any) -> None:
    name = {"powf": "pow"}.get(op.name.split(".")[-1], op.name.split(".")[-1])
    t.elementwise(op.results[0], list(op.operands), f"h_math_{name}({{0}}, {{1}})".format)


@rule("math.fpowi", "llvm.intr.powi")
def powi(t: FunctionTranslator, op: Any) -> None:
    t.elementwise(op.results[0], list(op.operands), "h_math_powi({0}, {1})".format)


@rule("math.ipowi")
def ipowi(t: FunctionTranslator, op: Any) -> None:
    t.elementwise(op.results[0], list(op.operands), "h_ipowi({0}, {1})".format)


@rule("math.clampf")
def clampf(t: FunctionTranslator, op: Any) -> None:
    t.elementwise(op.results[0], list(op.operands), "h_minimumf(h_maximumf({0}, {1}), {2})".format)


@rule("math.sincos")
def sincos(t: FunctionTranslator, op: Any) -> None:
    t.elementwise(op.results[0], list(op.operands), "h_math_sin({0})".format)
    t.elementwise(op.results[1], list(op.operands), "h_math_cos({0})".format)


@rule("math.isnan", "math.isinf", "math.isfinite", "math.isnormal")
def predicate(t: FunctionTranslator, op: Any) -> None:
    t.elementwise(op.results[0], list(op.operands), f"h_{op.name[5:]}({{0}})".format)


@rule("math.ctpop", "math.ctlz", "math.cttz", "llvm.intr.ctpop", "llvm.intr.ctlz", "llvm.intr.cttz")
def count_bits(t: FunctionTranslator, op: Any) -> None:
    t.elementwise(op.results[0], [op.operands[0]], f"h_{op.name.split('.')[-1]}({{0}})".format)


@rule("llvm.intr.bitreverse", "llvm.intr.bswap")
def reverse_bits(t: FunctionTranslator, op: Any) -> None:
    t.elementwise(op.results[0], [op.operands[0]], f"h_{op.name.split('.')[-1]}({{0}})".format)


@rule("llvm.intr.ldexp")
def ldexp(t: FunctionTranslator, op: Any) -> None:
    t.elementwise(op.results[0], list(op.operands), "h_ldexp({0}, {1})".format)


@rule("llvm.intr.is.fpclass")
def fpclass(t: FunctionTranslator, op: Any) -> None:
    bits = int_attribute(op, "bit")
    t.elementwise(op.results[0], list(op.operands), f"h_fpclass({{0}}, {bits})".format)


@rule("rocdl.exp2", "rocdl.log", "rocdl.rcp", "rocdl.rsq", "rocdl.sqrt", "rocdl.sin", "rocdl.cos", "rocdl.tanh")
def hardware(t: FunctionTranslator, op: Any) -> None:
    t.elementwise(op.results[0], list(op.operands), f"h_hw_{op.name[6:]}({{0}})".format)


@rule("rocdl.fmed3")
def fmed3(t: FunctionTranslator, op: Any) -> None:
    t.elementwise(op.results[0], list(op.operands), "h_fmed3({0}, {1}, {2})".format)


@rule("llvm.freeze", "llvm.intr.expect", "llvm.intr.ssa.copy", "llvm.intr.arithmetic.fence")
def identity(t: FunctionTranslator, op: Any) -> None:
    t.define(op.results[0], t.get(op.operands[0]))


@rule("llvm.intr.trap", "llvm.intr.debugtrap", "llvm.intr.ubsantrap")
def trap(t: FunctionTranslator, op: Any) -> None:
    t.emit(f"M.trap({t.site()}, {t.mask})")


@rule("llvm.intr.assume")
def assume(t: FunctionTranslator, op: Any) -> None:
    """An assumption has no effect."""
