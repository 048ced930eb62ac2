"""Faults of code generation and of the machine's limits that users of kernel DSLs reported (kinds codegen/ISA and perf).

Each test is named after the report's id; `Fails if` names the change to our code that would bring the fault back.
"""

import re

import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.atoms import mma_ops
from flydsl.atoms.errors import AtomError
from flydsl.diag import FlyError
from flydsl.targets.rocm.isa_stats import isa_stats
from flydsl.utils import env

from .kernels import artifact, isa, run, trace

CHIPS = ("gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250")


def lines(text: str, pattern: str) -> list[str]:
    return re.findall(rf"^\s+({pattern}\S*.*)$", text, re.M)


def test_R025_registers_at_a_run_time_index():
    """Fails if a run-time index into a register tensor is folded to a slot instead of read from memory or selected."""

    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        tile = fx.make_rmem_tensor(4, fx.Float32)
        for k in fx.range_constexpr(4):
            tile[k] = x[4 * fx.thread_idx.x + k]
        total = fx.Float32(0.0)
        for k in range(n):
            total = total * 10.0 + tile[(k + fx.thread_idx.x) % 4]
        out[fx.thread_idx.x] = total

    x = (np.arange(256) % 7).astype(np.float32)
    lanes = x.reshape(64, 4)
    expected = sum(lanes[np.arange(64), (k + np.arange(64)) % 4] * 10.0 ** (3 - k) for k in range(4))
    assert (run(body, x, 4) == expected).all()


