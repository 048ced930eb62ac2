"""Copy atoms, tiled copies and their state, name by name in kernels: the shorthand constructors, function forms, predicates and errors."""

import numpy as np
import pytest
from named import CDNA, CHIPS, Case, check, launched, table

import flydsl.expr as fx
from flydsl.diag import FlyError

R, L = fx.rocdl, fx.make_layout
N = 128
BYTES = np.random.default_rng(16).integers(0, 256, 16 * N, np.uint8)
FLOATS = np.random.default_rng(17).standard_normal(16 * N).astype(np.float32)
IDS = np.arange(N)


def through(op, element, buffer):
    """Each lane moves one piece of the atom's width to its mirrored place."""

    def body(i, x, out):
        atom = fx.make_copy_atom(op(), element)
        count = atom.plain.op.bits // element.width if hasattr(atom.plain, "op") else None
        count = fx.size(atom.layout_src_tv).to_py_value() if count is None else count
        assert str(atom.layout_src_tv) == str(atom.layout_dst_tv) == str(atom.layout_ref_tv) and int(atom.val_bits) == element.width
        src, dst = (R.make_buffer_tensor(x), R.make_buffer_tensor(out)) if buffer else (x, out)
        fragment = fx.make_rmem_tensor(count, element)
        fx.copy(atom, fx.make_view(fx.add_offset(fx.recast_iter(element, src.iter), i * count), L(count, 1)), fragment)
        at = (N - 1 - i) * count
        fx.copy(atom, fragment, fx.make_view(fx.add_offset(fx.recast_iter(element, dst.iter), at), L(count, 1)))

    return body


def mirrored(width):
    return lambda n, x: x.view(np.uint8).reshape(-1)[: N * width].reshape(N, width)[::-1].reshape(-1)


ELEMENTS = {8: fx.Uint8, 16: fx.Float16, 32: fx.Float32, 64: fx.Float32, 128: fx.Float16}
SHORTHANDS = [
    Case(f"{prefix}Copy{bits}b", through(getattr(home, f"{prefix}Copy{bits}b"), ELEMENTS[bits], prefix == "Buffer"), (BYTES,),
         mirrored(bits // 8), {8: r"_(u8|ubyte|d16_u8)\b", 16: r"_(u16|ushort|d16_b16)\b", 32: r"_(b32|dword)\b", 64: r"_(b64|dwordx2)\b",
                               128: r"_(b128|dwordx4)\b"}[bits], tried=("gfx942",) if bits != 128 else CHIPS)
    for prefix, home in (("Universal", fx), ("Buffer", R))
    for bits in ELEMENTS
]  # fmt: skip


@table(SHORTHANDS)
def test_shorthand_constructors(case, arch):
    check(case, arch)


# --- state -----------------------------------------------------------------------------------------------------------------------


def state(i, x, out):
    """soffset counts elements: by keyword, by set_value in both forms, by the function form; a negative index wraps out of range."""
    atom = fx.make_copy_atom(R.BufferCopy32b(), fx.Float32)
    src = fx.make_view(fx.add_offset(R.make_buffer_tensor(x).iter, i), L(1, 1))
    block = fx.block_idx.x
    calls = (
        (atom, {"soffset": 3}),
        (atom.set_value("soffset", block + 5), {}),
        (atom.set_value({"soffset": fx.Int32(7)}), {}),
        (fx.atom_set_value(atom, "soffset", 9), {}),
        (atom, {}),
    )
    for k, (with_state, keywords) in enumerate(calls):
        fragment = fx.make_rmem_tensor(1, fx.Float32)
        fx.copy(with_state, src, fragment, **keywords)
        out[i * 6 + k] = fragment[0]
    fragment = fx.make_rmem_tensor(1, fx.Float32)
    fx.copy(fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32), fx.make_view(fx.get_iter(x) + i, L(1, 1)), fragment, soffset=99)
    out[i * 6 + 5] = fragment[0]  # an atom without soffset ignores it


def stated(n, x):
    return np.stack([x[IDS + k] for k in (3, 5, 7, 9, 0, 0)], axis=1).reshape(-1)


