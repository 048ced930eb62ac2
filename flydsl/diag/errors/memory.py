"""Errors of tensors, pointers, fragments, copies, matrix operations and LDS."""

import dataclasses

from flydsl.diag.base import UserError

__all__ = [
    "AlignParameters",
    "AlignValue",
    "ArenaBase",
    "ArenaSize",
    "ArrayParameters",
    "ArrayPoke",
    "AtomExpected",
    "AtomOperation",
    "AtomicOrderingBad",
    "AtomicValue",
    "CallbackResult",
    "ConstexprLambda",
    "ConstexprRunTime",
    "ConstexprType",
    "ConstexprValue",
    "CoordTensorStore",
    "CopyCalls",
    "CopyDynamic",
    "CopyElement",
    "CopyNotContiguous",
    "CopyRank",
    "CopySizes",
    "CopyValues",
    "ElementConversion",
    "FieldKeyword",
    "FieldName",
    "FieldType",
    "FieldUnknown",
    "FragmentDynamic",
    "GatherShape",
    "GemmFragment",
    "GemmOrder",
    "GemmRank",
    "GemmSizes",
    "GemmTwoOrders",
    "NotDslType",
    "NotIterable",
    "NotJitArgument",
    "NotStorable",
    "OutsideKernel",
    "PointerConversion",
    "PointerField",
    "PointerOperand",
    "PredicateShape",
    "PrintfPlaceholders",
    "PrintfValue",
    "RecastType",
    "SecondAllocator",
    "SharedCapacity",
    "ShuffleMode",
    "ShuffleValue",
    "ShuffleWidth",
    "StaticOffset",
    "SliceKeepsNothing",
    "SmemIndex",
    "SpaceWrong",
    "StateValue",
    "StaticBase",
    "StaticType",
    "StrideUndefined",
    "StructFields",
    "StructFrozen",
    "TileDynamic",
    "UnionValue",
    "UnknownElementType",
    "ValueCount",
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


class NotIterable(UserError, TypeError):
    code = "FLY_NOT_ITERABLE"
    what = "a {kind} cannot be iterated over{detail}"
    why = "Python asks for one element after another while the kernel is traced, and the number of elements is not known then"
    fix = "loop over indices: `for k in range(n): x[k]`, or `fx.range_constexpr(4)` for a fixed number"


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


class OutsideKernel(UserError, RuntimeError):
    code = "FLY_OUTSIDE_KERNEL"
    what = "{what_text} can be used only inside the body of a @kernel function"
    why = "it belongs to the threads or the LDS of one kernel"
    fix = "move the call into the kernel; to pass a size from the host use a kernel argument"


class ShuffleMode(UserError, ValueError):
    code = "FLY_SHUFFLE_MODE"
    what = "unknown shuffle mode {mode!r}"
    why = "lanes exchange by xor, up, down or idx"
    fix = "use mode='xor', 'up', 'down' or 'idx'"


class ShuffleValue(UserError, TypeError):
    code = "FLY_SHUFFLE_VALUE"
    what = "cannot shuffle {got}"
    why = "lanes exchange registers of 32 bits; scalars have at most 64, vectors a multiple of 32"
    fix = "split the value, or widen a vector to a multiple of 32 bits"


class ShuffleWidth(UserError, ValueError):
    code = "FLY_SHUFFLE_WIDTH"
    what = "lanes cannot be grouped by {width}"
    why = "a wave of {arch} has {wave} lanes; groups of a power of two divide it"
    fix = "use a width of 1, 2, 4, ... {wave} (`fx.gpu.num_warp_threads()` for the whole wave)"


class StaticOffset(UserError, ValueError):
    code = "FLY_STATIC_OFFSET"
    what = "an offset of {offset} elements of {elem} is {first} bytes, which do not fit {bits} bits"
    why = "addresses have 64 bits, offsets in a buffer resource 32; the access would wrap to another place"
    fix = "check the index; to reach further with a buffer, make its resource from a pointer that is moved there"


class PrintfPlaceholders(UserError, ValueError):
    code = "FLY_PRINTF_PLACEHOLDERS"
    what = "printf: {placeholders} placeholders in {format_!r} for {values} values"
    why = "each value fills one {{}}"
    fix = "write one {{}} per value"


class PrintfValue(UserError, ValueError):
    code = "FLY_PRINTF_VALUE"
    what = "printf cannot print {got}: it is made of several run-time values"
    why = "a placeholder takes one scalar or one Vector"
    fix = "print its parts, for example fx.get_scalar(shape[0])"


class NotDslType(UserError, TypeError):
    code = "FLY_NOT_DSL_TYPE"
    what = "Cannot extract IR values from {got}"
    why = "a value that crosses loops, branches and calls is flattened to IR values and rebuilt"
    fix = "implement __extract_to_ir_values__ and __construct_from_ir_values__, or use @fx.struct"


class NotJitArgument(UserError, TypeError):
    code = "FLY_NOT_JIT_ARGUMENT"
    what = "{got} has no {part}: it cannot be a launch argument"
    why = "an argument states what specialises the code and how it is passed"
    fix = "pass scalars, tensors, pointers, or structs of these"


class NotStorable(UserError, TypeError):
    code = "FLY_NOT_STORABLE"
    what = "{got} is not Storable: {why_text}"
    why = "only scalars of whole bytes, Vector aliases, arrays, Pointer[...] and structs of these lie in memory"
    fix = "use a Storable type for the field, or keep the value in registers"


class ValueCount(UserError, ValueError):
    code = "FLY_VALUE_COUNT"
    what = "{owner}: expected {expected} ir.Values, got {got}"
    why = "a value is rebuilt from exactly the IR values that it was flattened to"
    fix = "pass what extract_to_ir_values returned"


class ConstexprType(UserError, TypeError):
    code = "FLY_CONSTEXPR_TYPE"
    what = "Constexpr[{got}] is not supported"
    why = "compile-time values are compared and printed to tell specialisations apart"
    fix = "use int, bool, float, str, tuple or Callable"


class ConstexprValue(UserError, TypeError):
    code = "FLY_CONSTEXPR_VALUE"
    what = "field {field!r} expects {wanted}, got {got}"
    why = "a Constexpr field holds a plain Python value of exactly this type"
    fix = "pass a Python {wanted}"


class ConstexprRunTime(UserError, TypeError):
    code = "FLY_CONSTEXPR_RUN_TIME"
    what = "`{parameter}` is Constexpr, but was given a run-time value of type {got}"
    why = "its value decides what code is generated, so it must be known while tracing"
    fix = "pass a Python value, or annotate the parameter as a run-time type such as fx.Int32"


class ConstexprLambda(UserError, TypeError):
    code = "FLY_CONSTEXPR_LAMBDA"
    what = "the lambda in field {field!r} uses names from outside: {names}"
    why = "two lambdas with one text and different captured values could not be told apart"
    fix = "use a module-level function, or pass the values as arguments"


class ArrayParameters(UserError, TypeError):
    code = "FLY_ARRAY_PARAMETERS"
    what = "{problem}"
    why = "an array has one scalar type and a size that is known while tracing"
    fix = "write fx.Array[fx.Float16, 128] or fx.Array[fx.Float16, 128, 16]"


class ArrayPoke(UserError, NotImplementedError):
    code = "FLY_ARRAY_POKE"
    what = "{array} cannot be written as a whole"
    why = "an array value is a handle to its memory, not its contents"
    fix = "write elements, a[i] = v, or copy through a.view(layout)"


class AlignParameters(UserError, TypeError):
    code = "FLY_ALIGN_PARAMETERS"
    what = "{problem}"
    why = "Align raises the alignment of a type to a number of bytes"
    fix = "write fx.Align[fx.Int32, 16]"


class AlignValue(UserError, ValueError):
    code = "FLY_ALIGN_VALUE"
    what = "{problem}"
    why = "addresses are aligned to powers of two, and an access needs at least the natural alignment"
    fix = "use a power of two that is not below the type's own alignment"


class PointerField(UserError, TypeError):
    code = "FLY_POINTER_FIELD"
    what = "Pointer[...] takes a scalar class, a memory and perhaps an alignment, got {got}"
    why = "the field holds an address of elements of that type"
    fix = "write fx.Pointer[fx.Float32, fx.AddressSpace.Global]"


class StructFrozen(UserError, dataclasses.FrozenInstanceError):
    code = "FLY_STRUCT_FROZEN"
    what = "cannot assign to field '{field}' of {struct}"
    why = "a struct value is immutable: what is carried through loops and branches is the whole value"
    fix = "write s = s.replace({field}=...)"


class StructFields(UserError, ValueError):
    code = "FLY_STRUCT_FIELDS"
    what = "{problem}"
    why = "fields are told apart by name"
    fix = "give each field a name of its own"


class FieldName(UserError, ValueError):
    code = "FLY_FIELD_NAME"
    what = "the field name {field!r} {problem}"
    why = "replace, peek and poke are methods of the value and its Storage; names with an underscore are internal"
    fix = "choose another name"


class FieldKeyword(UserError, TypeError):
    code = "FLY_FIELD_ARGUMENT"
    what = "{struct}: {problem}"
    why = "a value is made of one argument per field"
    fix = "pass each field once, by position or by name"


class FieldType(UserError, TypeError):
    code = "FLY_FIELD_TYPE"
    what = "{field} expects {wanted}, got {got}"
    why = "fields are not converted, except Python numbers to scalars and lists to vectors"
    fix = "convert it first: {wanted}(...)"


class FieldUnknown(UserError, AttributeError):
    code = "FLY_FIELD_UNKNOWN"
    what = "{storage} {problem} '{field}'"
    why = "an attribute of a Storage is the memory of a run-time field"
    fix = "use a declared run-time field; compile-time fields are read from the type"


class UnionValue(UserError, TypeError):
    code = "FLY_UNION_VALUE"
    what = "union {union} has no value form"
    why = "nothing says which of its fields is meant"
    fix = "make memory for it (Storage, SharedAllocator) and access one field"


class ArenaBase(UserError, NotImplementedError):
    code = "FLY_ARENA_BASE"
    what = "{arena} has no memory of its own"
    why = "an Arena counts bytes; a subclass says where they lie"
    fix = "use fx.SharedAllocator, or define base_ptr"


class ArenaSize(UserError, ValueError):
    code = "FLY_ARENA_SIZE"
    what = "allocation size must be > 0, got {size}"
    why = "memory is handed out in bytes"
    fix = "pass a positive number of bytes, or a type"


class SecondAllocator(UserError, RuntimeError):
    code = "FLY_SECOND_ALLOCATOR"
    what = "Only one SharedAllocator per kernel: `{kernel}` makes a second one"
    why = "two allocators would hand out the same LDS"
    fix = "make one at the top of the kernel and pass it to helpers"


class StaticBase(UserError, RuntimeError):
    code = "FLY_STATIC_BASE"
    what = "a static SharedAllocator has no shared base pointer"
    why = "each of its arrays is an LDS variable of its own"
    fix = "use the Storage that allocate() returned, or SharedAllocator(static=False)"


class SharedCapacity(UserError, RuntimeError):
    code = "FLY_SHARED_CAPACITY"
    what = "{used} bytes of LDS are allocated, but a workgroup of {arch} has {limit}: {parts}"
    why = "LDS is a fixed memory of each compute unit"
    fix = "use smaller tiles or fewer stages, or overlay arrays with @fx.union"


class StaticType(UserError, ValueError):
    code = "FLY_STATIC_TYPE"
    what = "`{got}` does not state its value: it has run-time parts"
    why = "static() makes the one value of a type that says everything"
    fix = "build the value from its run-time parts, for example with make_layout"


class GemmRank(UserError, ValueError):
    code = "FLY_GEMM_RANK"
    what = "GEMM requires rank-1 fragments or rank-2/3 A/B with rank-3 C/D"
    why = "got d `{d}`, a `{a}`, b `{b}`, c `{c}`"
    fix = "pass (V,M,K), (V,N,K), (V,M,N) fragments as make_fragment_A, _B, _C make them"


class GemmSizes(UserError, ValueError):
    code = "FLY_GEMM_SIZES"
    what = "GEMM {mode} tile dimensions must match"
    why = "got d `{d}`, a `{a}`, b `{b}`, c `{c}`"
    fix = "take all fragments from one tiled MMA, or slice them to equal extents"


class GemmTwoOrders(UserError, ValueError):
    code = "FLY_GEMM_TWO_ORDERS"
    what = "Only one of 'traversal_order' or 'traversal_layout' can be specified, not both"
    why = "both say in which order the products are computed"
    fix = "leave one out"


class GemmOrder(UserError, ValueError):
    code = "FLY_GEMM_ORDER"
    what = "{got} is not an order of traversal; possible: {members}"
    why = "each product (m, n, k) is computed once"
    fix = "write for example traversal_order=fx.GemmTraversalOrder.KMN"


class GemmFragment(UserError, ValueError):
    code = "FLY_GEMM_FRAGMENT"
    what = "operand {operand} of a matrix operation must have {wanted}, got {got}"
    why = "the instruction reads its operands from registers, in the layout of its lane map"
    fix = "make it with make_fragment_A, make_fragment_B or make_fragment_C of the tiled MMA"


class CallbackResult(UserError, TypeError):
    code = "FLY_GEMM_CALLBACK"
    what = "atom_callback must return an MmaAtom"
    why = "it chooses the atom of each step, but returned {got}"
    fix = "return the atom that was passed in, or atom.set_value(...)"


class AtomicOrderingBad(UserError, ValueError):
    code = "FLY_ATOMIC_ORDERING"
    what = "unknown memory ordering {got!r}; possible: {allowed}"
    why = "an ordering says which other accesses may move across this one"
    fix = "use a member of fx.AtomicOrdering"


class AtomicValue(UserError, TypeError):
    code = "FLY_ATOMIC_VALUE"
    what = "atomic {op} of {got} is not possible on {dtype}"
    why = "memory units add, subtract, compare and exchange floats; bit operations are for integers; f-forms for floats"
    fix = "reinterpret the pointer with fx.recast_iter, or use another operation"


class SmemIndex(UserError, TypeError):
    code = "FLY_SMEM_INDEX"
    what = "an index must be an integer, got {got}"
    why = "elements of LDS are addressed by integers"
    fix = "pass a Python int, an Int32 or a raw index"
