"""`unit_attrs`, `value_attrs` and `cluster` of a launch, in the LLVM IR and the code object."""

import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.diag import ClusterUnsupported, FlyError


def artifact(arch: str, monkeypatch, at_call: dict | None = None, block: int | None = 64, **at_launch):
    monkeypatch.setenv("FLYDSL_GPU_ARCH", arch)
    monkeypatch.setenv("FLYDSL_RUNTIME_KIND", "null")

    @flyc.kernel
    def plain_kernel(x: fx.Tensor):
        x[fx.thread_idx.x] = 1.0

    @flyc.jit
    def launch(x: fx.Tensor, n: fx.Int32):
        size = n if fx.const_expr(block is None) else block
        plain_kernel(x, **(at_call or {})).launch(grid=(4,), block=(size,), **at_launch)

    return flyc.compile(launch, np.zeros(64, np.float32), 64).artifact


@pytest.mark.parametrize("value, text", [(2, '"amdgpu-waves-per-eu"="2"'), ("2,4", '"amdgpu-waves-per-eu"="2,4"')])
def test_waves_per_eu(monkeypatch, value, text):
    assert text in artifact("gfx942", monkeypatch, value_attrs={"rocdl.waves_per_eu": value}).codegen().llvm_ir


@pytest.mark.parametrize(
    "block, range_, expected", [(64, "64,64", "64,64"), (64, "32,128", "64,64"), (None, "32,128", "32,128")]
)
def test_workgroup_size_range(monkeypatch, block, range_, expected):
    """A block size that is known says more than the range."""
    made = artifact("gfx942", monkeypatch, block=block, value_attrs={"rocdl.flat_work_group_size": range_}).codegen()
    assert f'"amdgpu-flat-work-group-size"="{expected}"' in made.llvm_ir


def test_unit_attributes(monkeypatch):
    text = artifact("gfx942", monkeypatch, unit_attrs=["test.mark"]).ir
    assert "test.mark" in text and "test.mark =" not in text


def test_the_launch_wins_over_the_call(monkeypatch):
    made = artifact(
        "gfx942",
        monkeypatch,
        {"value_attrs": {"rocdl.waves_per_eu": 1, "rocdl.unsafe_fp_atomics": True}},
        value_attrs={"rocdl.waves_per_eu": 3},
    )
    text = made.codegen().llvm_ir
    assert '"amdgpu-waves-per-eu"="3"' in text and '"amdgpu-unsafe-fp-atomics"="true"' in text


def test_none_leaves_an_attribute_out(monkeypatch):
    assert (
        "waves-per-eu"
        not in artifact("gfx942", monkeypatch, value_attrs={"rocdl.waves_per_eu": None}).codegen().llvm_ir
    )


@pytest.mark.parametrize(
    "attributes",
    [
        {"value_attrs": {"rocdl.waves_per_eu": "many"}},
        {"value_attrs": {"rocdl.waves_per_eu": 99}},
        {"value_attrs": {"rocdl.flat_work_group_size": 64}},
        {"value_attrs": {"rocdl.flat_work_group_size": "128,256"}},
        {"value_attrs": {"rocdl.flat_work_group_size": "a,b"}, "block": None},
        {"value_attrs": {"rocdl.no_such": 1}},
        {"unit_attrs": ["rocdl.flat_work_group_size"]},
        {"value_attrs": {"rocdl.cluster_dims": "2,x,1"}},
    ],
)
def test_attributes_that_llvm_would_die_of_are_refused(monkeypatch, attributes):
    with pytest.raises(FlyError, match="plain_kernel_0|waves"):
        artifact("gfx942", monkeypatch, **attributes).codegen()


@pytest.mark.parametrize("how", [{"cluster": (2, 1, 1)}, {"value_attrs": {"rocdl.cluster_dims": "2,1,1"}}])
def test_clusters_are_in_the_code_of_gfx1250(monkeypatch, how):
    made = artifact("gfx1250", monkeypatch, **how)
    assert '"amdgpu-cluster-dims"="2,1,1"' in made.codegen().llvm_ir
    assert "amdgpu-no-cluster-id" not in made.codegen().llvm_ir
    assert ".cluster_dims:" in made.codegen().isa and made.codegen().hsaco[:4] == b"\x7fELF"
    if "cluster" in how:
        assert "(2, 1, 1), 0, 0," in made.host_text


def test_clusters_do_not_exist_elsewhere(monkeypatch):
    with pytest.raises(ClusterUnsupported, match="plain_kernel_0.*gfx942"):
        artifact("gfx942", monkeypatch, cluster=(2, 1, 1)).codegen()
    artifact("gfx942", monkeypatch, cluster=(1, 1, 1)).codegen()