def lds_state(i, x, out):
    """BufferCopyLDS32b with soffset (elements) and imm_offset (bytes, which the instruction adds on both sides)."""
    lds = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 3 * N, 16]).peek()
    wave = R.readfirstlane(fx.Int32, i // 64)
    atom = fx.make_copy_atom(R.BufferCopyLDS32b(), fx.Float32)
    src = fx.make_view(fx.add_offset(R.make_buffer_tensor(x).iter, i), L(1, 1))
    fx.copy(atom, src, fx.make_view(lds.ptr + wave * 64, L(1, 1)), soffset=16, imm_offset=8)
    fx.copy(atom.set_value("soffset", 4), src, fx.make_view(lds.ptr + (2 * N + wave * 64), L(1, 1)))
    R.s_waitcnt(vmcnt=0)
    fx.barrier()
    out[i * 2], out[i * 2 + 1] = lds[(i ^ 7) + 2], lds[2 * N + (i ^ 7)]


STATES = [
    Case("soffset: keyword, set_value, atom_set_value", state, (FLOATS,), stated, r"buffer_load_(dword|b32)"),
    Case("BufferCopyLDS32b with soffset and imm_offset", lds_state, (FLOATS,),
         lambda n, x: np.stack([x[(IDS ^ 7) + 16 + 2], x[(IDS ^ 7) + 4]], axis=1).reshape(-1), "buffer_load_dword .*lds", CDNA),
]  # fmt: skip


@table(STATES)
def test_state(case, arch):
    check(case, arch)


# --- tiled copies ----------------------------------------------------------------------------------------------------------------


def tiled(form):
    """A (32, 16) tile transposed through registers by each construction of a tiled copy."""

    def body(i, x, out):
        atom = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)
        src, dst = fx.make_view(fx.get_iter(x), L((32, 16), (16, 1))), fx.make_view(fx.get_iter(out), L((32, 16), (1, 32)))
        thr, val = L((32, 4), (4, 1)), L((1, 4), (1, 1))
        if form == "tv":
            copies = fx.make_tiled_copy_tv(atom, thr, val)
        else:
            tile, layout = fx.make_layout_tv(thr, val)
            copies = fx.make_tiled_copy(atom, layout, tile)
        assert str(copies.layout_src_tv_tiled) == str(copies.layout_dst_tv_tiled) and copies.tile_mn is not None
        if form == "functions":
            where = fx.make_int_tuple(i)
            part_s, part_d = fx.tiled_copy_partition_src(copies, src, where), fx.tiled_copy_partition_dst(copies, dst, where)
            fragment = fx.make_fragment_like(part_s)
            fx.copy(copies, part_s, fragment)
            fx.copy(copies, fx.tiled_copy_retile(copies, fragment), part_d)
        else:
            mine = copies.get_slice(i) if form == "tv" else copies.thr_slice(i)
            part_s, part_d = mine.partition_S(src), mine.partition_D(dst)
            fragment = fx.make_fragment_like(part_s)
            fx.copy(copies if form == "explicit" else atom, part_s, fragment)
            fx.copy(atom, mine.retile(fragment), part_d)

    return body


TILED = [
    Case(f"tiled copy: {form}", tiled(form), (FLOATS,), lambda n, x: np.ascontiguousarray(x[:512].reshape(32, 16).T).reshape(-1),
         tried=("gfx942", "gfx1201"))
    for form in ("tv", "explicit", "functions")
]  # fmt: skip


@table(TILED)
def test_tiled_copies(case, arch):
    check(case, arch)


# --- predicates ------------------------------------------------------------------------------------------------------------------


def predicated(i, x, out):
    """pred of one rank less, of the same rank, scalar and tensor for one call; off keeps the registers and stores nothing."""
    atom = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)
    src = fx.make_view(fx.get_iter(x) + i * 2, L((1, 2), (1, 1)))
    dst = fx.make_view(fx.get_iter(out) + i * 6, L((1, 2), (1, 1)))
    lower, equal = fx.make_rmem_tensor(2, fx.Boolean), fx.make_rmem_tensor((1, 2), fx.Boolean)
    lower[0], lower[1] = i % 2 == 0, i % 3 == 0
    equal[0, 0], equal[0, 1] = i % 5 == 0, i > 100
    for place, pred in ((0, lower), (2, equal)):
        fragment = fx.make_rmem_tensor((1, 2), fx.Float32)
        fragment.fill(-1.0)
        fx.copy(atom, src, fragment, pred=pred)
        fx.copy(atom, fragment, fx.make_view(dst.iter + place, L((1, 2), (1, 1))))
    single = fx.make_rmem_tensor(1, fx.Float32)
    single[0] = x[i]
    one = fx.make_rmem_tensor(1, fx.Boolean)
    one[0] = i < 64
    fx.copy_atom_call(atom, single, fx.make_view(dst.iter + 4, L(1, 1)), pred=i % 2 == 1)
    fx.copy_atom_call(atom, single, fx.make_view(dst.iter + 5, L(1, 1)), pred=one)


