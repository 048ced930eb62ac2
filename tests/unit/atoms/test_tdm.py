"""Tensor DMA: padding codes, warp shares, descriptor words, tiled atoms and their partition."""
import pytest

from flydsl.atoms import tdm, tdm_tiled
from flydsl.atoms.tdm import TDM
from flydsl.layout import Sym, crd2idx, parse, size, zipped_divide
from flydsl.layout.coords import all_coords
from flydsl.layout.int_tuple import coord_add


@pytest.mark.parametrize("interval, amount, bits, codes", [
    (64, 8, 16, (4, 3)), (32, 4, 32, (4, 3)), (64, 0, 16, (0, 0)), (64, 1, 16, (0, 0)), (4, 2, 16, (0, 0)),
])
def test_padding_encoding(interval, amount, bits, codes):
    assert tdm.compute_padding_encoding(interval, amount, bits) == codes


def test_padding_interval_must_be_a_power_of_two():
    with pytest.raises(AssertionError):
        tdm.compute_padding_encoding(48, 8, 16)
    with pytest.raises(ValueError, match="power of two"):
        tdm.padding_codes(48, 8, 16)
    with pytest.raises(ValueError, match="1 to 128 whole dwords"):
        tdm.padding_codes(64, 1, 16)


@pytest.mark.parametrize("shape, warps, per_mode, share", [
    ((128, 64), 4, [4, 1], [32, 64]), ((2, 64), 4, [2, 2], [1, 32]), ((6, 64), 4, [4, 1], [2, 64]),
    ((1, 1, 8), 8, [1, 1, 8], [1, 1, 1]),
])
def test_warp_distribution(shape, warps, per_mode, share):
    assert tdm.compute_warp_distribution(shape, warps) == (per_mode, share)


def test_too_many_warps():
    with pytest.raises(ValueError, match="do not fit"):
        tdm.compute_warp_distribution((2, 2), 8)


def view(op, warp=0, **state):
    return tdm.tdm_view(op, "f16", (128, 64), (1000, 512), (512,), 0x7F1234567890, 0x2400, warp, **state)


def field(groups, group, word, low, width):
    return groups[group][word] >> low & (1 << width) - 1


def test_descriptor_fields():
    """Each field where LLVM's description of the descriptor puts it."""
    groups = tdm.pack_descriptor(view(TDM(2, 4, 64, 8, early_timeout=True), 2, workgroup_mask=5))
    assert [len(g) for g in groups] == [4, 8, 4, 4, 8]
    address = groups[0][2] | (groups[0][3] & 0x1FFFFFF) << 32
    assert address == 0x7F1234567890 + 64 * 512 * 2
    assert groups[0][1] == 0x2400 + 64 * (64 + 8) * 2
    assert field(groups, 0, 3, 30, 2) == 2
    assert field(groups, 1, 0, 0, 16) == 5 and field(groups, 1, 0, 16, 2) == 1
    assert field(groups, 1, 0, 20, 1) == 1 and field(groups, 1, 0, 21, 1) == 1
    assert field(groups, 1, 0, 22, 3) == 4 and field(groups, 1, 0, 25, 7) == 3
    assert field(groups, 1, 1, 16, 16) == 512 and field(groups, 1, 2, 16, 16) == 1000 - 64
    assert field(groups, 1, 3, 16, 16) == 64 and field(groups, 1, 4, 0, 16) == 32
    assert groups[1][5] == 512


def test_extents_never_go_negative():
    groups = tdm.pack_descriptor(tdm.tdm_view(TDM(2, 4), "f16", (128, 64), (40, 512), (512,), 0, 0, 3))
    assert field(groups, 1, 2, 16, 16) == 0


