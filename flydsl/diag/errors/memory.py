"""Errors of tensors, pointers, fragments, copies, matrix operations and LDS."""

from flydsl.diag.base import UserError

__all__ = [
    "AtomExpected",
    "AtomOperation",
    "CoordTensorStore",
    "CopyCalls",
    "CopyDynamic",
    "CopyElement",
    "CopyNotContiguous",
    "CopyRank",
    "CopySizes",
    "CopyValues",
    "ElementConversion",
    "FragmentDynamic",
    "GatherShape",
    "PointerConversion",
    "PointerOperand",
    "PredicateShape",
    "RecastType",
    "SliceKeepsNothing",
    "SpaceWrong",
    "StateValue",
    "StrideUndefined",
    "TileDynamic",
    "UnknownElementType",
    "VectorDtype",
    "VectorNeedsStatic",
    "VectorSize",
]


class UnknownElementType(UserError, TypeError):
    code = "FLY_ELEMENT_TYPE"
    what = "{subject} must be a scalar class of fx or an MLIR scalar type, got {got}"
    why = "tensors and pointers have elements of one scalar type"
    fix = "pass a class such as fx.Float16"


class StrideUndefined(UserError, TypeError):
    code = "FLY_STRIDE_UNDEFINED"
    what = "ComposedLayout doesn't have a meaningful stride: `{layout}`"
    why = "a swizzle or an inner layout is applied after the strides, so steps are not constant"
    fix = "look at `.outer.stride`, the strides before the swizzle"


class TileDynamic(UserError, ValueError):
    code = "FLY_TILE_DYNAMIC"
    what = "a tile is static, but one of its modes is `{got}`"
    why = "how a tensor is cut decides its type, so it must be known while tracing"
    fix = "use Python ints or fx.Constexpr values; for a run-time extent divide by a static tile and slice"


class SliceKeepsNothing(UserError, ValueError):
    code = "FLY_SLICE_FULL"
    what = "slice by `{coord}` keeps no mode: the coordinate has no None"
    why = "slice removes the modes that the coordinate fixes"
    fix = "put None where a mode is kept; to read an element index the tensor: t[i, j]"


class SpaceWrong(UserError, ValueError):
    code = "FLY_SPACE"
    what = "{op} needs a pointer to {wanted} memory, got {got}"
    why = "the operation is defined by the kind of memory that the pointer reaches"
    fix = "use a pointer of that memory; registers have no address, buffer memory has a descriptor and an offset"


class RecastType(UserError, TypeError):
    code = "FLY_RECAST_TYPE"
    what = "result_type must be a Numeric subclass or a fly Pointer, got unsupported {got}"
    why = "recast_iter changes what the elements are, one scalar type to another"
    fix = "pass a class such as fx.Int8; to load vectors use ptr.load(fx.Float32x4)"


class PointerConversion(UserError, TypeError):
    code = "FLY_POINTER_TYPE"
    what = "an address becomes a pointer of a PointerType in global, shared or generic memory, got {got}"
    why = "registers and buffer memory are not reached by an address alone"
    fix = "write fx.PointerType.get(fx.Float32, fx.AddressSpace.Global, alignment)"


class PointerOperand(UserError, TypeError):
    code = "FLY_POINTER_OPERAND"
    what = "a {space} pointer is made of {wanted}, got {got}"
    why = "addresses are 64 bits wide, those of LDS 32"
    fix = "convert first: {wanted}(x)"


class ElementConversion(UserError, TypeError):
    code = "FLY_ELEMENT_CONVERSION"
    what = "{got} cannot be used as an element of type {dtype}"
    why = "an element is one scalar; vectors are moved by load and store of a whole tensor"
    fix = "pass a Python number or a scalar of fx"


class CoordTensorStore(UserError, TypeError):
    code = "FLY_COORD_TENSOR_STORE"
    what = "a coordinate tensor cannot be written: `{tensor}`"
    why = "its elements are computed from their coordinates; it has no memory"
    fix = "write to a register tensor: fx.make_rmem_tensor(shape, dtype)"


class FragmentDynamic(UserError, ValueError):
    code = "FLY_FRAGMENT_DYNAMIC"
    what = "{op}: the layout of a register tensor must be static, got `{layout}`"
    why = "registers are allotted when the kernel is compiled"
    fix = "cut the tensor by a static tile first (zipped_divide, partition) and make the fragment of one piece"


class VectorNeedsStatic(UserError, ValueError):
    code = "FLY_VECTOR_DYNAMIC"
    what = "{op} of a whole tensor needs a static shape, got `{layout}`"
    why = "a vector has a fixed number of elements"
    fix = "cut the tensor by a static tile, or access single elements: t[i]"