def predicated_want(n, x):
    unset, rows = np.frombuffer(b"\xa5" * 4, np.float32)[0], x[: 2 * N].reshape(N, 2)
    columns = [np.where(IDS % 2 == 0, rows[:, 0], -1), np.where(IDS % 3 == 0, rows[:, 1], -1), np.where(IDS % 5 == 0, rows[:, 0], -1),
               np.where(IDS > 100, rows[:, 1], -1), np.where(IDS % 2 == 1, x[:N], unset), np.where(IDS < 64, x[:N], unset)]  # fmt: skip
    return np.stack(columns, axis=1).astype(np.float32).reshape(-1)


PREDICATES = [Case("pred", predicated, (FLOATS,), predicated_want)]


@table(PREDICATES)
def test_predicates(case, arch):
    check(case, arch)


# --- wrong uses ------------------------------------------------------------------------------------------------------------------


def at(tensor, count=1):
    return fx.make_view(fx.get_iter(tensor), L(count, 1))


def universal():
    return fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)


WRONG = {
    "DMA of 64 bits": ("gfx950", lambda x: R.BufferCopyLDS64b(), "8-byte|64"),
    "DMA of 128 bits": ("gfx942", lambda x: R.BufferCopyLDS128b(), "gfx942"),
    "no buffer side": ("gfx942", lambda x: fx.copy(fx.make_copy_atom(R.BufferCopy32b(), fx.Float32), at(x), fx.make_rmem_tensor(1, fx.Float32)), "buffer"),
    "a buffer side": ("gfx942", lambda x: fx.copy(universal(), at(R.make_buffer_tensor(x)), fx.make_rmem_tensor(1, fx.Float32)), "buffer"),
    "ranks that differ": ("gfx942", lambda x: fx.copy(universal(), fx.make_view(fx.get_iter(x), L((1, 2), (1, 1))), fx.make_rmem_tensor(1, fx.Float32)), "rank|mode"),
    "sizes that differ": ("gfx942", lambda x: fx.copy(universal(), fx.make_view(fx.get_iter(x), L((1, 2), (1, 1))), fx.make_rmem_tensor((1, 3), fx.Float32)), "2|3"),
    "an unknown field": ("gfx942", lambda x: fx.make_copy_atom(R.BufferCopy32b(), fx.Float32).set_value("offset", 1), "soffset"),
    "elements of another width": ("gfx942", lambda x: fx.copy(universal(), at(x), fx.make_rmem_tensor(1, fx.Float16)), "16|32|width"),
    "an atomic of halves": ("gfx942", lambda x: R.BufferAtomicAdd(fx.Int32), "Add|float"),
    "a transposed read elsewhere": ("gfx942", lambda x: R.cdna4.LDSReadTrans16_64b(), "gfx950"),
    "an asynchronous copy elsewhere": ("gfx942", lambda x: R.cdna4.GlobalLoadAsyncLDS(128), "gfx950"),
    "a width that does not exist": ("gfx950", lambda x: R.cdna4.BufferLoadAsyncLDS(64), "32, 96|128"),
    "a predicate of numbers": ("gfx942", lambda x: fx.copy(universal(), at(x), fx.make_rmem_tensor(1, fx.Float32), pred=fx.make_rmem_tensor(1, fx.Int32)), "Boolean|i1|pred"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_uses(case):
    arch, use, text = WRONG[case]
    with pytest.raises(FlyError, match=text) as caught:
        launched(Case(case, lambda i, x, out: use(x), (FLOATS,), lambda n, x: x), arch)
    assert "test_names_copy.py" in str(caught.value)


CASES = [*SHORTHANDS, *STATES, *TILED, *PREDICATES]
