"""Values as 32-bit words: what lane exchanges and permutes move."""

from collections.abc import Callable

from flydsl.expr.rocdl.values import const_i32
from flydsl.ir import current, emit1, ir


def bit_size(type_: ir.Type) -> int:
    """Return the bits of a scalar or vector type.

    Raises   TypeError: a type of no fixed width
    """
    if isinstance(type_, ir.VectorType):
        count = 1
        for extent in type_.shape:
            count *= extent
        return count * bit_size(type_.element_type)
    if isinstance(type_, (ir.IntegerType, ir.FloatType)):
        return type_.width
    raise TypeError(f"{type_} has no fixed number of bits")


def bitcast(value: ir.Value, type_: ir.Type) -> ir.Value:
    """Return the same bits as another type."""
    return value if value.type == type_ else emit1("llvm.bitcast", type_, (value,))


def map_words(value: ir.Value, move: Callable[[ir.Value], ir.Value]) -> ir.Value:
    """Return `value` with `move` applied to each of its 32-bit words; a narrower value rides in the low bits of one."""
    types = current().types
    bits = bit_size(value.type)
    if bits < 32:
        narrow = ir.IntegerType.get_signless(bits, types.i1.context)
        word = emit1("arith.extui", types.i32, (bitcast(value, narrow),))
        return bitcast(emit1("arith.trunci", narrow, (move(word),)), value.type)
    if bits == 32:
        return bitcast(move(bitcast(value, types.i32)), value.type)
    if bits % 32:
        raise TypeError(f"{value.type} is not a whole number of 32-bit words")
    words = types.vector(bits // 32, types.i32)
    split, out = bitcast(value, words), emit1("llvm.mlir.poison", words)
    for i in range(bits // 32):
        word = move(emit1("llvm.extractelement", types.i32, (split, const_i32(i))))
        out = emit1("llvm.insertelement", words, (out, word, const_i32(i)))
    return bitcast(out, value.type)