def test_dynamic_words_equal_static_ones():
    """The same packing on leaves whose payload is a Python int."""
    op = TDM(3, 4)
    tile, extents, strides = (4, 32, 64), (10, 100, 512), (51200, 512)
    for warp in range(4):
        static = tdm.pack_descriptor(tdm.tdm_view(op, "f32", tile, extents, strides, 1 << 40, 0x80, warp))
        moving = tdm.pack_descriptor(tdm.tdm_view(
            op, "f32", tile, tuple(Sym(32, 1, e) for e in extents), tuple(Sym(64, 1, s) for s in strides),
            Sym(64, 16, 1 << 40), Sym(32, 16, 0x80), Sym(32, 1, warp)))
        for a, b in zip(sum(static, ()), sum(moving, ())):
            assert (b.value if isinstance(b, Sym) else b) & 0xFFFFFFFF == a & 0xFFFFFFFF


def made(tensor, smem, tile, warps=1, direction="load"):
    return tdm_tiled.make_tiled_tdm_atom(direction, parse(tensor), parse(smem), parse(tile), warps)


def test_tiled_atom():
    atom, coordinates = made("!fly.memref<f16, global, (256,512):(512,1)>", "(64,128):(136,1)", "[64|128]", 4)
    assert atom.short == ("copy_atom<rocdl.cdna5.tensor_load<shape = [16, 128], elem = f16, tensor2tdm = (1E0,1E1), "
                          "padInterval = 128, padAmount = 8>, 16>")
    assert str(coordinates.layout) == "(256,512):(1E1,1E0)"


@pytest.mark.parametrize("tensor, smem, tile, warps, message", [
    ("(256,512):(512,1)", "(64,128):(1,64)", "[64|128]", 1, "contiguous mode"),
    ("(256,512):(1024,2)", "(64,128):(128,1)", "[64|128]", 1, "contiguous mode"),
    ("(256,512):(512,1)", "(64,128):(128,1)", "[32|128]", 1, "elements of the tile"),
    ("(256,512):(512,1)", "(64,128):(128,1)", "[64|128]", 3, "evenly"),
    ("(256,(8,64)):(512,(64,1))", "(64,128):(128,1)", "[64|128]", 1, "contiguous mode"),
    ("(2,2,2,2,2,2):(32,16,8,4,2,1)", "(2,2,2,2,2,2):(32,16,8,4,2,1)", "[2|2|2|2|2|2]", 1, "at most 5"),
    ("(256,512):(512,1)", "(64,128):(64,1)", "[64|128]", 1, "neither compact nor padded"),
])
def test_tiled_atom_refusals(tensor, smem, tile, warps, message):
    with pytest.raises(ValueError, match=message):
        made(f"!fly.memref<f16, global, {tensor}>", smem, tile, warps)


def test_lds_without_a_contiguous_mode_is_refused_for_every_width():
    for elem in ("i8", "f16", "f32", "f64"):
        with pytest.raises(ValueError, match="no contiguous mode"):
            made(f"!fly.memref<{elem}, global, (1024,512):(512,1)>", "(128,64):(128,2)", "[128|64]")


# Recorded from the reference compiler: (tensor, LDS, tile, warps) and the atom's shape, tensor2tdm, coordinates.
DIMENSIONS = [
    ("(1,3,16):(48,16,1)", "(1,1,8):(8,8,1)", "[1|1|8]", 1, "[1, 8]", "(0,1E0,1E1)", "(0,1E1,1E0)"),
    ("(32,6,64):(384,64,1)", "(8,3,64):(192,64,1)", "[8|3|64]", 1, "[8, 192]", "(1E0,64E1,1E1)", "(1E1,64E0,1E0)"),
    ("(4,8,384):(3072,384,1)", "(4,8,128):(1024,128,1)", "[4|8|128]", 16, "[2, 128]", "(8E0,1E0,1E1)",
     "(8E1,1E1,1E0)"),
    ("((2,24),24):((576,24),1)", "(16,24):(24,1)", "[16|24]", 4, "[2, 2, 24]", "((1E1,1E0),1E2)", "((1E1,1E2),1E0)"),
    ("(256,(128,2)):(256,(1,128))", "(64,64):(64,1)", "[64|64]", 1, "[1, 64, 64]", "(1E1,(1E2,1E0))",
     "(1E1,(1E0,1E2))"),
    ("(256,24):(0,1)", "(64,8):(8,1)", "[64|8]", 1, "[64, 8]", "(0,1E1)", "(0,1E0)"),
    ("(3,4,32,32,512):(1,3,12,384,12288)", "(1,2,8,16,128):(32768,16384,2048,128,1)", "[1|2|8|16|128]", 1,
     "[2, 8, 16, 128, 1]", "(1E4,1E0,1E1,1E2,1E3)", "(1E0,1E4,1E3,1E2,1E1)"),
    ("(1,3,128,256):(98304,32768,256,1)", "(1,3,32,128):(12288,4096,128,1)", "[1|3|32|128]", 6, "[1, 16, 128]",
     "(0,1E0,1E1,1E2)", "(0,1E2,1E1,1E0)"),
]