class VectorSize(UserError, ValueError):
    code = "FLY_VECTOR_SIZE"
    what = "cannot store {got} to a tensor of {count} elements: `{tensor}`"
    why = "store writes every element once"
    fix = "slice the tensor to as many elements, or build a vector of {count}"


class VectorDtype(UserError, TypeError):
    code = "FLY_VECTOR_DTYPE"
    what = "cannot store {got} to a tensor of {dtype}"
    why = "a whole-tensor store converts nothing"
    fix = "convert the Vector with .to(t.dtype); to set all elements to one number use t.fill(x)"


class AtomOperation(UserError, TypeError):
    code = "FLY_ATOM_OPERATION"
    what = "{op} needs a {kind} operation, got {got}"
    why = "an atom is made of the operation that names its instruction"
    fix = "pass for example {example}"


class AtomExpected(UserError, TypeError):
    code = "FLY_ATOM_EXPECTED"
    what = "{op} needs a {kind}, got {got}"
    why = "the instruction to use is named by the atom; one thread's slice only cuts tensors"
    fix = "pass the atom, or the tiled operation that the slice was taken from"


class StateValue(UserError, TypeError):
    code = "FLY_STATE_VALUE"
    what = "the state `{field}` of the atom is an {kind}, got {got}"
    why = "the instruction takes it in a register of this width"
    fix = "pass an integer, or as many packed bits as one {kind} holds"


class CopyRank(UserError, ValueError):
    code = "FLY_COPY_RANK"
    what = "copy needs tensors of equal rank, got {src_rank} (`{src}`) and {dst_rank} (`{dst}`)"
    why = "the modes after the first are walked side by side"
    fix = "slice or group one of them until both have the same modes"


class CopyDynamic(UserError, ValueError):
    code = "FLY_COPY_DYNAMIC"
    what = "copy needs static extents, but {operand} has the layout `{layout}`"
    why = "the copy is unrolled into atom calls while the kernel is traced"
    fix = "divide by a static tile and slice one tile, or loop over the run-time mode"


class CopyValues(UserError, ValueError):
    code = "FLY_COPY_VALUES"
    what = "{atom} moves {count} values, but the value mode of {operand} is `{mode}`"
    why = "the first mode holds the values of one atom call, or of several: ((atom), (rest))"
    fix = "make the fragment by partition or retile of a copy with this atom, or choose an atom of another width"


class CopyCalls(UserError, ValueError):
    code = "FLY_COPY_CALL"
    what = "one call of {atom} moves {count} values, but {operand} is `{layout}`"
    why = "copy_atom_call issues the instruction once"
    fix = "slice one atom's values, or use fx.copy to run through the other modes"


class CopySizes(UserError, ValueError):
    code = "FLY_COPY_SIZES"
    what = "copy needs the same number of atom calls per mode, got {src_calls} for `{src}` and {dst_calls} for `{dst}`"
    why = "source and destination are walked side by side"
    fix = "make the fragment with make_fragment_like(partition), or slice both alike"


class CopyElement(UserError, ValueError):
    code = "FLY_COPY_ELEMENT"
    what = "{atom} moves values of {bits} bits, but {operand} holds {got}"
    why = "a copy converts nothing: atom, source and destination have elements of one width"
    fix = "make the atom for this element type; convert in registers: r.load().to(dtype)"


class CopyNotContiguous(UserError, ValueError):
    code = "FLY_COPY_NOT_CONTIGUOUS"
    what = "a {bits}-bit copy needs {count} adjacent {dtype}, but {operand} {step}"
    why = "one instruction moves one run of adjacent bytes; here the value mode is `{mode}`"
    fix = "order the value layout along the contiguous mode, or use a narrower copy atom"


class PredicateShape(UserError, ValueError):
    code = "FLY_COPY_PREDICATE"
    what = "pred must hold one Boolean per atom call, shape {wanted}, got `{pred}`"
    why = "{calls} calls are made, each with its own predicate"
    fix = "make it with fx.make_rmem_tensor(shape, fx.Boolean); the value mode may be left out or have extent 1"


class GatherShape(UserError, ValueError):
    code = "FLY_GATHER_SHAPE"
    what = "{op}: data `{data}` and offsets `{offsets}` do not fit"
    why = "data has the shape (({count}, TV), rest...) and offsets (TV, rest...), one offset per atom call"
    fix = "group the data's value mode as ((atom values), (offsets)), and give the offsets the same extents"
