"""Faults of layout algebra that users of kernel DSLs reported (kind layout algebra). Judged by enumeration, not by the algebra itself.

Each test is named after the report's id; `Fails if` names the change to our code that would bring the fault back.
"""

import itertools
import random
from collections import Counter

import numpy as np
import pytest

import flydsl.expr as fx
import flydsl.layout as fl
from flydsl.atoms import UniversalCopy, copy_atom, make_tiled_copy_tv, make_tiled_mma, mfma, mma_ops, tiled_mma
from flydsl.layout import Layout, LayoutError, Swizzle, Sym, parse

from .kernels import run, trace

CHIPS = ("gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250")


def values(shape, stride) -> list[int]:
    """Return the indices of a flat layout in column-major order of its coordinates, written from the definition."""
    return [sum(c * d for c, d in zip(reversed(rev), stride)) for rev in itertools.product(*(range(s) for s in reversed(shape)))]


def flat_values(layout) -> list[int]:
    """Return the indices of any static layout."""
    shapes, strides = layout.flat()
    return values(tuple(shapes), tuple(strides))


def with_numbers(layout) -> Layout:
    """Return a flat layout with the payloads of its dynamic leaves."""
    shapes, strides = ([x.value if isinstance(x, Sym) else x for x in leaves] for leaves in layout.flat())
    return Layout(tuple(shapes), tuple(strides))


def random_layout(rng: random.Random, leaves: int = 3, stride_max: int = 12) -> Layout:
    n = rng.randint(1, leaves)
    return Layout(tuple(rng.choice((1, 2, 3, 4, 6, 8)) for _ in range(n)), tuple(rng.randint(0, stride_max) for _ in range(n)))


def test_R011_complement():
    """Fails if `inverse.gap_leaves` stops sorting by stride, skips a gap, or orders dynamic strides by guessing."""
    rng = random.Random(11)
    computed = refused = 0
    for _ in range(1500):
        a, m = random_layout(rng), rng.choice((24, 48, 60, 96))
        try:
            rest = fl.complement(a, m)
        except LayoutError:
            refused += 1
            continue
        computed += 1
        inside = set(flat_values(a))
        shapes, strides = rest.flat()
        assert list(strides) == sorted(strides) or 0 in strides
        reached = Counter(i + j for i in inside for j in flat_values(rest))
        assert max(reached.values()) == 1 and set(range(m)) <= set(reached), (a, m, rest)
    assert computed > 200 and refused > 200
    for modes in itertools.permutations([(2, 1), (4, 2), (3, 8)]):  # in whatever order the modes stand
        rest = fl.complement(Layout(*zip(*modes)), 48)
        assert flat_values(rest) == [0, 24], (modes, rest)
    for d in (1, 2, 3, 6):  # rank 1, dynamic: computed as the static one
        moving, fixed = (fl.complement(Layout(4, x), 24) for x in (Sym(value=d), d))
        assert sorted(flat_values(with_numbers(moving))) == sorted(flat_values(fixed))
    with pytest.raises(fl.NotStatic, match="known only at run time"):
        fl.complement(Layout((2, 4), (1, Sym(value=6))), 24)
    with pytest.raises(LayoutError):
        fl.complement(Layout(0, 1), 24)


