"""Raw memory instructions in the forms kernels use: buffer loads, stores and atomics, DMA to LDS, tensor DMA."""

from typing import Any

from flydsl import arch as chips
from flydsl.atoms.copy_rows import buffer_atomic_mnemonic
from flydsl.atoms.elements import mangled
from flydsl.diag import IntrinsicNotOnChip, RocdlOperand
from flydsl.expr.rocdl.build import builder
from flydsl.expr.rocdl.values import chip, const_i32, i32, operand, require, static_int
from flydsl.ir import current, ir

_load_lds = builder("raw_ptr_buffer_load_lds")
_load = builder("raw_ptr_buffer_load")
_store = builder("raw_ptr_buffer_store")
_ATOMICS = {name: builder(f"raw_ptr_buffer_atomic_{name}") for name in ("fadd", "fmax", "smax", "umin")}


def raw_ptr_buffer_load(res: Any, rsrc: Any, offset: Any, soffset: Any, aux: Any = None, **rest: Any) -> Any:
    """Load from a buffer resource; `offset` per lane and `soffset` per wave in bytes.

    `aux`: 1 SC0, 2 NT, 16 SC1 on gfx942 and gfx950.
    """
    return _load(res, rsrc, i32(offset), i32(soffset), aux=_aux(aux), **rest)


def raw_ptr_buffer_store(
    vdata: Any, rsrc: Any, offset: Any, soffset: Any, aux: Any = None, **rest: Any
) -> ir.Operation:
    """Store to a buffer resource; offsets in bytes as for the load."""
    return _store(vdata, rsrc, i32(offset), i32(soffset), aux=_aux(aux), **rest)


def _atomic(kind: str, args: tuple, aux: Any, rest: dict) -> Any:
    # The raw op takes its result type first; the short form leaves it out, because it is the type of the data.
    res, args = (args[0], args[1:]) if isinstance(args[0], (type, ir.Type)) else (None, args)
    if len(args) == 5:
        *args, aux = args
    vdata, rsrc, offset, soffset = args
    value = operand(vdata, None, f"raw_ptr_buffer_atomic_{kind}", "vdata")
    _check_atomic_type(kind, str(value.type))
    return _ATOMICS[kind](
        value.type if res is None else res, value, rsrc, i32(offset), i32(soffset), aux=_aux(aux), **rest
    )


def _check_atomic_type(kind: str, type_: str) -> None:
    """Refuse an atomic on a type that the current chip does not have.

    Raises   IntrinsicNotOnChip
    """

    def is_on(name: str) -> bool:
        return bool(buffer_atomic_mnemonic(kind, mangled(type_), name))

    if not is_on(chip().name):
        having = ", ".join(name for name in chips.names() if is_on(name))
        name = f"rocdl.raw_ptr_buffer_atomic_{kind} of {type_}"
        raise IntrinsicNotOnChip(name=name, arch=chip().name, chips_text=having or "no chip")


def raw_ptr_buffer_atomic_fadd(*args: Any, aux: Any = None, **rest: Any) -> Any:
    """Add a float, or a pair of f16 or bf16, in memory: (vdata, rsrc, offset, soffset, aux=None); returns the old
    value.
    """
    return _atomic("fadd", args, aux, rest)


def raw_ptr_buffer_atomic_fmax(*args: Any, aux: Any = None, **rest: Any) -> Any:
    """Keep the larger float in memory: (vdata, rsrc, offset, soffset, aux=None); returns the old value."""
    return _atomic("fmax", args, aux, rest)


def raw_ptr_buffer_atomic_smax(*args: Any, aux: Any = None, **rest: Any) -> Any:
    """Keep the larger signed integer in memory; returns the old value."""
    return _atomic("smax", args, aux, rest)


def raw_ptr_buffer_atomic_umin(*args: Any, aux: Any = None, **rest: Any) -> Any:
    """Keep the smaller unsigned integer in memory; returns the old value."""
    return _atomic("umin", args, aux, rest)


def raw_ptr_buffer_load_lds(
    rsrc: Any, lds_ptr: Any, size: Any, voffset: Any, soffset: Any, offset: Any, aux: Any = None, **rest: Any
) -> ir.Operation:
    """Copy `size` bytes per lane from a buffer to LDS: 1, 2 or 4, on gfx950 also 12 or 16. Returns the op.

    Lane l writes at the wave's LDS address + l * size. `size` and `offset` are constants; wait with vmcnt.
    """
    check_dma_size(static_int(size, "raw_ptr_buffer_load_lds", "size"), "raw_ptr_buffer_load_lds")
    size, offset = (
        const_i32(static_int(x, "raw_ptr_buffer_load_lds", n)) for x, n in ((size, "size"), (offset, "offset"))
    )
    return _load_lds(rsrc, lds_ptr, size, i32(voffset), i32(soffset), offset, aux=_aux(aux), **rest)


def buffer_load_to_lds(
    rsrc: Any, lds_ptr: Any, voffset: Any, size_bytes: Any = 4, soffset: Any = 0, offset: Any = 0, **rest: Any
) -> ir.Operation:
    """Copy `size_bytes` per lane from a buffer to LDS; see `raw_ptr_buffer_load_lds`."""
    return raw_ptr_buffer_load_lds(rsrc, lds_ptr, size_bytes, voffset, soffset, offset, **rest)