@pytest.mark.parametrize("tensor, smem, tile, warps, shape, to_tdm, strides", DIMENSIONS)
def test_dimensions_of_the_descriptor(tensor, smem, tile, warps, shape, to_tdm, strides):
    atom, coordinates = made(f"!fly.memref<f16, global, {tensor}>", smem, tile, warps)
    assert f"shape = {shape}, elem = f16, tensor2tdm = {to_tdm}>" in atom.short
    assert str(coordinates.layout) == f"{tensor.split(':')[0]}:{strides}"


def test_dimensions_hold_sixteen_bits():
    """Recorded from the reference compiler: 8 x 32 x 256 elements are no single dimension."""
    atom, _ = made("!fly.memref<i8, global, (48,24,32,256):(196608,8192,256,1)>", "(2,8,32,256):(65536,8192,256,1)",
                   "[2|8|32|256]")
    assert "shape = [2, 8, 8192]" in atom.short


def test_stores_cannot_unpad():
    with pytest.raises(ValueError, match="padded"):
        made("!fly.memref<f16, global, (256,512):(512,1)>", "(64,128):(136,1)", "[64|128]", 1, "store")


# Recorded from the reference compiler (warp 3 or a run-time warp).
PARTITIONS = [
    ("shape = [16, 128], elem = f16, tensor2tdm = (1E0,1E1)", "((64,128),2):((128,1),8704)", "[64|128]", "4:1", 3,
     "((2048,1),2):((1,0),8704)", "(((128,16),1),(4,4)):(((1E0,1E1),0),(64E1,128E0))", (0, 48)),
    ("shape = [16, 128], elem = f16, tensor2tdm = (1E0,1E1), padInterval = 128, padAmount = 8",
     "((64,128),2):((136,1),8704)", "[64|128]", "4:1", 3, "(((128,16),1),2):(((1,136),0),8704)",
     "(((128,16),1),(4,4)):(((1E0,1E1),0),(64E1,128E0))", (0, 48)),
    ("shape = [8, 128], elem = f16, tensor2tdm = (1E0,1E1)", "((64,128),2):((128,1),8704)", "[64|128]", "4:1", 3,
     "((1024,2),2):((1,4096),8704)", "(((128,8),2),(4,4)):(((1E0,1E1),32E1),(64E1,128E0))", (0, 24)),
    ("shape = [8, 128], elem = f16, tensor2tdm = (1E0,1E1)", "((64,128),2):((128,1),8704)", "[64|128]",
     "(2,4):(4,1)", 1, "((1024,1),2):((1,0),8704)", "(((128,8),1),(4,4)):(((1E0,1E1),0),(64E1,128E0))", (0, 32)),
    ("shape = [1, 32], elem = f16, tensor2tdm = (1E0,1E1)", "((2,64),2):((64,1),128)", "[2|64]", "4:1", 3,
     "((32,1),2):((1,0),128)", "((32,1),(128,8)):((1E0,0),(2E1,64E0))", (32, 1)),
]


