"""The small float formats: values of codes, conversions by instruction and by integer code.

Encoding rounds to nearest even. Past the largest finite value it gives NaN or infinity where the format has them, else
the largest value; NaN gives NaN, or the largest value in formats without one.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from flydsl import arch as chips
from flydsl.ir import ir
from flydsl.ir.expression import Builder, Expr, f32_bits


class Format(NamedTuple):
    """One format of `1 + exponent + mantissa` bits.

    `kind`: "ieee" has infinities, "fn" a NaN per sign in the last code, "fnuz" one NaN in the code of -0, "finite"
    neither
    """

    name: str
    exponent: int
    mantissa: int
    bias: int
    kind: str
    instruction: str = ""  # "fp8" or "bf8" of v_cvt_*
    feature: str = ""  # of chips whose instruction has this format

    @property
    def bits(self) -> int:
        """Width."""
        return 1 + self.exponent + self.mantissa

    @property
    def largest(self) -> int:
        """The code of the largest finite value."""
        top = (1 << self.bits - 1) - 1
        return {"ieee": top - (1 << self.mantissa), "fn": top - 1}.get(self.kind, top)

    def decode(self, b: Builder, codes: ir.Value, arch: str) -> ir.Value:
        """Return the f32 values of i8 codes."""
        if self._has_instruction(arch):
            return _decode_by_instruction(b, codes, self.instruction)
        return self._decode(b.wrap(codes).cast("extui", "i32")).value

    def encode(self, b: Builder, x: ir.Value, arch: str) -> ir.Value:
        """Return the i8 codes of f32 values."""
        if self._has_instruction(arch):
            return _encode_by_instruction(b, x, self.instruction)
        return self._encode(b.wrap(x)).cast("trunci", "i8").value

    def _has_instruction(self, arch: str) -> bool:
        chip = chips.get(arch)
        return bool(self.instruction) and chip.has("fp8_cvt") and chip.has(self.feature)

    def _decode(self, code: Expr) -> Expr:
        m, sign_bit = self.mantissa, self.bits - 1
        magnitude = code & ((1 << sign_bit) - 1)
        normal = (magnitude << (23 - m)) + ((127 - self.bias) << 23)
        tiny = (magnitude.cast("uitofp", "f32") * 2.0 ** (1 - self.bias - m)).bits()
        bits = magnitude.compare("ult", 1 << m).select(tiny, normal)
        if self.kind == "ieee":
            special = (magnitude << (23 - m)) | 0x7F800000
            bits = magnitude.compare("ugt", self.largest).select(special, bits)
        elif self.kind == "fn":
            bits = magnitude.compare("ugt", self.largest).select(0x7FC00000, bits)
        sign = code.shr_unsigned(sign_bit) << 31
        if self.kind == "fnuz":
            return (code.compare("eq", 1 << sign_bit).select(0x7FC00000, bits | sign)).as_float()
        return (bits | sign).as_float()

    def _encode(self, x: Expr) -> Expr:
        m, sign_bit = self.mantissa, self.bits - 1
        bits = x.bits()
        a = bits & 0x7FFFFFFF
        rounded = a + (a.shr_unsigned(23 - m) & 1) + ((1 << 22 - m) - 1)
        normal = rounded.shr_unsigned(23 - m) - ((127 - self.bias) << m)
        magic = 2.0 ** (
            23 + 1 - self.bias - m
        )  # adding it leaves the rounded multiple of the smallest step in the low bits
        tiny = (a.as_float() + magic).bits() - f32_bits(magic)
        magnitude = a.compare("ult", f32_bits(2.0 ** (1 - self.bias))).select(tiny, normal)
        beyond = magnitude.compare("sgt", self.largest)
        sign = bits.shr_unsigned(31) << sign_bit
        if self.kind == "fnuz":
            signed = magnitude.compare("eq", 0).select(0, magnitude | sign)
            return beyond.select(1 << sign_bit, signed)
        past = {"ieee": self.largest + 1, "fn": self.largest + 1}.get(self.kind, self.largest)
        magnitude = beyond.select(past, magnitude)
        if self.kind == "ieee":
            magnitude = a.compare("ugt", 0x7F800000).select(self.largest + 1 + (1 << m - 1), magnitude)
        return magnitude | sign


class _PowersOfTwo(Format):
    """E8M0: an exponent alone, 255 is NaN; the middle of two powers goes up. Code 0 is 2**-127, a subnormal number as f32."""

    def _decode(self, code: Expr) -> Expr:
        normal = code.compare("eq", 0).select(0x00400000, code << 23)
        return code.compare("eq", 255).select(0x7FC00000, normal).as_float()

    def _encode(self, x: Expr) -> Expr:
        a = x.bits()
        code = a.compare("eq", 0x400000).select(0, (a + 0x400000).shr_unsigned(23))
        is_number = (a & 0x7FFFFFFF).compare("ult", 0x7F800000)
        return is_number.select(a.compare("slt", 0).select(255, code), 255)


_ROWS = (
    Format("f8E4M3FN", 4, 3, 7, "fn", "fp8", "fp8_ocp"),
    Format("f8E5M2", 5, 2, 15, "ieee", "bf8", "fp8_ocp"),
    Format("f8E4M3FNUZ", 4, 3, 8, "fnuz", "fp8", "fp8_fnuz"),
    Format("f8E5M2FNUZ", 5, 2, 16, "fnuz", "bf8", "fp8_fnuz"),
    Format("f8E4M3B11FNUZ", 4, 3, 11, "fnuz"),
    Format("f8E4M3", 4, 3, 7, "ieee"),
    Format("f6E2M3FN", 2, 3, 1, "finite"),
    Format("f6E3M2FN", 3, 2, 3, "finite"),
    Format("f4E2M1FN", 2, 1, 1, "finite"),
    _PowersOfTwo("f8E8M0FNU", 8, 0, 127, "fn"),
)
FORMATS: dict[str, Format] = {row.name: row for row in _ROWS}


def code_of(value: float, name: str) -> int:
    """Return the code of a constant; other values than the format's are rounded to nearest even."""
    f = FORMATS[name]
    if name == "f8E8M0FNU":
        return 255 if math.isnan(value) or value <= 0 else max(0, min(254, math.frexp(value * 4 / 3)[1] + 126))
    sign = (1 << f.bits - 1) if math.copysign(1.0, value) < 0 else 0
    nan = {"fnuz": 1 << f.bits - 1, "ieee": f.largest + 1 + (1 << f.mantissa - 1), "fn": f.largest + 1}.get(
        f.kind, f.largest
    )
    if math.isnan(value):
        return nan
    magnitude = abs(value)
    if math.isinf(magnitude):
        code = {"ieee": f.largest + 1, "fn": nan, "fnuz": 0}.get(f.kind, f.largest)
        return nan if f.kind == "fnuz" else code | sign
    exponent = max(math.frexp(magnitude)[1] - 1 if magnitude else -1000, 1 - f.bias)
    steps = round(math.ldexp(magnitude, f.mantissa - exponent))
    code = min(steps + ((exponent - 1 + f.bias) << f.mantissa), f.largest)
    return 0 if f.kind == "fnuz" and code == 0 else code | sign


