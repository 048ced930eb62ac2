"""Tensor DMA of gfx1250 by descriptors (`fx.rocdl.tdm_ops`) and by atoms, name by name in kernels, against NumPy's indexing."""

import re

import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.diag import FlyError
from flydsl.expr.rocdl import cdna5, tdm_ops
from flydsl.utils import env

R, L = fx.rocdl, fx.make_layout
ROWS, COLUMNS = 64, 96
TILE = (16, 32)
COUNT = 2048
THREADS = 128


def run(body, x, threads=THREADS, arch="gfx1250"):
    """Return what `body(thread, x, lds)` leaves in LDS, whose elements begin as -1, and the ISA."""

    @flyc.kernel
    def kernel(x: fx.Tensor, out: fx.Tensor):
        tid = fx.thread_idx.x
        lds = fx.SharedAllocator().allocate(fx.Array[fx.Float16, COUNT, 128]).peek()
        for k in fx.range_constexpr(COUNT // threads):
            lds[k * threads + tid] = fx.Float16(-1.0)
        fx.barrier()
        body(tid, x, lds)
        fx.barrier()
        for k in fx.range_constexpr(COUNT // threads):
            out[k * threads + tid] = lds[k * threads + tid]

    @flyc.jit
    def launch(x: fx.Tensor, out: fx.Tensor):
        kernel(x, out).launch(grid=(1, 1, 1), block=(threads, 1, 1))

    out = np.zeros(COUNT, np.float16)
    with env.override(ARCH=arch, FLYDSL_GPU_ARCH=arch):
        launch(x, out)
        isa = launch.artifact_for(launch.wrap_arguments((x, out), {})).codegen(("isa",)).isa
    return out, isa


def source():
    return np.random.default_rng(15).integers(-1000, 1000, (ROWS, COLUMNS)).astype(np.float16)


def descriptor(x, lds, offset=(8, 16), **named):
    return tdm_ops.make_tensor_descriptor_2d(x, lds.ptr, offset, (ROWS, COLUMNS), (COLUMNS, 1), TILE, **named)


def laid(tile, interval=0, amount=0, start=0):
    """The tile row by row in LDS, `amount` untouched elements after every `interval`."""
    out = np.full(COUNT, -1, np.float16)
    flat = tile.reshape(-1)
    at = np.arange(len(flat))
    out[start + at + (at // interval * amount if interval else 0)] = flat
    return out


LOADS = {
    "plain": ({}, lambda x: laid(x[8:24, 16:48])),
    "four warps": ({"num_warps": 4}, lambda x: laid(x[8:24, 16:48])),
    "padded": ({"num_warps": 4, "pad_interval": 32, "pad_amount": 8}, lambda x: laid(x[8:24, 16:48], 32, 8)),
    "an LDS offset": ({"lds_byte_offset": 256}, lambda x: laid(x[8:24, 16:48], start=128)),
    "outer bound": ({"oob_outer_bound": 12}, lambda x: laid(np.where(np.arange(16)[:, None] < 4, x[8:24, 16:48], 0))),
    "inner bound": ({"oob_inner_bound": 20}, lambda x: laid(np.where(np.arange(32) < 20, x[8:24, 16:48], 0))),
    "switched off": ({"pred": 0}, lambda x: np.full(COUNT, -1, np.float16)),
    "hints": ({"cache_policy": 0, "early_timeout": True, "elem_bytes": 2}, lambda x: laid(x[8:24, 16:48])),
}


@pytest.mark.parametrize("case", LOADS)
def test_tensor_load_2d(case):
    named, want = LOADS[case]
    x = source()

    def body(tid, x, lds):
        desc = descriptor(x, lds, **named)
        assert isinstance(desc, tdm_ops.TDMDescriptor2D)
        tdm_ops.tensor_load_2d(desc)
        tdm_ops.tensor_wait()

    out, isa = run(body, x, 32 * named.get("num_warps", 1))
    np.testing.assert_array_equal(out, want(x))
    assert len(re.findall("tensor_load_to_lds", isa)) == 1 and "s_wait_tensorcnt 0x0" in isa


def low_high(pointer, elements=0):
    address = fx.ptrtoint(pointer + elements)
    return address.to(fx.Int32), (address >> 32).to(fx.Int32)


MOVES = {
    "addr_lo": lambda d, x: tdm_ops.update_tensor_descriptor_2d_addr_lo(d, low_high(fx.get_iter(x), 5 * COLUMNS)[0]),
    "addr_lo_hi": lambda d, x: tdm_ops.update_tensor_descriptor_2d_addr_lo_hi(d, *low_high(fx.get_iter(x), 5 * COLUMNS)),
    "addr64": lambda d, x: tdm_ops.update_tensor_descriptor_2d_addr64(d, *low_high(fx.get_iter(x)), 10 * COLUMNS),
    "add_addr_with_carry": lambda d, x: tdm_ops.update_tensor_descriptor_2d_addr_lo_hi(
        d, *tdm_ops.add_addr_with_carry(*low_high(fx.get_iter(x)), fx.Int32(10 * COLUMNS))),
}  # fmt: skip


@pytest.mark.parametrize("move", MOVES)
def test_descriptors_that_move(move):
    """The same tile five rows from the start of the tensor, then the first one elsewhere in LDS."""
    x = source()

    def body(tid, x, lds):
        desc = descriptor(x, lds)
        tdm_ops.tensor_load_2d(MOVES[move](desc, x), cache_policy=0)
        lds_address = fx.ptrtoint(lds.ptr) + 2 * 1024
        tdm_ops.tensor_load_2d(tdm_ops.update_tensor_descriptor_2d_lds_addr(desc, lds_address))
        tdm_ops.tensor_wait(0)

    out, _ = run(body, x, 32)
    want = laid(x[5:21, 0:32])
    want[1024:] = laid(x[8:24, 16:48])[:1024]
    np.testing.assert_array_equal(out, want)


def test_tensor_store_2d_drops_what_is_outside():
    x = source()
    before = x.copy()

    def body(tid, x, lds):
        for k in fx.range_constexpr(4):
            lds[k * THREADS + tid] = fx.Float16(7.0)
        fx.barrier()
        desc = descriptor(x, lds, for_store=True, num_warps=4, oob_outer_bound=20, oob_inner_bound=24)
        tdm_ops.tensor_store_2d(desc, cache_policy=0)
        tdm_ops.tensor_wait(0)

    _, isa = run(body, x)
    before[8:20, 16:40] = 7
    np.testing.assert_array_equal(x, before)
    assert "tensor_store_from_lds" in isa


PICKS = [40, 3, 63, 0, 17]


def gathered(index_size):
    def body(tid, x, lds):
        named = {"elem_bytes": 2, "index_size": index_size, "lds_byte_offset": 64}
        desc = tdm_ops.make_tensor_gather_descriptor(x, lds.ptr, PICKS, 32, COLUMNS, ROWS, COLUMNS, **named)
        assert isinstance(desc, tdm_ops.TDMGatherDescriptor)
        tdm_ops.tensor_load_gather(desc)
        moved = tdm_ops.update_tensor_gather_descriptor_addr64(desc, *low_high(fx.get_iter(x)), 2 * 8)
        group = tdm_ops.make_tensor_gather_dgroup0(x, lds.ptr, index_size=index_size, lds_byte_offset=2 * 1024, global_byte_offset=16)
        R.tensor_load_to_lds(group, moved.dgroup1, moved.dgroup2, moved.dgroup3)
        tdm_ops.tensor_wait()

    return body


@pytest.mark.parametrize("index_size", [16, 32])
def test_gather(index_size):
    x = source()
    out, _ = run(gathered(index_size), x, 32)
    want = laid(x[PICKS, 0:32], start=32)
    want[1024 : 1024 + 5 * 32] = x[PICKS, 8:40].reshape(-1)
    np.testing.assert_array_equal(out, want)


def test_scatter():
    x = source()
    before = x.copy()

    def body(tid, x, lds):
        for k in fx.range_constexpr(16):
            lds[k * 32 + tid] = (tid + k).to(fx.Float16)
        fx.barrier()
        desc = tdm_ops.make_tensor_gather_descriptor(x, lds.ptr, [fx.Int32(r) for r in PICKS], 32, COLUMNS, ROWS, COLUMNS, elem_bytes=2)
        desc = tdm_ops.update_tensor_gather_descriptor_addr_lo(desc, low_high(fx.get_iter(x), 8)[0])
        desc = tdm_ops.update_tensor_gather_descriptor_addr_lo_hi(desc, *low_high(fx.get_iter(x), 8))
        tdm_ops.tensor_store_gather(desc)
        tdm_ops.tensor_wait()

    run(body, x, 32)
    tid = np.arange(512)
    before[PICKS, 8:40] = (tid % 32 + tid // 32)[: 5 * 32].reshape(5, 32)
    np.testing.assert_array_equal(x, before)


def test_prefetch_changes_nothing():
    x = source()

    def body(tid, x, lds):
        tdm_ops.l2_prefetch_tile(x, (0, 0), (16, 96), (COLUMNS, 1), elem_bytes=2, block_threads=THREADS, thread_id=tid,
                                 scope=tdm_ops.PREFETCH_SCOPE_DEVICE)  # fmt: skip

    out, isa = run(body, x)
    assert (out == -1).all() and "global_prefetch_b8" in isa


def atom_load(extents, **named):
    """One tile of (16, 32) by make_tdm_atom; states set by keyword and by set_value."""

    def body(tid, x, lds):
        atom = R.make_tdm_atom(x, extents, num_warps=4, **named)
        atom = atom.set_value("imm_offset", fx.Int64(2 * COLUMNS))
        src = fx.make_view(fx.get_iter(x), L(TILE, (COLUMNS, 1)))
        fx.copy(atom, src, lds.view(L(TILE, (32, 1))))
        R.s_wait_tensorcnt(0)

    return body


@pytest.mark.parametrize("extents, rows, columns", [((None, None), 16, 32), ((10, None), 10, 32), ((None, 20), 16, 20)])
def test_make_tdm_atom(extents, rows, columns):
    """One row further, because of imm_offset; extents count from where the atom's tile begins."""
    x = source()
    out, isa = run(atom_load(extents), x)
    inside = (np.arange(16)[:, None] < rows) & (np.arange(32) < columns)
    np.testing.assert_array_equal(out, laid(np.where(inside, x[1:17, 0:32], 0)))
    assert "tensor_load_to_lds" in isa


def tiled(op, **named):
    def body(tid, x, lds):
        view = fx.make_view(fx.get_iter(x), L((ROWS, COLUMNS), (COLUMNS, 1)))
        atom, coord = cdna5.make_tiled_tdm_atom(op(), view, L(TILE, (32, 1)), TILE, 4, **named)
        tiles = fx.zipped_divide(coord, TILE)
        whole = lds.view(L((TILE, 1), ((32, 1), 0)))
        s, g = cdna5.tdm_partition(atom, R.wave_id(), L(4, 1), whole, tiles)
        state = {"early_timeout": True}
        if op is cdna5.TensorStore:
            for k in fx.range_constexpr(4):
                lds[k * THREADS + tid] = fx.Float16(3.0)
            fx.barrier()
            fx.copy(atom, s[None, 0], g[None, (3, 2)], **state)
        else:
            fx.copy(atom, g[None, (3, 2)], s[None, 0], **state)
        R.s_wait_tensorcnt(0)

    return body


@pytest.mark.parametrize("named", [{}, {"init_boundary_check": False}, {"atomic_barrier": False}], ids=str)
def test_tiled_atoms(named):
    x = source()
    out, _ = run(tiled(cdna5.TensorLoad, **named), x)
    np.testing.assert_array_equal(out, laid(x[48:64, 64:96]))
    before = x.copy()
    run(tiled(cdna5.TensorStore, **named), x)
    before[48:64, 64:96] = 3
    np.testing.assert_array_equal(x, before)


WRONG = {
    "seven rows of 16 bits too many": (
        lambda x, lds: tdm_ops.make_tensor_gather_descriptor(x, lds.ptr, [0] * 17, 32, 96, 64, 96, elem_bytes=2, index_size=16), "16"),
    "padding inside of a stored row": (lambda x, lds: descriptor(x, lds, for_store=True, pad_interval=16, pad_amount=8), "padding every 16"),
    "an interval of 24": (lambda x, lds: descriptor(x, lds, pad_interval=24, pad_amount=8), "power of two"),
    "an index size of 8": (lambda x, lds: tdm_ops.make_tensor_gather_dgroup0(x, lds.ptr, index_size=8), "index_size"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_wrong_uses(case):
    use, text = WRONG[case]
    with pytest.raises(FlyError, match=text) as caught:
        run(lambda tid, x, lds: use(x, lds), source())
    assert "test_names_tdm.py" in str(caught.value)


USES = {
    "make_tensor_descriptor_2d": descriptor,
    "make_tdm_atom": lambda x, lds: R.make_tdm_atom(x, (None, None), num_warps=4),
    "tensor_wait": lambda x, lds: tdm_ops.tensor_wait(),
    "TensorLoad": lambda x, lds: cdna5.make_tiled_tdm_atom(cdna5.TensorLoad(), x, L(TILE, (32, 1)), TILE, 4),
}


@pytest.mark.parametrize("name", USES)
@pytest.mark.parametrize("arch", ["gfx942", "gfx1201"])
def test_other_chips_refuse(name, arch):
    with pytest.raises(FlyError, match=arch) as caught:
        run(lambda tid, x, lds: USES[name](x, lds), source(), arch=arch)
    assert "test_names_tdm.py" in str(caught.value)
