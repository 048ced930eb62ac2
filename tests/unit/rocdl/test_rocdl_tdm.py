"""Tensor DMA of gfx1250: descriptor words of the reference, atoms and partitions as the reference prints them."""

import re

import pytest

from flydsl.expr import algebra, rocdl
from flydsl.expr import layouts as L
from flydsl.expr.numeric import Int32
from flydsl.expr.rocdl import cdna5, tdm_ops
from flydsl.expr.tensors import Tensor

TENSOR = "!fly.memref<f16, global, (256,512):(512,1)>"
COMPACT = "!fly.memref<f16, shared, ((64,128),2):((128,1),8704)>"
PADDED = "!fly.memref<f16, shared, ((64,128),2):((136,1),8704)>"
LDS = "memref<8192xi8, 3>"

# (keyword arguments, group 1): constants in the reference's IR for a tile (64,128) of f16 with row stride 512.
GROUP1 = [
    ({}, [65536, 8388608, 4194304, 8388608, 64, 512, 0, 0]),
    ({"num_warps": 4, "pad_interval": 64, "pad_amount": 8}, [118554624, 8388608, 1048576, 8388608, 16, 512, 0, 0]),
    (
        {
            "num_warps": 4, "for_store": True, "pad_interval": 128, "pad_amount": 8, "workgroup_mask": 5,
            "early_timeout": True, "atomic_barrier_enable": True, "lds_byte_offset": 256, "pred": 0,
        },
        [2424837, 8388608, 1048576, 8912896, 16, 512, 0, 0],
    ),
    # max(100 - 36, 0) rows are left behind row 36, 200 columns as given
    ({"oob_outer_bound": 100, "oob_inner_bound": 200}, [65536, 200 << 16, 64 << 16, 128 << 16, 64, 512, 0, 0]),
]  # fmt: skip


def _descriptor(b, **named):
    tensor, lds = Tensor(b.args[0]), b.args[1]
    return tdm_ops.make_tensor_descriptor_2d(tensor, lds, (36, 0), (256, 512), (512, 1), (64, 128), **named)


@pytest.mark.parametrize("named,words", GROUP1)
def test_descriptor_words(body, named, words):
    with body("gfx1250", TENSOR, LDS) as b:
        tdm_ops.tensor_load_2d(_descriptor(b, **named))
    assert f"dense<[{', '.join(map(str, words))}]> : vector<8xi32>" in b.text
    group0 = re.search(r"vector.from_elements (\S+), (\S+), (\S+), (\S+) : vector<4xi32>", b.text)
    assert group0[1] == f"%c{named.get('pred', 1)}_i32"
    assert ("rocdl.wave.id" in b.text) == (named.get("num_warps", 1) > 1)


def test_stores_cannot_skip_padding_inside_rows(body):
    with body("gfx1250", TENSOR, LDS) as b:
        with pytest.raises(ValueError, match="padding every 64 elements within rows of 128"):
            _descriptor(b, for_store=True, pad_interval=64, pad_amount=8)


def test_issue_update_and_wait(body):
    with body("gfx1250", TENSOR, LDS, "i32") as b:
        desc, x = _descriptor(b), Int32(b.args[2])
        tdm_ops.tensor_store_2d(tdm_ops.update_tensor_descriptor_2d_addr64(desc, x, x, 64), cache_policy=2)
        tdm_ops.tensor_load_2d(tdm_ops.update_tensor_descriptor_2d_lds_addr(desc, x))
        gather = tdm_ops.make_tensor_gather_descriptor(Tensor(b.args[0]), b.args[1], [x] * 3, 64, 512, 256, 512, 2)
        tdm_ops.tensor_load_gather(gather)
        tdm_ops.tensor_wait(1)
    text = b.text
    assert text.count("rocdl.tensor.load.to.lds") == 2 and text.count("rocdl.tensor.store.from.lds") == 1
    assert re.search(r"rocdl.tensor.store.from.lds .*, 2 : ", text) and "rocdl.s.wait.tensorcnt 1" in text
    assert "arith.cmpi ult" in text and "arith.constant -1073741824" in text
    assert re.search(r"vector.from_elements %arg2, %arg2, %arg2, %c0_i32 : vector<4xi32>", text)