def test_R027_alignment_under_a_swizzle():
    """Fails if `add_offset` keeps an alignment that is no power of two, or that the swizzle's moved bits break."""
    seen = {}

    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        lds = fx.get_dyn_shared(fx.Float32)
        seen["12 bytes on"] = (lds + 3).alignment
        seen["any"] = (lds + n).alignment
        seen["4 n"] = (lds + fx.int_tuple_mul(n, 4)).alignment
        swizzled = fx.apply_swizzle(lds, fx.static(fx.SwizzleType.get(2, 4, 3)))  # byte bits 4 and 5 move
        atom = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32)
        frag = fx.make_rmem_tensor(4, fx.Float32)
        for k in fx.range_constexpr(4):
            frag[k] = x[fx.thread_idx.x * 4 + k]
        at = fx.int_tuple_mul(fx.thread_idx.x, 4)
        fx.copy_atom_call(atom, frag, fx.make_view(swizzled + at, fx.make_layout(4, 1)))
        fx.barrier()
        back = fx.make_view(swizzled + fx.int_tuple_mul(63 - fx.thread_idx.x, 4), fx.make_layout(4, 1))
        fx.copy_atom_call(atom, back, frag)
        out[fx.thread_idx.x] = frag[1]

    kernel = flyc.kernel(body)

    @flyc.jit
    def launch(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        kernel(x, out, n).launch(grid=(1, 1, 1), block=(64, 1, 1), smem=1024)

    x, out = np.arange(256, dtype=np.float32), np.zeros(64, np.float32)
    with env.override(ARCH="gfx942"):
        launch(x, out, 3)
        text = launch.artifact_for(launch.wrap_arguments((x, out, 3), {})).codegen(("isa",)).isa
    assert (out == x.reshape(64, 4)[::-1, 1]).all()
    assert seen == {"12 bytes on": 4, "any": 4, "4 n": 16}
    assert len(lines(text, "ds_write_b128")) == 1 and len(lines(text, "ds_read_b128")) == 1


def lds_reader(width: int, reads: int):
    """A kernel of `reads` unrolled LDS reads of `width` bits at constant offsets from one run-time base."""

    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        lds = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 4096]).peek()
        tid = fx.thread_idx.x
        for k in range(64):
            lds[tid + 64 * k] = x[tid]
        fx.barrier()
        atom = fx.make_copy_atom(fx.UniversalCopy(width), fx.Float32)
        count = width // 32
        total = fx.Float32(0.0)
        at = lds.view(fx.make_layout((count, 4096 // count), (1, count)))
        for k in fx.range_constexpr(reads):
            frag = fx.make_rmem_tensor(count, fx.Float32)
            fx.copy(atom, at[None, tid + 16 * k], frag)
            for i in fx.range_constexpr(count):
                total = total + frag[i] * float(k + i)
        out[tid] = total

    return body


@pytest.mark.parametrize("width, mnemonic", [(128, "ds_read_b128"), (64, "ds_read_b64|ds_read2(st64)?_b64"), (32, "ds_read_b32|ds_read2(st64)?_b32")])
def test_R028_width_of_lds_reads(width, mnemonic):
    """Fails if lowering drops the alignment of an LDS access, so that LLVM splits or merges it."""
    text = isa(lds_reader(width, 8))
    found = lines(text, "ds_read")
    assert found and all(re.match(f"({mnemonic})\\b", line) for line in found), found


def test_R029_unrolled_reads_share_one_base():
    """Fails if constant offsets are folded into the run-time index before the address is formed."""
    text = isa(lds_reader(128, 40))
    found = lines(text, "ds_read_b128")
    bases = {line.split(",")[1].split()[0] for line in found}
    assert len(found) == 40 and len(bases) <= 2, bases
    (stats,) = isa_stats(text).values()
    assert stats.spills == 0


DTYPES = {"f16": fx.Float16, "bf16": fx.BFloat16, "fp8": fx.Float8E4M3FNUZ, "i8": fx.Int8}


@pytest.mark.parametrize("name", DTYPES)
def test_R030_every_copy_feeds_every_matrix_atom(name):
    """Fails if a pair of copy atom and matrix atom fails in a pass instead of compiling or being refused while tracing."""
    dtype = DTYPES[name]
    m, n, k = (16, 16, 32) if dtype.width == 8 else (16, 16, 16)
    compiled = 0
    for bits in (32, 64, 128):
        for buffer in (False, True):

            def body(x: fx.Tensor, out: fx.Tensor, n_: fx.Int32):
                op = fx.rocdl.BufferCopy(bits) if buffer else fx.UniversalCopy(bits)
                atom = fx.make_copy_atom(op, dtype)
                acc = [fx.Int32] if name == "i8" else []
                mma = fx.make_tiled_mma(fx.make_mma_atom(fx.rocdl.MFMA(m, n, k, dtype, *acc)), fx.make_layout((1, 1, 1), (0, 0, 0)))
                thr = mma.get_slice(fx.thread_idx.x)
                tensor = fx.rocdl.make_buffer_tensor(x) if buffer else x
                gA = fx.make_view(tensor.iter, fx.make_layout((16, 64), (64, 1)))
                load = fx.make_tiled_copy_A(atom, mma).get_slice(fx.thread_idx.x)
                a, b, c = thr.make_fragment_A(gA), thr.make_fragment_B(gA), thr.make_fragment_C(fx.make_view(tensor.iter, fx.make_layout((16, 16), (16, 1))))
                c.fill(0)
                fx.copy(atom, load.partition_S(gA), load.retile(a))
                b.store(a.load())
                fx.gemm(mma, c, a, b, c)
                out[fx.thread_idx.x] = c[0, 0, 0].to(fx.Float32)

            x = np.zeros(1024, np.float32).astype(dtype.numpy_dtype)
            try:
                text = isa(body, x)
            except FlyError as e:
                assert e.span.file == __file__ and e.code.startswith(("FLY_COPY", "FLY_ATOM")), e
                continue
            compiled += 1
            assert len(lines(text, "v_mfma")) == 64 // k
    assert compiled >= 3


def test_R031_catalogue_and_lowering_agree():
    """Fails if a matrix atom has a row in `atoms.matrix_rows` and no intrinsic in `passes.convert_fly_to_rocdl.matrix`."""
    from flydsl.targets.rocm.intrinsic_table import TABLE

    known = {line.split()[0] for line in TABLE.splitlines() if line and line[0] not in "[#"}
    for arch in CHIPS:
        rows = mma_ops.supported(arch)
        assert rows, arch
        missing = [row.rocdl for row in rows if not any(row.intrinsic.startswith(f"llvm.amdgcn.{name}") for name in known)]
        assert missing == [], arch


def test_R032_what_a_chip_lacks_is_refused_while_tracing():
    """Fails if `atom.check(arch)` or the LDS limit of `arch` is looked at only by LLVM."""

    def fp8():
        fx.make_mma_atom(fx.rocdl.WMMA(16, 16, 16, fx.Float8E4M3FN))

    with pytest.raises((FlyError, AtomError)) as e:
        trace(fp8, "gfx1151")
    assert "gfx1151" in str(e.value) and "fix:" in str(e.value)

    def large():
        fx.SharedAllocator().allocate(fx.Array[fx.Uint8, 128 * 1024])

    with pytest.raises(FlyError) as e:
        trace(large, "gfx942")
    assert "gfx942" in str(e.value) and "65536" in str(e.value) and e.value.span.file == __file__


@pytest.mark.parametrize("arch, wave", [("gfx942", 64), ("gfx1100", 32), ("gfx1250", 32)])
def test_R033_wave_sizes(arch, wave):
    """Fails if a library function takes 64 lanes for granted (`arch.wave_size`)."""
    seen = {}

    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        seen["threads"] = fx.gpu.num_warp_threads()
        value = x[fx.thread_idx.x]
        offset = fx.gpu.num_warp_threads() // 2
        while offset:
            value = value + fx.gpu.shuffle_xor(value, offset, fx.gpu.num_warp_threads())
            offset //= 2
        out[fx.thread_idx.x] = value + 1000.0 * fx.Float32(fx.lane_id())

    x = np.arange(128, dtype=np.float32)
    out = run(body, x, out=np.zeros(128, np.float32), block=128, arch=arch)
    sums = x.reshape(-1, wave).sum(1, keepdims=True)
    np.testing.assert_array_equal(out.reshape(-1, wave), sums + 1000.0 * np.arange(wave))
    assert seen["threads"] == wave
    (stats,) = isa_stats(isa(body, x, out=np.zeros(128, np.float32), block=128, arch=arch)).values()
    assert stats.wave_size == wave


@pytest.mark.parametrize("arch", ("gfx942", "gfx1100", "gfx1201"))
def test_R034_vectors_across_the_end_of_a_buffer(arch):
    """Fails if the descriptor words of a chip do not bound the buffer, or the simulator reads past it."""

    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        buf = fx.rocdl.make_buffer_tensor(x, max_size=False)
        frag = fx.make_rmem_tensor(4, fx.Float32)
        frag.fill(-7)
        atom = fx.make_copy_atom(fx.rocdl.BufferCopy128b(), fx.Float32)
        fx.copy(atom, fx.make_view(buf.iter + fx.int_tuple_mul(fx.thread_idx.x, 4), fx.make_layout(4, 1)), frag)
        for k in fx.range_constexpr(4):
            out[fx.thread_idx.x * 4 + k] = frag[k]

    x = np.arange(1, 31, dtype=np.float32)  # the eighth vector lies across the end
    out = run(body, x, out=np.full(64, -1, np.float32), block=16, arch=arch)
    assert (out[:30] == x).all() and (out[32:] == 0).all() and (out[30:32] == 0).all()


def test_R035_resources_of_every_build():
    """Fails if `isa_stats` or the artifact's metadata stop stating registers, spills and occupancy."""
    built = artifact(lds_reader(128, 8)).codegen(("isa", "hsaco"))
    (info,), (stats,) = built.kernels.values(), isa_stats(built.isa).values()
    assert (info.vgprs, info.sgprs) == (stats.vgprs, stats.sgprs) and 0 < info.vgprs < 64
    assert stats.spills == 0 and stats.occupancy >= 1 and stats.lds_bytes == 4096 * 4


def test_R070_ambient_fast_math_reaches_every_float_op():
    """Fails if a helper such as `fx.max` builds its op without the flags in force."""

    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        a = x[fx.thread_idx.x]
        with fx.fastmath("nnan,ninf"):
            b = fx.max(a * 2.0, a + 1.0, fx.exp2(a))
            b = fx.min(b, fx.sqrt(a) - 1.0) / (a + 3.0)
            b = fx.fma(b, a, b) if fx.const_expr(True) else b
            b = fx.maxnumf(b, a) + (a > 1.0).select(a, b)
            v = fx.Vector.from_elements([a, b])
            b = v.reduce("max") + v.reduce("add")
        out[fx.thread_idx.x] = b

    text = str(artifact(body).source_ir)
    floats = [line.strip() for line in text.splitlines() if re.search(r"= (arith\.(add|sub|mul|div|max|min)\w*f|math\.\w+|arith\.cmpf|vector\.reduction)", line)]
    assert len(floats) >= 12
    assert [line for line in floats if "nnan,ninf" not in line.replace(" ", "")] == []


def test_R104_predicates_of_two_dimensional_blocks():
    """Fails if a 2-D workgroup needs more compares than a 1-D one for the same predicate."""

    def kernel(two: bool):
        def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
            row = fx.block_idx.y if two else fx.block_idx.x // 4
            col = fx.block_idx.x if two else fx.block_idx.x % 4
            base = (row * 4 + col) * 64 + fx.thread_idx.x
            for k in fx.range_constexpr(8):
                i = base + 64 * k
                if i < n:
                    out[i] = x[i]

        return body

    counts = [len(re.findall(r"^\s+[vs]_cmpx?_\w*l[te]|^\s+[vs]_cmpx?_\w*g[te]", isa(kernel(two)), re.M)) for two in (False, True)]
    assert counts[1] <= counts[0] and counts[1] <= 8, counts


def test_R123_run_time_and_static_trip_counts_agree():
    """Fails if a loop with a run-time bound computes otherwise than the same loop unrolled (simulator; ISA: the emulator's tests)."""

    def kernel(static):
        def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
            i = fx.thread_idx.x
            acc, prev = x[i], fx.Float32(1.0)
            for k in fx.range_constexpr(static) if fx.const_expr(static is not None) else range(n):
                acc, prev = acc * 0.5 + x[i + k], acc
            out[i] = acc + prev

        return body

    def unrolled(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        i = fx.thread_idx.x
        acc, prev = x[i], fx.Float32(1.0)
        for k in fx.range_constexpr(9):
            acc, prev = acc * 0.5 + x[i + k], acc
        out[i] = acc + prev

    def rolled(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        i = fx.thread_idx.x
        acc, prev = x[i], fx.Float32(1.0)
        for k in range(n):
            acc, prev = acc * 0.5 + x[i + k], acc
        out[i] = acc + prev

    for arch in ("gfx942", "gfx1100"):
        assert (run(unrolled, n=9, arch=arch) == run(rolled, n=9, arch=arch)).all()
        assert (run(rolled, n=0, arch=arch) == np.arange(64) + 1).all()


def test_R125_tiles_shorter_than_the_instruction():
    """Fails if a matrix atom whose K exceeds the tile's is fed from beyond the operand."""

    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        mma = fx.make_tiled_mma(fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float32 if fx.const_expr(False) else fx.Float16)), fx.make_layout((1, 1, 1), (0, 0, 0)))
        thr = mma.get_slice(fx.thread_idx.x)
        short = fx.make_view(x.iter, fx.make_layout((16, 8), (8, 1)))  # K = 8, the instruction has 16
        frag = thr.make_fragment_A(short)
        load = fx.make_tiled_copy_A(fx.make_copy_atom(fx.UniversalCopy64b(), fx.Float16), mma).get_slice(fx.thread_idx.x)
        fx.copy(fx.make_copy_atom(fx.UniversalCopy64b(), fx.Float16), load.partition_S(short), load.retile(frag))
        out[fx.thread_idx.x] = frag.load().to(fx.Float32).reduce("add")

    with pytest.raises(FlyError, match="bounds|outside|past|divi") as e:
        run(body, np.ones(128, np.float16))
    assert e.value.span.file == __file__


def test_R127_refused_atoms_name_shape_chip_and_neighbours():
    """Fails if the refusal of a matrix atom names the element type when shape or chip is at fault."""

    def shape():
        fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 24, fx.Float16))

    with pytest.raises((FlyError, AtomError)) as e:
        trace(shape)
    text = str(e.value)
    assert "16x16x24" in text and "gfx942" in text and "16x16x16" in text

    def family():
        fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16))

    with pytest.raises((FlyError, AtomError)) as e:
        trace(family, "gfx1201")
    assert "gfx1201" in str(e.value) and "16x16x16 (fx.rocdl.WMMA)" in str(e.value)


def test_R144_infeasible_occupancy_is_reported():
    """Fails if `waves_per_eu` is handed to LLVM unchecked."""

    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        out[fx.thread_idx.x] = x[fx.thread_idx.x]

    kernel = flyc.kernel(body)

    @flyc.jit
    def launch(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        kernel(x, out, n).launch(grid=(1, 1, 1), block=(64, 1, 1))

    x = np.zeros(64, np.float32)
    with env.override(ARCH="gfx942", COMPILE_ONLY="1"):
        with pytest.raises((FlyError, ValueError, TypeError)) as e:
            flyc.compile[{"waves_per_eu": 64}](launch, x, x.copy(), 1)
    assert "waves_per_eu" in str(e.value)