@pytest.mark.parametrize("op, smem, tile, warp_layout, warp, shared, coord, offset", PARTITIONS)
def test_partition_over_warps(op, smem, tile, warp_layout, warp, shared, coord, offset):
    from flydsl.atoms import parse_copy_atom
    atom = parse_copy_atom(f"copy_atom<rocdl.cdna5.tensor_load<{op}>, 16>")
    divided = zipped_divide(parse("(256,512):(1E1,1E0)"), parse(tile))
    (s, _), (g, moved) = tdm_tiled.tdm_partition(atom, warp, parse(warp_layout), parse(smem), divided)
    assert (str(s), str(g), moved) == (shared, coord, offset)


def test_warps_share_the_tile():
    """LDS elements of all warps together are the tile, each once, at the element that the coordinates name."""
    atom, coordinates = made("!fly.memref<f16, global, (256,512):(512,1)>", "(64,128):(136,1)", "[64|128]", 4)
    smem = parse("((64,128),1):((136,1),0)")
    divided = zipped_divide(coordinates.layout, parse("[64|128]"))
    seen = {}
    for warp in range(4):
        (s, s0), (g, g0) = tdm_tiled.tdm_partition(atom, warp, parse("4:1"), smem, divided)
        for i in range(size(s[0][0])):
            x, y = coord_add(coord_add((0, 0), g0), crd2idx(((i, 0), 0), g))
            seen[s0 + crd2idx(((i, 0), 0), s)] = (y, x)
    assert seen == {row * 136 + col: (row, col) for row, col in all_coords((64, 128))}


def test_partition_refusals():
    atom, coordinates = made("!fly.memref<f16, global, (256,512):(512,1)>", "(64,128):(128,1)", "[64|128]", 4)
    divided = zipped_divide(coordinates.layout, parse("[64|128]"))
    smem = parse("((64,128),2):((128,1),8192)")
    with pytest.raises(ValueError, match="bijectively map"):
        tdm_tiled.tdm_partition(atom, 0, parse("4:2"), smem, divided)
    with pytest.raises(ValueError, match=r"cooperative tile size 16384 \(atom size \* num_warps\)"):
        tdm_tiled.tdm_partition(atom, 0, parse("8:1"), smem, divided)


# Recorded from the reference compiler: f16 rows of 64 out of (1000, 512) with stride 640, mask 5.
GATHERS = [
    (5, 32, (0, 0), 0xC0000001, 65541, [10, 11, 12, 13, 14, 0, 0, 0]),
    (8, 32, (0, 0), 0xC0000001, 65541, [10, 11, 12, 13, 14, 15, 16, 17]),
    (5, 16, (0, 0), 0x80000001, 65541, [720906, 851980, 14, 0, 0, 0, 0, 0]),
    (16, 16, (64, 8), 0x80000001, 118554629,
     [720906, 851980, 983054, 1114128, 1245202, 1376276, 1507350, 1638424]),
]


@pytest.mark.parametrize("count, bits, padding, head, flags, words", GATHERS)
def test_gather_descriptor(count, bits, padding, head, flags, words):
    view = tdm.TileView(16, (64, count), (512, 1000), (640,), 0x1000, 0x2400,
                        tdm.padding_codes(*padding, 16), workgroup_mask=5)
    groups = tdm.pack_gather_descriptor(view, range(10, 10 + count), bits)
    assert groups[0][0] == head
    assert groups[1] == (flags, 33554432, 65536000, 4194304, count, 640, 0, 0)
    assert list(groups[2] + groups[3]) == words


@pytest.mark.parametrize("count, bits", [(9, 32), (17, 16), (0, 32)])
def test_gather_refusals(count, bits):
    view = tdm.TileView(16, (64, count), (512, 1000), (640,), 0x1000, 0x2400)
    with pytest.raises(ValueError, match="row indices"):
        tdm.pack_gather_descriptor(view, range(count), bits)
