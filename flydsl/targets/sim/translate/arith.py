"""Rules of `arith` and of the LLVM dialect's arithmetic: one NumPy expression per op.

Integers are signed NumPy types that wrap; unsigned ops look at the same bits through `.view`. i1 is bool. f16 and
bf16 round after
each op, as the hardware's own-precision instructions do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flydsl.ir.elements import constant_elements
from flydsl.targets.sim.translate.function import FunctionTranslator
from flydsl.targets.sim.translate.poison import piece_of, unwritten
from flydsl.targets.sim.translate.rules import attribute, rule
from flydsl.targets.sim.translate.types import IrType
from flydsl.targets.sim.translate.values import Piece, Scalar, Struct, Vector

# --- constants -------------------------------------------------------------------------------------------------------


@rule("arith.constant", "llvm.mlir.constant")
def constant(t: FunctionTranslator, op: Any) -> None:
    result, attr = op.results[0], op.attributes["value"]
    type_ = t.type_of(result)
    if not type_.is_vector:
        t.define(result, t.constant(type_.elem, plain(attr)))
        return
    if attr.is_splat if hasattr(attr, "is_splat") else False:
        c = t.constant(type_.elem, plain(attr.get_splat_value()))
        t.define(result, Vector(type_, [Piece(c.text, 0, type_.n, 0, c.const)]))
        return
    items = [t.constant(type_.elem, v) for v in constant_elements(attr)]
    t.define(result, Vector(type_, [Piece(c.text, 0, 1, 0, c.const) for c in items]))
    t.set_pieces(result, t.get(result).pieces)


def plain(attr: Any) -> int | float | bool:
    """Return the Python value of an attribute or element."""
    if isinstance(attr, (int, float, bool)):
        return attr
    text = str(attr)
    if text in ("true", "false"):
        return text == "true"
    value = attr.value
    return value


@rule("llvm.mlir.zero")
def zero(t: FunctionTranslator, op: Any) -> None:
    t.define(op.results[0], zero_value(t, t.type_of(op.results[0])))


@rule("ub.poison", "llvm.mlir.poison", "llvm.mlir.undef")
def undefined(t: FunctionTranslator, op: Any) -> None:
    """Zeros, so that runs repeat; their use is reported."""
    type_ = t.type_of(op.results[0])
    if type_.elem == "struct" or type_.is_pointer:
        t.define(op.results[0], zero_value(t, type_))
        return
    scalar = unwritten(t, type_.elem)
    t.define(op.results[0], Vector(type_, [piece_of(scalar, type_.n)]) if type_.is_vector else scalar)


def zero_value(t: FunctionTranslator, type_: IrType) -> Any:
    """Return a value of zeros (what undefined values are here, so that runs repeat)."""
    if type_.elem == "struct":
        return Struct(type_, [zero_value(t, f) for f in type_.fields])
    c = t.constant(type_.elem, 0)
    if type_.is_vector:
        return Vector(type_, [Piece(c.text, 0, type_.n, 0, 0)])
    return c


# --- integers --------------------------------------------------------------------------------------------------------

BINARY = {
    "addi": "({0} + {1})",
    "subi": "({0} - {1})",
    "muli": "({0} * {1})",
    "andi": "({0} & {1})",
    "ori": "({0} | {1})",
    "xori": "({0} ^ {1})",
    "maxsi": "h_maximum({0}, {1})",
    "minsi": "h_minimum({0}, {1})",
    "maxui": "h_maxui({0}, {1})",
    "minui": "h_minui({0}, {1})",
    "addf": "({0} + {1})",
    "subf": "({0} - {1})",
    "mulf": "({0} * {1})",
    "divf": "({0} / {1})",
    "remf": "h_fmod({0}, {1})",
    "maxnumf": "h_fmax({0}, {1})",
    "minnumf": "h_fmin({0}, {1})",
    "maximumf": "h_maximumf({0}, {1})",
    "minimumf": "h_minimumf({0}, {1})",
}
LLVM_BINARY = {
    "add": "addi", "sub": "subi", "mul": "muli", "and": "andi", "or": "ori", "xor": "xori", "fadd": "addf", "fsub":
    "subf", "fmul": "mulf", "fdiv": "divf", "frem": "remf", "intr.smax": "maxsi", "intr.smin": "minsi", "intr.umax":
    "maxui", "intr.umin": "minui", "intr.maxnum": "maxnumf", "intr.minnum": "minnumf", "intr.maximum": "maximumf",
    "intr.minimum": "minimumf",
}  # fmt: skip
BOOL_FORMS = {
    "addi": "({0} ^ {1})",
    "subi": "({0} ^ {1})",
    "muli": "({0} & {1})",
    "maxsi": "({0} & {1})",
    "minsi": "({0} | {1})",
}


def arith_name(op: Any) -> str:
    """Return the `arith` spelling of an op of `arith` or `llvm`."""
    dialect, _, name = op.name.partition(".")
    return LLVM_BINARY.get(name, name) if dialect == "llvm" else name


@rule(*(f"arith.{n}" for n in BINARY), *(f"llvm.{n}" for n in LLVM_BINARY))
def binary(t: FunctionTranslator, op: Any) -> None:
    name = arith_name(op)
    form = BINARY[name]
    if t.type_of(op.results[0]).elem == "i1":
        form = BOOL_FORMS.get(name, form)
    folded = fold(t, op, name)
    if folded is None:
        t.elementwise(op.results[0], list(op.operands)[:2], form.format)


FOLDS: dict[str, Callable[[int, int], int]] = {
    "addi": lambda a, b: a + b,
    "subi": lambda a, b: a - b,
    "muli": lambda a, b: a * b,
    "andi": lambda a, b: a & b,
    "ori": lambda a, b: a | b,
    "xori": lambda a, b: a ^ b,
}


def fold(t: FunctionTranslator, op: Any, name: str) -> Scalar | None:
    """Bind the result of static integer operands without emitting anything, or of an operand that changes nothing."""
    values = [t.get(v) for v in list(op.operands)[:2]]
    if name not in FOLDS or not all(isinstance(v, Scalar) for v in values):
        return None
    a, b = values
    if a.const is not None and b.const is not None and a.type.elem != "i1":
        bits = a.type.bits
        wrapped = (FOLDS[name](int(a.const), int(b.const)) + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
        t.define(op.results[0], t.constant(a.type.elem, wrapped))
    elif name in ("addi", "ori", "xori", "subi") and b.const == 0 and b.const is not None:
        t.define(op.results[0], a)
    elif name in ("addi", "ori", "xori") and a.const == 0 and a.const is not None:
        t.define(op.results[0], b)
    elif name == "muli" and b.const == 1 and a.type.elem != "i1":
        t.define(op.results[0], a)
    else:
        return None
    return t.get(op.results[0])


SHIFTS = {"shli": "shl", "shrsi": "ashr", "shrui": "lshr"}


@rule("arith.shli", "arith.shrsi", "arith.shrui", "llvm.shl", "llvm.ashr", "llvm.lshr")
def shift(t: FunctionTranslator, op: Any) -> None:
    name = op.name.partition(".")[2]
    kind = SHIFTS.get(name, name)
    elem = t.type_of(op.results[0]).elem
    amount = t.const_of(op.operands[1])
    bits = t.type_of(op.results[0]).bits
    if elem == "i1":
        raise t.refuse("on i1", "use `and`/`or` of the bits")
    if amount is not None and 0 <= amount < bits:
        form = {
            "shl": "({0} << {1})",
            "ashr": "({0} >> {1})",
            "lshr": f"({{0}}.view(T_u{bits}) >> {{1}}.view(T_u{bits})).view(T_{elem})",
        }
        t.elementwise(op.results[0], list(op.operands), form[kind].format)
        return
    site = t.site()
    t.elementwise(op.results[0], list(op.operands), f"h_shift(M, {site}, '{kind}', {{0}}, {{1}}, {t.mask})".format)


@rule(
    "arith.divsi", "arith.divui", "arith.remsi", "arith.remui", "arith.floordivsi", "arith.ceildivsi",
    "arith.ceildivui", "llvm.sdiv", "llvm.udiv", "llvm.srem", "llvm.urem",
)  # fmt: skip
def divide(t: FunctionTranslator, op: Any) -> None:
    names = {"sdiv": "divsi", "udiv": "divui", "srem": "remsi", "urem": "remui"}
    name = op.name.partition(".")[2]
    kind = names.get(name, name)
    divisor = t.const_of(op.operands[1])
    if divisor is not None and divisor > 0:
        t.elementwise(op.results[0], list(op.operands), f"h_{kind}_const({{0}}, {{1}})".format)
        return
    site = t.site()
    t.elementwise(op.results[0], list(op.operands), f"h_divide(M, {site}, '{kind}', {{0}}, {{1}}, {t.mask})".format)


CMP_SIGNED = {0: "==", 1: "!=", 2: "<", 3: "<=", 4: ">", 5: ">=", 6: "<", 7: "<=", 8: ">", 9: ">="}


@rule("arith.cmpi", "llvm.icmp")
def cmpi(t: FunctionTranslator, op: Any) -> None:
    predicate = int(op.attributes["predicate"].value)
    sign = CMP_SIGNED[predicate]
    type_ = t.type_of(op.operands[0])
    form = f"({{0}} {sign} {{1}})"
    if type_.elem == "i1" and predicate in (2, 3, 4, 5):
        form = f"({{1}} {sign} {{0}})"  # true is -1
    elif predicate >= 6 and type_.is_int and type_.elem != "i1":
        u = f"T_u{type_.bits}"
        form = f"({{0}}.view({u}) {sign} {{1}}.view({u}))"
    t.elementwise(op.results[0], list(op.operands), form.format)


ORDERED = {1: "==", 2: ">", 3: ">=", 4: "<", 5: "<="}


@rule("arith.cmpf", "llvm.fcmp")
def cmpf(t: FunctionTranslator, op: Any) -> None:
    predicate = int(op.attributes["predicate"].value)
    forms = {
        0: "h_no({0}, {1})",
        6: "(({0} < {1}) | ({0} > {1}))",
        7: "(({0} == {0}) & ({1} == {1}))",
        8: "~(({0} < {1}) | ({0} > {1}))",
        13: "({0} != {1})",
        14: "(({0} != {0}) | ({1} != {1}))",
        15: "~h_no({0}, {1})",
    }
    if predicate in ORDERED:
        form = f"({{0}} {ORDERED[predicate]} {{1}})"
    elif 9 <= predicate <= 12:  # unordered: true on NaN
        inverse = {9: "<=", 10: "<", 11: ">=", 12: ">"}[predicate]
        form = f"~({{0}} {inverse} {{1}})"
    else:
        form = forms[predicate]
    t.elementwise(op.results[0], list(op.operands), form.format)


@rule("arith.select", "llvm.select")
def select(t: FunctionTranslator, op: Any) -> None:
    cond, a, b = (t.get(v) for v in op.operands)
    result = op.results[0]
    if isinstance(a, Vector):
        if isinstance(cond, Vector):
            t.elementwise(result, list(op.operands), "h_selectv({0}, {1}, {2})".format)
            return
        pieces = []
        for (x, y), n, splat in t.aligned([a, b]):
            helper = "h_select" if splat else "h_merge_part"
            pieces.append(Piece(t.let(f"{helper}({cond.text}, {x}, {y})"), 0, n, 0 if splat else n))
        t.define(result, Vector(a.type, pieces))
        return
    base = a.base if isinstance(a, Scalar) and a.base == b.base else None
    t.set_scalar(result, f"h_select({cond.text}, {a.text}, {b.text})", base)


@rule("arith.negf", "llvm.fneg")
def negf(t: FunctionTranslator, op: Any) -> None:
    t.elementwise(op.results[0], list(op.operands), "(-{0})".format)


@rule("llvm.intr.abs", "math.absi")
def absi(t: FunctionTranslator, op: Any) -> None:
    t.elementwise(op.results[0], [op.operands[0]], "h_abs({0})".format)


@rule("llvm.intr.sadd.sat", "llvm.intr.ssub.sat", "llvm.intr.uadd.sat", "llvm.intr.usub.sat")
def saturating(t: FunctionTranslator, op: Any) -> None:
    kind = op.name.split(".")[2]
    t.elementwise(op.results[0], list(op.operands), f"h_{kind}_sat({{0}}, {{1}})".format)


@rule("llvm.intr.fshl", "llvm.intr.fshr")
def funnel_shift(t: FunctionTranslator, op: Any) -> None:
    t.elementwise(op.results[0], list(op.operands), f"h_{op.name[10:]}({{0}}, {{1}}, {{2}})".format)


@rule("arith.mulsi_extended", "arith.mului_extended")
def mul_extended(t: FunctionTranslator, op: Any) -> None:
    operands = list(op.operands)
    kind = "h_mulhi_s" if "mulsi" in op.name else "h_mulhi_u"
    t.elementwise(op.results[0], operands, "({0} * {1})".format)
    t.elementwise(op.results[1], operands, f"{kind}({{0}}, {{1}})".format)


@rule("arith.addui_extended", "arith.subui_extended")
def carry_extended(t: FunctionTranslator, op: Any) -> None:
    operands = list(op.operands)
    u = f"T_u{t.type_of(operands[0]).bits}"
    add = "addui" in op.name
    t.elementwise(op.results[0], operands, ("({0} + {1})" if add else "({0} - {1})").format)
    pair = [op.results[0], operands[0]] if add else operands
    t.elementwise(op.results[1], pair, f"({{0}}.view({u}) < {{1}}.view({u}))".format)


OVERFLOWS = ("sadd", "ssub", "smul", "uadd", "usub", "umul")


@rule(*(f"llvm.intr.{k}.with.overflow" for k in OVERFLOWS))
def with_overflow(t: FunctionTranslator, op: Any) -> None:
    """A struct of the wrapped result and whether it wrapped."""
    kind = op.name.split(".")[2]
    type_ = t.type_of(op.results[0])
    if type_.fields[0].is_vector:
        raise t.refuse("on vectors", "apply it per element")
    a, b = (t.scalar(v) for v in op.operands)
    pair = t.let(f"h_with_overflow('{kind}', {a}, {b})")
    fields = [Scalar(t.let(f"{pair}[{i}]"), f) for i, f in enumerate(type_.fields)]
    t.define(op.results[0], Struct(type_, fields))


# --- conversions -----------------------------------------------------------------------------------------------------


@rule("arith.index_cast", "arith.extsi", "arith.trunci", "llvm.sext", "llvm.trunc")
def int_cast(t: FunctionTranslator, op: Any) -> None:
    src, dst = t.type_of(op.operands[0]), t.type_of(op.results[0])
    value = t.get(op.operands[0])
    if isinstance(value, Scalar) and value.const is not None and src.elem != "i1" and dst.elem != "i1":
        bits = dst.bits
        t.define(
            op.results[0], t.constant(dst.elem, (int(value.const) + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1))
        )
        return
    if src.elem == dst.elem:
        t.define(op.results[0], value)
        return
    form = f"{{0}}.astype(T_{dst.elem})"
    if "fly.buffer_offset" in op.attributes:
        form = f"h_buffer_offset(M, {t.site()}, {{0}}, {t.mask})"
    elif dst.elem == "i1":
        form = "(({0} & 1) != 0)"
    elif src.elem == "i1":
        form = f"(-{{0}}.astype(T_{dst.elem}))"
    t.elementwise(op.results[0], list(op.operands), form.format)


@rule("arith.extui", "arith.index_castui", "llvm.zext")
def extui(t: FunctionTranslator, op: Any) -> None:
    src, dst = t.type_of(op.operands[0]), t.type_of(op.results[0])
    if src.elem == dst.elem or dst.bits < src.bits:
        int_cast(t, op)
        return
    form = f"{{0}}.astype(T_{dst.elem})" if src.elem == "i1" else f"{{0}}.view(T_u{src.bits}).astype(T_{dst.elem})"
    t.elementwise(op.results[0], list(op.operands), form.format)


@rule("arith.extf", "arith.truncf", "arith.convertf", "llvm.fpext", "llvm.fptrunc")
def float_cast(t: FunctionTranslator, op: Any) -> None:
    src, dst = t.type_of(op.operands[0]).elem, t.type_of(op.results[0]).elem
    mode = attribute(op, "roundingmode")
    mode_text = str(mode).split("<")[-1].strip("<> ") if mode is not None else "to_nearest_even"
    mode_text = {
        "0": "to_nearest_even",
        "1": "downward",
        "2": "upward",
        "3": "toward_zero",
        "4": "to_nearest_away",
    }.get(mode_text.split(":")[0].strip(), mode_text)
    t.elementwise(op.results[0], list(op.operands), cast_form(src, dst, mode_text).format)


def cast_form(src: str, dst: str, mode: str = "to_nearest_even") -> str:
    """Return the expression of a float conversion."""
    if mode != "to_nearest_even":
        return f"h_round_to({{0}}, T_{dst}, '{mode}')"
    if src == dst:
        return "{0}"
    if (src, dst) == ("f16", "f32"):
        return "h_f16_to_f32({0})"
    if (src, dst) in (("f64", "bf16"), ("f32", "bf16"), ("bf16", "f32")):
        return f"h_{src}_to_{dst}({{0}})"
    return f"{{0}}.astype(T_{dst})"


@rule("arith.sitofp", "arith.uitofp", "llvm.sitofp", "llvm.uitofp")
def int_to_float(t: FunctionTranslator, op: Any) -> None:
    src, dst = t.type_of(op.operands[0]), t.type_of(op.results[0])
    unsigned = "uito" in op.name
    form = "{0}"
    if src.elem == "i1":
        form = "{0}.astype(T_i32)" if unsigned else "(-{0}.astype(T_i32))"
    elif unsigned:
        form = f"{{0}}.view(T_u{src.bits})"
    form = f"h_f64_to_bf16({form}.astype(T_f64))" if dst.elem == "bf16" else f"{form}.astype(T_{dst.elem})"
    t.elementwise(op.results[0], list(op.operands), form.format)


@rule("arith.fptosi", "arith.fptoui", "llvm.fptosi", "llvm.fptoui")
def float_to_int(t: FunctionTranslator, op: Any) -> None:
    dst = t.type_of(op.results[0])
    kind = "s" if "tosi" in op.name else "u"
    t.elementwise(op.results[0], list(op.operands), f"h_fpto{kind}i({{0}}, T_{dst.elem})".format)


@rule("arith.bitcast", "llvm.bitcast", "vector.bitcast")
def bitcast(t: FunctionTranslator, op: Any) -> None:
    src, dst = t.type_of(op.operands[0]), t.type_of(op.results[0])
    if src == dst:
        t.define(op.results[0], t.get(op.operands[0]))
    elif not src.is_vector and not dst.is_vector:
        if src.is_pointer or dst.is_pointer:
            t.define(op.results[0], t.get(op.operands[0]))
        else:
            t.set_scalar(op.results[0], f"{t.scalar(op.operands[0])}.view(T_{dst.elem})")
    elif src.n == dst.n and src.bits == dst.bits and "i1" not in (src.elem, dst.elem):
        t.elementwise(op.results[0], [op.operands[0]], f"{{0}}.view(T_{dst.elem})".format)
    else:
        bitcast_width(t, op, src, dst)


def bitcast_width(t: FunctionTranslator, op: Any, src: IrType, dst: IrType) -> None:
    """Bit casts that change the element count."""
    value = t.get(op.operands[0])
    if src.elem == "i1" or dst.elem == "i1":
        raise t.refuse("of i1 vectors", "use ballot, or shifts of integers")
    if isinstance(value, Vector) and value.splat is not None and dst.is_vector and value.splat.const == 0:
        t.define(op.results[0], Vector(dst, [Piece(t.constant(dst.elem, 0).text, 0, dst.n, 0, 0)]))
        return
    array = t.operand_array(op.operands[0])
    if not dst.is_vector:
        t.set_scalar(op.results[0], f"h_recast({array}, T_{dst.elem})[..., 0]")
    elif not src.is_vector:
        t.set_array(op.results[0], f"h_recast({array}[..., None], T_{dst.elem})")
    elif len(value.pieces) > 1 and all(
        not p.is_splat and p.off * src.bits % dst.bits == 0 and p.length * src.bits % dst.bits == 0
        for p in value.pieces
    ):
        pieces = []
        for p in value.pieces:
            n = p.length * src.bits // dst.bits
            pieces.append(Piece(t.let(f"h_recast({t.piece_text(p)}, T_{dst.elem})"), 0, n, n))
        t.define(op.results[0], Vector(dst, pieces))
    else:
        t.set_array(op.results[0], f"h_recast({array}, T_{dst.elem})")