# Instructions


def _decode_by_instruction(b: Builder, codes: ir.Value, instruction: str) -> ir.Value:
    """`v_cvt_f32_*` for one code, `v_cvt_pk_f32_*` for two of the four bytes of a word."""
    i32, f32 = b.type("i32"), b.type("f32")
    if not isinstance(codes.type, ir.VectorType):
        word = b.emit("arith.extui", i32, [codes])
        return b.emit(f"rocdl.cvt.f32.{instruction}", f32, [word], {"byteSel": ir.IntegerAttr.get(i32, 0)})
    n = ir.VectorType(codes.type).shape[0]
    pair, parts = b.type("vector<2xf32>"), []
    for word in _words(b, codes, n):
        for high in (False, True):
            if 2 * len(parts) < n:
                attrs = {"wordSel": ir.BoolAttr.get(high, b.context)}
                parts.append(b.emit(f"rocdl.cvt.pk.f32.{instruction}", pair, [word], attrs))
    return _concatenated(b, parts, n)


def _words(b: Builder, codes: ir.Value, n: int) -> list[ir.Value]:
    """Return the codes as i32 words, the last one filled up with whatever."""
    from flydsl.passes.fly_lower_small_floats.elements import shuffle

    count = -(-n // 4)
    if n % 4:
        codes = shuffle(b, codes, codes, [min(i, n - 1) for i in range(4 * count)])
    words = b.emit("vector.bitcast", b.type(f"vector<{count}xi32>"), [codes])
    return [_extract(b, words, i) for i in range(count)]


def _extract(b: Builder, v: ir.Value, i: int) -> ir.Value:
    attrs = {"static_position": ir.DenseI64ArrayAttr.get([i], b.context)}
    return b.emit("vector.extract", ir.VectorType(v.type).element_type, [v], attrs)


def _concatenated(b: Builder, parts: list[ir.Value], n: int) -> ir.Value:
    """Return the first `n` elements of vectors of two."""
    scalars = [_extract(b, part, i) for part in parts for i in range(2)][:n]
    kind = ir.VectorType.get([n], scalars[0].type, loc=ir.Location.unknown(b.context))
    return b.emit("vector.from_elements", kind, scalars)


def _encode_by_instruction(b: Builder, x: ir.Value, instruction: str) -> ir.Value:
    """`v_cvt_pk_*_f32`: two codes into one half of a word."""
    i32, i8 = b.type("i32"), b.type("i8")
    name = f"rocdl.cvt.pk.{instruction}.f32"

    def pair(low: ir.Value, high: ir.Value, old: ir.Value, is_high: bool) -> ir.Value:
        return b.emit(name, i32, [low, high, old], {"wordSel": ir.BoolAttr.get(is_high, b.context)})

    zero = b.constant(i32, 0)
    if not isinstance(x.type, ir.VectorType):
        return b.emit("arith.trunci", i8, [pair(x, x, zero, False)])
    n = ir.VectorType(x.type).shape[0]
    scalars = [_extract(b, x, min(i, n - 1)) for i in range(-(-n // 4) * 4)]
    words = []
    for i in range(0, n, 4):
        word = pair(scalars[i], scalars[i + 1], zero, False)
        words.append(pair(scalars[i + 2], scalars[i + 3], word, True) if i + 2 < n else word)
    whole = b.emit("vector.from_elements", b.type(f"vector<{len(words)}xi32>"), words)
    bytes_ = b.emit("vector.bitcast", b.type(f"vector<{4 * len(words)}xi8>"), [whole])
    if 4 * len(words) == n:
        return bytes_
    from flydsl.passes.fly_lower_small_floats.elements import shuffle

    return shuffle(b, bytes_, bytes_, list(range(n)))
