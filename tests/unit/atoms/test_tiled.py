"""Laws of tiled copies and tiled MMAs: who owns what, by enumeration; dynamic threads against static ones."""
import isa_maps
import pytest

from flydsl.atoms import (
    LDSReadTrans,
    UniversalCopy,
    copy_atom,
    make_tiled_copy,
    make_tiled_copy_operand,
    make_tiled_copy_tv,
    make_tiled_mma,
    mfma,
    retile,
    tiled_copy,
    tiled_mma,
    wmma,
)
from flydsl.layout import (
    ComposedLayout,
    Swizzle,
    Sym,
    composition,
    crd2idx,
    make_composed_layout,
    make_fragment_layout_like,
    make_identity_layout,
    parse,
    size,
)
from flydsl.layout.coords import all_coords, all_indices
from flydsl.layout.int_tuple import coord_add


def value(leaf):
    return leaf.value if isinstance(leaf, Sym) else leaf


def point(base, moved):
    """Return the coordinate that lies `moved` from `base`; both may leave out zeros."""
    return coord_add(coord_add((0, 0), base), moved)


def owned(layout, offset):
    """Return the indices of a part, in its own order; leaves may carry Python ints as payload."""
    return [value(offset) + i for i in all_indices(layout)]


COPIES = [
    ("(16,16):(16,1)", "(1,8):(1,1)", 128, 16, "(64,128):(128,1)"),
    ("(16,16):(16,1)", "(1,8):(1,1)", 64, 16, "(64,128):(128,1)"),
    ("(16,16):(16,1)", "(2,16):(1,2)", 128, 16, "(64,512):(512,1)"),
    ("(8,4):(1,8)", "(2,4):(4,1)", 32, 8, "(32,32):(1,32)"),
    ("(64,1):(1,1)", "(1,8):(1,1)", 128, 32, "(128,32):(40,1)"),
    ("(4,16):(16,1)", "(4,1):(1,1)", 64, 32, "((4,8),(4,4)):((1,64),(4,16))"),
]


@pytest.mark.parametrize("thr, val, bits, elem_bits, tensor", COPIES)
def test_a_copy_deals_every_element_once(thr, val, bits, elem_bits, tensor):
    tiled = make_tiled_copy_tv(copy_atom(UniversalCopy(bits), elem_bits), parse(thr), parse(val))
    layout = parse(tensor)
    for side in ("src", "dst"):
        seen = []
        for thread in range(tiled.threads):
            seen += owned(*tiled_copy.partition(tiled, side, layout, thread))
        assert sorted(seen) == sorted(all_indices(layout))


@pytest.mark.parametrize("thr, val, bits, elem_bits, tensor", COPIES)
def test_a_dynamic_thread_gets_what_the_static_one_gets(thr, val, bits, elem_bits, tensor):
    tiled = make_tiled_copy_tv(copy_atom(UniversalCopy(bits), elem_bits), parse(thr), parse(val))
    layout = parse(tensor)
    for thread in range(0, tiled.threads, 7):
        fixed, offset = tiled_copy.partition(tiled, "src", layout, thread)
        moving, moved = tiled_copy.partition(tiled, "src", layout, Sym(value=thread))
        assert moving == fixed
        assert value(moved) == offset
        assert not isinstance(moved, Sym) or moved.value % moved.div == 0