def test_R012_equal_layouts_print_equally():
    """Fails if `coalesce` or `composition` return modes that could be merged, or leave strides at size-1 modes."""
    rng = random.Random(12)
    for _ in range(800):
        a = random_layout(rng)
        merged = fl.coalesce(a)
        assert flat_values(merged) == flat_values(a)
        split = Layout(tuple(x for s in a.flat()[0] for x in ((2, s // 2) if s % 2 == 0 else (s, 1))),
                       tuple(x for s, d in zip(*a.flat()) for x in ((d, 2 * d) if s % 2 == 0 else (d, 7))))  # fmt: skip
        assert flat_values(split) == flat_values(a)
        assert fl.coalesce(split).flat() == merged.flat(), (a, split)
        assert fl.composition(merged, Layout(fl.size(a), 1)).flat() == merged.flat()
        assert str(fl.coalesce(Layout((split.shape, 1), (split.stride, 5)))) == str(fl.coalesce(Layout((a.shape, 1), (a.stride, 0))))


PERMUTATIONS = list(itertools.permutations((64, parse("(16,2):(1,16)"), None)))


@pytest.mark.parametrize("entries", PERMUTATIONS, ids=lambda p: "-".join(str(e) for e in p))
def test_R013_permutations_of_integers_layouts_and_none(entries):
    """Fails if `make_tile` or `atoms.tiled_mma` treat one kind of entry as another (`_permute`, `_tile_extent`)."""
    texts = {}

    def body():
        as_fx = [fx.make_layout((16, 2), (1, 16)) if isinstance(e, Layout) else e for e in entries]
        tiled = fx.make_tiled_mma(fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16)), fx.make_layout((2, 2, 1), (1, 2, 0)), fx.make_tile(*as_fx))
        texts["size"] = str(tiled.tile_size_mnk)
        for operand in "ABC":
            texts[operand] = str(getattr(tiled, f"tv_layout_{operand}_tiled")).removeprefix("Layout<").removesuffix(">")
        texts["print"] = str(tiled)

    trace(body)
    m, n, k = (int(x) for x in texts["size"].split("<")[-1].strip("()>").split(","))
    for mode, (entry, extent) in enumerate(zip(entries, (m, n, k))):
        assert extent == ((32, 32, 16)[mode] if entry is None else 32 if isinstance(entry, Layout) else entry)
    for operand, rows, cols, readers in (("A", m, k, 2), ("B", n, k, 2), ("C", m, n, 1)):
        tv = parse(texts[operand])
        seen = Counter(fl.crd2idx((t, v), tv) for t in range(256) for v in range(fl.size(tv[1])))
        assert set(seen) == set(range(rows * cols)) and set(seen.values()) == {readers}, (operand, tv)
    assert "mfma<16x16x16" in texts["print"]


def test_R014_vectors_of_layouts_with_gaps():
    """Fails if loads and stores of whole tensors walk memory contiguously instead of by the layout's indices."""

    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        tile = fx.make_rmem_tensor(fx.make_layout((2, 4), (8, 1)), fx.Float32)
        for i in fx.range_constexpr(2):
            for j in fx.range_constexpr(4):
                tile[i, j] = x[i * 10 + j]
        v = tile.load()
        column = fx.make_view(x.iter, fx.make_layout(4, 8)).load()
        if fx.thread_idx.x == 0:
            for k in fx.range_constexpr(8):
                out[k] = v[k]
            for k in fx.range_constexpr(4):
                out[8 + k] = column[k]
            fx.make_view(out.iter + 20, fx.make_layout((2, 2), (10, 3))).store(fx.Vector.from_elements([1.0, 2.0, 3.0, 4.0]))

    out = run(body)
    assert list(out[:8]) == [i * 10 + j for j in range(4) for i in range(2)]  # first mode fastest
    assert list(out[8:12]) == [0, 8, 16, 24]
    assert [out[20 + i * 10 + j * 3] for j in range(2) for i in range(2)] == [1, 2, 3, 4]


def test_R015_coalesce_by_mode_keeps_the_modes():
    """Fails if `coalesce` with a pattern merges across the modes of the pattern."""
    rng = random.Random(15)
    for _ in range(300):
        modes = [random_layout(rng, 2) for _ in range(rng.randint(2, 3))]
        layout = Layout(tuple(m.shape for m in modes), tuple(m.stride for m in modes))
        merged = fl.coalesce(layout, (1,) * len(modes))
        assert fl.rank(merged) == len(modes)
        for mode in range(len(modes)):
            assert flat_values(merged[mode]) == flat_values(layout[mode])
        coord = tuple(None if i == 0 else rng.randrange(fl.size(m)) for i, m in enumerate(modes))
        before, after = (fl.modes.slice_with_offset(x, coord) for x in (layout, merged))
        assert before[1] == after[1] and flat_values(before[0]) == flat_values(after[0])


def test_R016_slices_of_coordinate_tensors():
    """Fails if slicing a coordinate tensor gives a plain layout, or drops the sliced part of the coordinate."""
    types = {}

    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        tiles = fx.zipped_divide(fx.make_view((0, 0), fx.make_identity_layout((10, 12))), (4, 8))
        tile = tiles[None, (fx.block_idx.x, 1)]  # rows 4b.., columns 8..15, of which 12 and up do not exist
        row, nested = tile[fx.thread_idx.x % 4, None], tile[(1, None)]
        types.update(tile=type(tile), row=type(row), nested=type(nested), point=type(tile[1, 2]))
        r, c = row[fx.thread_idx.x // 4].unpack()
        if fx.elem_less(row[fx.thread_idx.x // 4], (10, 12)):
            out[r * 12 + c] = fx.Float32(1.0)

    out = run(body, out=np.zeros(120, np.float32), grid=3, block=32)
    expected = np.zeros((10, 12), np.float32)
    expected[:, 8:] = 1
    assert (out.reshape(10, 12) == expected).all()
    assert types["tile"] is types["row"] is types["nested"] is fx.Tensor and types["point"] is fx.IntTuple


ATOMS = [(arch, op) for arch in CHIPS for op in mma_ops.atoms_of(arch)] if hasattr(mma_ops, "atoms_of") else []


def test_R017_fragments_follow_the_atom():
    """Fails if `fragment_layout` orders values otherwise than the atom's thread-value layout, or uses the wrong operand's."""
    for m, n, k, kind in ((16, 16, 16, "f16"), (32, 32, 8, "bf16"), (16, 16, 4, "f32"), (16, 16, 32, "f8E4M3FNUZ"), (16, 16, 32, "i8")):
        atom = mfma(m, n, k, kind, *(["i32"] if kind == "i8" else []))
        tiled = make_tiled_mma(atom, parse("(2,2,1):(1,2,0)"))
        for operand, extents in (("A", (4 * m, 2 * k)), ("B", (4 * n, 2 * k)), ("C", (4 * m, 4 * n))):
            tensor = Layout(extents, (extents[1], 1))
            fragment = tiled_mma.fragment_layout(tiled, operand, tensor)
            per_call = atom.values_per_thread["ABC".index(operand)]
            assert sorted(flat_values(fragment)) == list(range(fl.size(fragment)))  # dense, each register once
            assert flat_values(fragment[0])[:per_call] == list(range(per_call))  # one call's values are adjacent, in the atom's order
            rows, cols = extents[0] // (2 * (n if operand == "B" else m)), extents[1] // (k if operand != "C" else 2 * n)
            assert fl.size(fragment) == per_call * rows * cols


def test_R100_accumulators_cover_the_tile_once():
    """Fails if a thread-value layout in `atoms` maps two values to one element; judged for every matrix row of every chip."""
    checked = set()
    for arch in CHIPS:
        for row in mma_ops.supported(arch):
            if row.family not in ("mfma", "wmma") or row.blocks > 1 or row.operands.endswith("opsel"):
                continue
            op = atom_for(arch, row)
            seen = Counter(fl.crd2idx((t, v), op.layout_c) for t in range(fl.size(op.thr_layout)) for v in range(op.values_per_thread[2]))
            assert set(seen) == set(range(row.m * row.n)) and set(seen.values()) == {1}, (arch, row.isa)
            checked.add((arch, row.m, row.n))
    assert {a for a, *_ in checked} == set(CHIPS) and ("gfx942", 32, 32) in checked and ("gfx942", 16, 16) in checked


ELEMENTS = {"f64": "f64", "f32": "f32", "xf32": "tf32", "f16": "f16", "bf16": "bf16", "fp8": "f8E4M3FN", "bf8": "f8E5M2", "i8": "i8",
            "fp6": "f6E2M3FN", "bf6": "f6E3M2FN", "fp4": "f4E2M1FN", "i4": "i4"}  # fmt: skip


def atom_for(arch, row):
    a, b = (ELEMENTS[x] + ("UZ" if x == "fp8" else "FNUZ" if x == "bf8" else "") if arch == "gfx942" else ELEMENTS[x] for x in (row.a, row.b))
    if row.family == "mfma":
        return mma_ops.MFMA(row.m, row.n, row.k, a, b, row.acc)
    signs = {"sign_a": True, "sign_b": True} if row.a in ("i8", "i4") else {}
    return mma_ops.wmma(arch, row.m, row.n, row.k, a, row.acc, b=b, **signs)


def test_R101_composition_agrees_with_composing_functions():
    """Fails if `composition` drops its divisibility checks (`_share`, `refuse_carries`) and returns a wrong map."""
    rng = random.Random(101)
    computed = refused = 0
    for _ in range(10_000):
        a, b = random_layout(rng), random_layout(rng, 2)
        try:
            c = fl.composition(a, b)
        except LayoutError:
            refused += 1
            continue
        computed += 1
        left, right = flat_values(a), flat_values(b)
        for got, index in zip(flat_values(c), right, strict=True):
            if index < len(left):
                assert got == left[index], (a, b, c)
    assert computed > 2000 and refused > 1000


def test_R102_composition_with_a_dynamic_extent():
    """Fails if a dynamic extent on the right is refused without a condition, or taken as if it divided."""
    for n in range(1, 33):
        for a in (parse("(8,16):(1,8)"), parse("4:2"), parse("(4,8):(8,1)"), parse("(2,4,4):(16,1,4)")):
            b = Layout(Sym(value=n), 1)
            try:
                got = flat_values(with_numbers(fl.composition(a, b)))
            except LayoutError as e:
                assert e.why and e.fix and "?" in str(e)
                continue
            left = flat_values(a)
            assert got[: len(left)] == left[: len(got)], (a, n)
            assert len(got) >= min(n, len(left)), (a, n)  # a ragged last part covers more, as every divide does


def test_R103_slices_of_swizzled_layouts_never_abort():
    """Fails if slicing a composed layout loses the swizzle or the offset, or reaches native code with a bad coordinate."""
    for bits, base, shift in itertools.product((0, 1, 2, 3), (0, 1, 3), (1, 3)):
        if bits > shift and bits:
            continue
        swizzle = Swizzle(bits, base, shift)
        for shape, stride in (((8, 8), (8, 1)), ((4, 16), (16, 1)), ((2, (4, 8)), (32, (8, 1)))):
            layout = fl.make_composed_layout(swizzle, Layout(shape, stride))
            for row in range(shape[0]):
                part = fl.slice_(layout, (row, None))
                for c in range(fl.size(part)):
                    index = fl.crd2idx((row, c), Layout(shape, stride))
                    assert fl.crd2idx(c, part) == index ^ ((index >> (base + shift) & ((1 << bits) - 1)) << base)
            for bad in ((None,), (None, None, None), (0, 0, 0), "text", (None, (1, 2, 3)), 5):
                with pytest.raises((LayoutError, TypeError, ValueError)):
                    fl.slice_(layout, bad)


ROUTES = ["rank", "size", "rest", "value"]


def test_R109_mismatched_copies_show_both_sides():
    """Fails if `fx.copy` hands shapes to the lowering that it did not compare, or its error shows one side only."""
    rejected = []
    shapes = [4, 8, (4, 2), (4, 4), (4, 2, 2), (2, 4), (8, 3), (1, 4)]

    def body():
        atom = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32)
        for a in shapes:
            for b in shapes:
                src, dst = fx.make_rmem_tensor(a, fx.Float32), fx.make_rmem_tensor(b, fx.Float32)
                if a != b:
                    with pytest.raises(ValueError) as e:
                        fx.copy(atom, src, dst)
                    rejected.append((a, b, str(e.value)))

    trace(body)
    assert len(rejected) == len(shapes) * (len(shapes) - 1) >= 20
    for a, b, text in rejected:
        shown = [str(s).replace(" ", "") for s in (a, b)]
        for layout in shown:
            assert f"{layout}:" in text.replace(" ", ""), text


@pytest.mark.parametrize("threads", (1, 7, 64, 224, 256))
def test_R138_reductions_for_any_thread_count(threads):
    """Fails if a divide needs the thread count to divide the shape, so that a reduction of 448 columns to 14 has no layout."""

    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        groups = fx.zipped_divide(fx.make_view(x.iter, fx.make_layout((16, 448), (448, 1))), (1, 32))  # ((1,32),(16,14))
        for start in fx.range_constexpr(0, 16 * 14, threads):
            i = start + fx.thread_idx.x
            if i < 16 * 14:
                total = fx.Float32(0.0)
                for k in range(32):
                    total = total + groups[(0, k), (i // 14, i % 14)]
                out[i] = total

    x = np.random.default_rng(0).integers(-9, 9, (16, 448)).astype(np.float32)
    out = run(body, x, out=np.full((16 * 14,), -1, np.float32), block=threads)
    assert (out.reshape(16, 14) == x.reshape(16, 14, 32).sum(2)).all()
    part = make_tiled_copy_tv(copy_atom(UniversalCopy(32), 32), parse("(4,16):(16,1)"), parse("(1,2):(1,1)"))
    assert part.threads == 64