def check_dma_size(size: int, name: str) -> None:
    """Refuse a width that DMA to LDS does not have on the current chip.

    Raises   RocdlOperand, IntrinsicNotOnChip
    """
    require_lds_dma_support(name)
    sizes = (1, 2, 4, 12, 16) if chip().has("lds_dma_b128") else (1, 2, 4)
    if size not in sizes:
        raise RocdlOperand(
            name=name,
            param="size",
            expected=f"one of {', '.join(map(str, sizes))} bytes on {chip().name}",
            got=size,
            signature=_load_lds.spec.text,
            advice="copy in several steps, or compile for a chip with wider DMA",
        )


def require_lds_dma_support(what: str) -> None:
    """Refuse `what` on chips without direct loads from global memory to LDS.

    Raises   IntrinsicNotOnChip
    """
    require("lds_dma", what)


def _aux(aux: Any) -> Any:
    """Return cache bits as a Python int; kernels also pass them as a constant i32."""
    if isinstance(aux, ir.Value) and isinstance(aux.owner, ir.Operation) and aux.owner.name == "arith.constant":
        return ir.IntegerAttr(aux.owner.attributes["value"]).value
    return aux


def lds_transpose_load(result_type: Any, lds_memref: Any, elem_offset: Any, elem_bytes: Any) -> Any:
    """Load a transposed tile from LDS at `elem_offset` elements (gfx1250): 16-bit elements in 128 bits, 8-bit in 64."""
    from flydsl.expr.rocdl.addresses import lds_pointer

    bytes_ = static_int(elem_bytes, "lds_transpose_load", "elem_bytes")
    names = {2: "ds_load_tr16_b128", 1: "ds_load_tr8_b64"}
    if bytes_ not in names:
        raise RocdlOperand(
            name="lds_transpose_load",
            param="elem_bytes",
            expected="1 or 2",
            got=bytes_,
            signature="lds_transpose_load(result_type, lds_memref, elem_offset, elem_bytes)",
            advice="use ds_load_tr4_b64 or ds_load_tr6_b96 for narrower elements",
        )
    return builder(names[bytes_])(result_type, lds_pointer(lds_memref, elem_offset, bytes_))


def tensor_load_to_lds(
    dgroup0: Any, dgroup1: Any, dgroup2: Any, dgroup3: Any, dgroup4: Any = None, cache_policy: Any = None, **rest: Any
) -> ir.Operation:
    """Issue one tensor DMA from global memory to LDS; wait with `s_wait_tensorcnt` (gfx1250)."""
    return _tensor("tensor_load_to_lds", (dgroup0, dgroup1, dgroup2, dgroup3, dgroup4), cache_policy, rest)


def tensor_store_from_lds(
    dgroup0: Any, dgroup1: Any, dgroup2: Any, dgroup3: Any, dgroup4: Any = None, cache_policy: Any = None, **rest: Any
) -> ir.Operation:
    """Issue one tensor DMA from LDS to global memory; wait with `s_wait_tensorcnt` (gfx1250)."""
    return _tensor("tensor_store_from_lds", (dgroup0, dgroup1, dgroup2, dgroup3, dgroup4), cache_policy, rest)


def _tensor(name: str, groups: tuple, cache_policy: Any, rest: dict) -> ir.Operation:
    *first, last = groups
    if last is None:
        last = zero_words(8)
    return builder(name)(*first, last, cache_policy=_aux(cache_policy), **rest)


def zero_words(count: int) -> ir.Value:
    """Return a vector of `count` i32 zeros."""
    from flydsl.ir import emit1

    types = current().types
    type_ = types.vector(count, types.i32)
    zero = ir.DenseElementsAttr.get_splat(type_, ir.IntegerAttr.get(types.i32, 0))
    return emit1("arith.constant", type_, (), {"value": zero})


def cluster_load_async_to_lds(
    global_ptr: Any, lds_ptr: Any, size_bytes: Any, offset: Any = 0, cpol: Any = 0, mask: Any = None
) -> ir.Operation:
    """Copy 1, 4, 8 or 16 bytes per lane to the LDS of the workgroups in `mask` (gfx1250); None: of this one only.

    Wait with `s_wait_asynccnt`.
    """
    size = static_int(size_bytes, "cluster_load_async_to_lds", "size_bytes")
    if size not in (1, 4, 8, 16):
        raise RocdlOperand(
            name="cluster_load_async_to_lds",
            param="size_bytes",
            expected="1, 4, 8 or 16",
            got=size,
            signature="cluster_load_async_to_lds(global_ptr, lds_ptr, size_bytes, offset=0, cpol=0, mask=None)",
            advice="copy in several steps",
        )
    if mask is None:
        return builder(f"global_load_async_to_lds_b{8 * size}")(global_ptr, lds_ptr, offset, aux=cpol)
    return builder(f"cluster_load_async_to_lds_b{8 * size}")(global_ptr, lds_ptr, offset, i32(mask), cpol=cpol)


def s_wait_asynccnt(count: Any = 0) -> ir.Operation:
    """Wait until at most `count` asynchronous copies to LDS are unfinished (gfx1250)."""
    return builder("s_wait_asynccnt")(count)


def disable_xdl_arb_stall() -> None:
    """Let other instructions issue while a matrix instruction waits for its unit (gfx1250): sets a bit of the MODE
    register.
    """
    from flydsl.expr.rocdl.intrinsics import call

    require("wmma_gfx1250", "disable_xdl_arb_stall")
    call("llvm.amdgcn.s.setreg", None, (const_i32(_XDL_ARB_STALL), const_i32(1)))


_XDL_ARB_STALL = 154  # hwreg(26, 2, 1): register 26, bit 2, one bit