def test_helpers():
    assert tdm_ops.compute_padding_encoding(64, 8, 16) == (4, 3)
    assert tdm_ops.compute_warp_distribution((128, 64), 4) == ([4, 1], [32, 64])
    assert tdm_ops.compute_warp_distribution((2, 64), 4) == ([2, 2], [1, 32])
    assert (tdm_ops.PREFETCH_SCOPE_SE, tdm_ops.PREFETCH_SCOPE_DEVICE) == (8, 16)


def test_prefetch_covers_every_line_once(body):
    with body("gfx1250", TENSOR) as b:
        tdm_ops.l2_prefetch_tile(Tensor(b.args[0]), (0, 0), (64, 128), (512, 1), block_threads=32)
    assert b.text.count("rocdl.global.prefetch") == 64 * 2 // 32


def test_raw_atom(body):
    with body("gfx1250", TENSOR, "i32") as b:
        atom = cdna5.make_tdm_atom(Tensor(b.args[0]), (None, Int32(b.args[1])), num_warps=4)
        rocdl.make_tdm_atom(Tensor(b.args[0]), (None, None), strides=[7, None], num_warps=1)
    assert str(atom.plain).endswith(
        "gfx1250.tdm<rank = 2, warps = 4, pad = 0, 0, cache = 0, barrier = false, timeout = false>, 16>"
    )
    assert set(atom.state) == {"extent_0", "extent_1", "stride_0"}
    assert (
        "arith.constant 2147483647" in b.text
        and "arith.constant 512 : i64" in b.text
        and "arith.constant 7 : i64" in b.text
    )


@pytest.mark.parametrize("stride,shared,padding,part", [
    (128, COMPACT, "", "((2048,1),2):((1,0),8704)"),
    (136, PADDED, ", padInterval = 128, padAmount = 8", "(((128,16),1),2):(((1,136),0),8704)"),
])  # fmt: skip
def test_tiled_atom_and_partition(body, stride, shared, padding, part):
    with body("gfx1250", TENSOR, shared, "i32") as b:
        tensor, smem = Tensor(b.args[0]), Tensor(b.args[1])
        layout = L.make_layout((64, 128), (stride, 1))
        atom, coords = cdna5.make_tiled_tdm_atom(cdna5.TensorLoad(), tensor, layout, (64, 128), 4)
        tiles = algebra.zipped_divide(coords, L.make_tile(64, 128))
        mine = cdna5.tdm_partition(atom, Int32(b.args[2]), L.make_layout(4, 1), smem, tiles)
    assert f"tensor_load<shape = [16, 128], elem = f16, tensor2tdm = (1E0,1E1){padding}>, 16>" in str(atom.plain)
    assert str(coords) == "Tensor<(0,0), (256,512):(1E1,1E0)>"
    assert str(mine[0]) == f"Tensor<f16, shared, {part}>"
    assert str(mine[1]) == "Tensor<(0,?{div=16}), (((128,16),1),(4,4)):(((1E0,1E1),0),(64E1,128E0))>"


def test_partition_wants_whole_tiles(body):
    with body("gfx1250", TENSOR, "!fly.memref<f16, shared, ((64,16),2):((16,1),1024)>") as b:
        layout = L.make_layout((64, 128), (128, 1))
        atom, coords = cdna5.make_tiled_tdm_atom(cdna5.TensorStore(), Tensor(b.args[0]), layout, (64, 128), 4)
        tiles = algebra.zipped_divide(coords, L.make_tile(64, 128))
        with pytest.raises(ValueError, match="multiples of the cooperative tile size 8192"):
            cdna5.tdm_partition(atom, 0, L.make_layout(4, 1), Tensor(b.args[1]), tiles)


def test_other_chips_are_refused(body):
    with body("gfx950", TENSOR, LDS) as b:
        with pytest.raises(ValueError, match="gfx950"):
            _descriptor(b)
        with pytest.raises(ValueError, match="gfx950"):
            cdna5.TDM(2, 4)