@pytest.mark.parametrize("thr, val, bits, elem_bits, tensor", COPIES)
def test_the_tile_layout_says_where_values_lie(thr, val, bits, elem_bits, tensor):
    """A value's place in the partition of a coordinate tensor is the tile coordinate of layout_tv."""
    tiled = make_tiled_copy_tv(copy_atom(UniversalCopy(bits), elem_bits), parse(thr), parse(val))
    rows = tiled.tile_shape[0]
    identity = make_identity_layout(tiled.tile_shape)
    for thread in range(0, tiled.threads, 11):
        part, base = tiled_copy.partition(tiled, "src", identity, thread)
        got = [point(base, crd2idx((c, 0, 0), part)) for c in all_coords(part.shape[0])]
        index = [crd2idx((thread, v), tiled.layout_tv) for v in range(size(tiled.layout_tv[1]))]
        assert sorted(got) == sorted((i % rows, i // rows) for i in index)


def test_a_swizzled_tensor_keeps_its_swizzle_outermost():
    tiled = make_tiled_copy_tv(copy_atom(UniversalCopy(128), 16), parse("(8,8):(8,1)"), parse("(1,8):(1,1)"))
    plain = parse("(64,64):(64,1)")
    swizzled = make_composed_layout(Swizzle(3, 3, 3), plain)
    for thread in range(0, 64, 5):
        part, moved = tiled_copy.partition(tiled, "src", swizzled, thread)
        assert isinstance(part, ComposedLayout) and moved == 0
        straight, offset = tiled_copy.partition(tiled, "src", plain, thread)
        for c in all_coords(straight.shape):
            assert crd2idx(c, part) == composition_value(offset + crd2idx(c, straight))


def composition_value(index):
    """S<3,3,3> by the definition of the notation."""
    return index ^ ((index >> 6 & 7) << 3)


MMAS = [
    ("16x16x16 f16", mfma(16, 16, 16, "f16"), "(2,2,1):(1,2,0)", None),
    ("row-major waves", mfma(16, 16, 16, "f16"), "(2,2,1):(2,1,0)", None),
    ("32x32x8 bf16", mfma(32, 32, 8, "bf16"), "(4,1,1):(1,0,0)", (None, None, 32)),
    ("two K steps", mfma(16, 16, 16, "f16"), "(1,4,1):(0,1,0)", (None, None, parse("(4,4,2):(1,8,4)"))),
    ("f64", mfma(16, 16, 4, "f64"), "(1,2,1):(0,1,0)", (32, 32, 8)),
    ("gfx12", wmma("gfx1201", 16, 16, 16, "bf16"), "(2,2,1):(1,2,0)", (64, 32, None)),
    ("gfx1250", wmma("gfx1250", 16, 16, 32, "f16"), "(2,1,2):(1,0,2)", None),
]


@pytest.mark.parametrize("name, atom, waves, permutation", MMAS, ids=[m[0] for m in MMAS])
@pytest.mark.parametrize("operand", "ABC")
def test_waves_cover_an_operand(name, atom, waves, permutation, operand):
    """Every element is dealt; those of A and B once per wave along the mode that the operand lacks."""
    tiled = make_tiled_mma(atom, parse(waves), permutation)
    m, n, k = tiled.tile_size_mnk
    shape = {"A": (2 * m, k), "B": (n, 2 * k), "C": (m, 2 * n)}[operand]
    layout = parse(f"({shape[0]},{shape[1]}):({shape[1]},1)")
    seen = {}
    for thread in range(tiled.threads):
        for index in owned(*tiled_mma.partition(tiled, operand, layout, thread)):
            seen[index] = seen.get(index, 0) + 1
    absent = {"A": 1, "B": 0, "C": 2}[operand]
    assert set(seen) == set(range(shape[0] * shape[1]))
    assert set(seen.values()) == {size(tiled.atom_layout[absent])}


@pytest.mark.parametrize("waves", ["(2,2,1):(1,2,0)", "(2,2,1):(2,1,0)", "(1,4,1):(0,1,0)"])
@pytest.mark.parametrize("operand", "ABC")
def test_mfma_parts_are_the_manuals(waves, operand):
    """Thread -> (wave, lane) -> the manual's element: the partition of a coordinate tensor, from scratch."""
    tiled = make_tiled_mma(mfma(16, 16, 16, "f16"), parse(waves))
    strides = parse(waves).stride
    m, n, k = tiled.tile_size_mnk
    shape = {"A": (m, k), "B": (n, k), "C": (m, n)}[operand]
    identity = make_identity_layout(shape)
    for thread in range(0, tiled.threads, 13):
        wave, lane = divmod(thread, 64)
        place = [(wave // s) % e if e > 1 else 0 for e, s in zip(parse(waves).shape, strides)]
        part, base = tiled_mma.partition(tiled, operand, identity, thread)
        got = [point(base, crd2idx(c, part)) for c in all_coords(part.shape)]
        if operand == "C":
            want = [isa_maps.mfma_output(16, 16, 1, 4)[lane, i][:2] for i in range(4)]
            want = [(r + 16 * place[0], c + 16 * place[1]) for r, c in want]
        else:
            want = [isa_maps.mfma_input(16, 16, 1)[lane, i][:2] for i in range(4)]
            want = [(r + 16 * place[0 if operand == "A" else 1], c) for r, c in want]
        assert got == want


@pytest.mark.parametrize("thread", [0, 21, 63, 64, 100, 127, 130])
def test_waves_beyond_a_short_tensor_have_coordinates_of_their_own(thread):
    """Two waves along N over a C of 8 x 16: the second one is behind the tensor, where a predicate can see it."""
    tiled = make_tiled_mma(mfma(16, 16, 16, "f16"), parse("(1,2,2):(0,1,2)"))
    wave, lane = divmod(thread, 64)
    want = [(r, c + 16 * (wave % 2)) for r, c in (isa_maps.mfma_output(16, 16, 1, 4)[lane, i][:2] for i in range(4))]
    for shape in [(8, 16), (16, 16), (16, 32)]:
        part, base = tiled_mma.partition(tiled, "C", make_identity_layout(shape), thread)
        assert [point(base, crd2idx(c, part)) for c in all_coords(part.shape)] == want


@pytest.mark.parametrize("name, atom, waves, permutation", MMAS, ids=[m[0] for m in MMAS])
@pytest.mark.parametrize("operand", "ABC")
def test_dynamic_mma_threads(name, atom, waves, permutation, operand):
    tiled = make_tiled_mma(atom, parse(waves), permutation)
    a, b = tiled.tile_shape(operand)
    layout = parse(f"({a},{b}):({b + 8},1)")
    for thread in range(0, tiled.threads, 17):
        fixed, offset = tiled_mma.partition(tiled, operand, layout, thread)
        moving, moved = tiled_mma.partition(tiled, operand, layout, Sym(value=thread))
        assert moving == fixed and value(moved) == offset


@pytest.mark.parametrize("name, atom, waves, permutation", MMAS, ids=[m[0] for m in MMAS])
@pytest.mark.parametrize("operand", "ABC")
def test_a_copy_of_an_operand_fills_its_fragment(name, atom, waves, permutation, operand):
    """retile: element by element, the copy's source and the fragment's register belong together."""
    tiled = make_tiled_mma(atom, parse(waves), permutation)
    a, b = tiled.tile_shape(operand)
    layout = parse(f"({2 * a},{2 * b}):({2 * b},1)")
    bits = {"f16": 16, "bf16": 16, "f64": 64, "f32": 32}[atom.acc if operand == "C" else atom.a]
    copy = make_tiled_copy_operand(copy_atom(UniversalCopy(bits), bits), tiled, operand)
    fragment = tiled_mma.fragment_layout(tiled, operand, layout)
    for thread in range(0, tiled.threads, 29):
        part, offset = tiled_mma.partition(tiled, operand, layout, thread)
        register = {}
        for c in all_coords(part.shape):
            register[crd2idx(c, fragment)] = offset + crd2idx(c, part)
        source, start = tiled_copy.partition(copy, "src", layout, thread)
        target = retile(copy, fragment)
        modes = tuple(size(source[i]) for i in range(source.rank))
        assert modes == tuple(size(target[i]) for i in range(target.rank))
        for c in all_coords(modes):
            assert register[crd2idx(c, target)] == start + crd2idx(c, source)


def test_fragments_are_compact():
    tiled = make_tiled_mma(mfma(16, 16, 16, "f16"), parse("(2,2,1):(1,2,0)"))
    layout = parse("(64,128):(128,1)")
    for operand in "ABC":
        fragment = tiled_mma.fragment_layout(tiled, operand, layout)
        part, _ = tiled_mma.partition(tiled, operand, layout, 0)
        assert sorted(all_indices(fragment)) == list(range(size(part)))
        staged = tiled_mma.fragment_layout(tiled, operand, layout, 3)
        assert sorted(all_indices(staged)) == list(range(3 * size(part)))


def test_stages_replace_further_modes():
    """As the reference: (192,64,3) with two stages holds the first two modes twice, not the third."""
    tiled = make_tiled_mma(wmma("gfx1100", 16, 16, 16, "f16"), parse("(4,1,1):(1,0,0)"))
    layout = parse("(192,64,3):(64,1,12288)")
    assert str(tiled_mma.fragment_layout(tiled, "A", layout)) == "(16,3,4,3):(1,64,16,192)"
    assert str(tiled_mma.fragment_layout(tiled, "A", layout, 2)) == "(16,3,4,2):(1,64,16,192)"


def test_one_stage_has_stride_0():
    tiled = make_tiled_mma(mfma(16, 16, 16, "f16"), parse("(1,1,1):(0,0,0)"))
    assert str(tiled_mma.fragment_layout(tiled, "A", parse("(32,32):(32,1)"), 1)) == "(4,2,2,1):(1,8,4,0)"


@pytest.mark.parametrize("tile", ["16", "16:1"])
def test_retile_of_a_one_dimensional_copy(tile):
    """Four threads with four neighbours each, moved in pairs: the fragment's registers in pairs."""
    tiled = make_tiled_copy(copy_atom(UniversalCopy(32), 16), parse("(4,4):(4,1)"), parse(f"[{tile}]").modes)
    layout = parse("(48):(1)")
    part, _ = tiled_copy.partition(tiled, "src", layout, 1)
    fragment = make_fragment_layout_like(part)
    target = retile(tiled, fragment)
    assert [crd2idx(c, target) for c in all_coords(target.shape)] == [crd2idx(c, fragment) for c in all_coords(part.shape)]


def test_transposing_read():
    """Lane l gets element l of each row: what ds_read_b64_tr_b16 does with 16 rows of 4."""
    atom = copy_atom(LDSReadTrans(16, 64), "f16")
    src = {(lane, v): crd2idx((lane, v), atom.layout_src) for lane in range(16) for v in range(4)}
    dst = {(lane, v): crd2idx((lane, v), atom.layout_dst) for lane in range(16) for v in range(4)}
    assert sorted(src.values()) == sorted(dst.values()) == list(range(64))
    assert all(dst[lane, v] == lane + 16 * v for lane in range(16) for v in range(4))


@pytest.mark.parametrize("make, message", [
    (lambda: tiled_copy.partition(make_tiled_copy_tv(copy_atom(UniversalCopy(32), 16), parse("(4,8):(8,1)"),
                                                     parse("(1,2):(1,1)")), "src", parse("64:1"), 0), "fewer modes"),
    (lambda: tiled_copy.partition(make_tiled_copy(copy_atom(UniversalCopy(128), 8),
                                                  parse("((4,8),(4,2)):((64,2),(16,1))"), (16, 16)),
                                  "src", parse("(32,32):(1,32)"), 0), "moves 16 values, but a thread has 8"),
    (lambda: make_tiled_mma(mfma(16, 16, 16, "f16"), parse("(2,2):(1,2)")), "three static modes"),
    (lambda: tiled_mma.partition(make_tiled_mma(mfma(16, 16, 16, "f16"), parse("(1,1,1):(0,0,0)")), "X",
                                 parse("(16,16):(1,16)"), 0), "operand must be one of"),
    (lambda: tiled_mma.partition(make_tiled_mma(mfma(16, 16, 16, "f16"), parse("(1,1,1):(0,0,0)")), "A",
                                 parse("16:1"), 0), "two modes or more"),
])
def test_refusals(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_composed_fragment_likes_are_refused_nowhere():
    """A fragment of a swizzled partition has the plain part's shape."""
    tiled = make_tiled_copy_tv(copy_atom(UniversalCopy(128), 16), parse("(8,8):(8,1)"), parse("(1,8):(1,1)"))
    swizzled = make_composed_layout(Swizzle(3, 3, 3), parse("(64,64):(64,1)"))
    part, _ = tiled_copy.partition(tiled, "src", swizzled, Sym())
    plain, _ = tiled_copy.partition(tiled, "src", parse("(64,64):(64,1)"), Sym())
    assert make_fragment_layout_like(part) == make_fragment_layout_like(plain)
    assert composition(parse("8:1"), parse("8:1")) == parse("8:1")
