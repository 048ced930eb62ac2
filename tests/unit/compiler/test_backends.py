"""Compile backends by name: what asks for one, and that the one in force lowers the kernels."""

from pathlib import Path

import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.compiler import backends
from flydsl.compiler.backends import BaseBackend, GPUTarget, RocmBackend, current_target, get_backend, register_backend
from flydsl.diag import BackendCode, BackendName, PassName, UnknownArch
from flydsl.ir import ir
from flydsl.passes.registry import UPSTREAM, parse_upstream
from flydsl.runtime import device_runtime
from flydsl.runtime.device_runtime import register_compile_runtime_mapping


@pytest.fixture(autouse=True)
def registry(monkeypatch):
    """Each test has registries of its own, and an environment without a target."""
    monkeypatch.setattr(backends, "_backends", dict(backends._backends))
    monkeypatch.setattr(device_runtime, "_EXTRA_MAPPINGS", {})
    for name in ("ARCH", "FLYDSL_GPU_ARCH", "HSA_OVERRIDE_GFX_VERSION", "FLYDSL_COMPILE_BACKEND"):
        monkeypatch.delenv(name, raising=False)


class Dummy(BaseBackend):
    @staticmethod
    def supports_target(target):
        return target.backend == "dummy"

    @staticmethod
    def detect_target():
        return GPUTarget("dummy", "dummy0", 1)

    @classmethod
    def make_target(cls, arch):
        return GPUTarget("dummy", arch, 1)

    def pipeline_fragments(self, *, compile_hints):
        return []


def make_scale():
    @flyc.kernel
    def scale_kernel(x: fx.Tensor, factor: fx.Float32):
        x[fx.thread_idx.x] = x[fx.thread_idx.x] * factor

    @flyc.jit
    def scale(x: fx.Tensor, factor: fx.Float32):
        scale_kernel(x, factor).launch(grid=(1,), block=(64,))

    return scale


def test_the_default_is_rocm_for_the_chip_in_use(monkeypatch):
    assert backends.compile_backend_name() == "rocm"
    assert get_backend(arch="gfx942").target == GPUTarget(backend="rocm", arch="gfx942", warp_size=64)
    monkeypatch.setenv("ARCH", "gfx1201")
    assert get_backend().target == current_target() == GPUTarget("rocm", "gfx1201", 32)
    with pytest.raises(UnknownArch):
        get_backend(arch="gfx1")


def test_registering_changes_what_is_known_not_the_default():
    register_backend("dummy", Dummy)
    assert backends.compile_backend_name() == "rocm" and get_backend().target.backend == "rocm"
    assert get_backend("dummy", arch="dummy7").target == GPUTarget("dummy", "dummy7", 1)
    assert get_backend(" Dummy ").target.arch == "dummy0"
    with pytest.raises(ValueError, match="force=True"):
        register_backend("dummy", RocmBackend)
    register_backend("dummy", RocmBackend, force=True)
    assert get_backend("dummy", arch="gfx950").target.backend == "rocm"
    with pytest.raises(TypeError, match="BaseBackend"):
        register_backend("other", object)
    with pytest.raises(ValueError, match="does not support"):
        Dummy(GPUTarget("rocm", "gfx942", 64))


def test_unknown_names_are_refused_by_the_next_call(monkeypatch):
    scale, x = make_scale(), np.ones(64, np.float32)
    scale(x, 2.0)
    monkeypatch.setenv("FLYDSL_COMPILE_BACKEND", "cuda")
    with pytest.raises(BackendName, match="named cuda") as caught:
        scale(x, 2.0)
    assert "rocm" in str(caught.value) and "register_backend" in str(caught.value)
    assert (x == 2).all()


def test_the_target_of_a_traced_function_is_its_own(monkeypatch):
    monkeypatch.setenv("FLYDSL_RUNTIME_KIND", "null")
    seen = []

    @flyc.kernel
    def ask_kernel(x: fx.Tensor):
        seen.append(current_target())
        x[fx.thread_idx.x] = 1.0

    @flyc.jit
    def ask(x: fx.Tensor):
        ask_kernel(x).launch(grid=(1,), block=(64,))

    for arch in ("gfx950", "gfx1100"):
        monkeypatch.setenv("ARCH", arch)
        ask(np.ones(64, np.float32))
    assert seen == [GPUTarget("rocm", "gfx950", 64), GPUTarget("rocm", "gfx1100", 32)]


def test_a_registered_backend_lowers_the_kernels(monkeypatch, tmp_path):
    """Its hooks run with the hints of the compile, its result is stored apart from ours, and the kernel runs."""
    asked = []

    class Mine(RocmBackend):
        def lower_compile_hints(self, module, *, compile_hints):
            asked.append(("hints", dict(compile_hints), "fly." in str(module)))

        def pipeline_fragments(self, *, compile_hints):
            if compile_hints:
                asked.append(("passes", dict(compile_hints)))
            return [*super().pipeline_fragments(compile_hints=compile_hints), "loop-invariant-code-motion"]

    monkeypatch.setenv("FLYDSL_RUNTIME_CACHE_DIR", str(tmp_path))
    scale, x, hints = make_scale(), np.ones(64, np.float32), {"waves_per_eu": 2}
    flyc.compile[hints](scale)(x, 2.0)
    register_backend("mine", Mine)
    monkeypatch.setenv("FLYDSL_COMPILE_BACKEND", "mine")
    with pytest.raises(RuntimeError, match="'mine' requires device runtime kind None"):
        scale(x, 2.0)
    register_compile_runtime_mapping("mine", "rocm")
    asked.clear()
    scale(x, 2.0)
    assert asked == [("hints", hints, True), ("passes", hints)]
    assert (x == 4).all() and scale.cache_info()[1:] == (2, 2, 2)
    again = make_scale()
    flyc.compile[hints](again)(x, 2.0)
    assert (x == 8).all() and again.cache_info().misses == 0 and len(asked) == 2


WRONG_PASSES = {
    "loop-invarant-code-motion": "no compile pass `loop-invarant-code-motion`; did you mean `loop-invariant-code-motion`",
    "fly-canonicalise": "no compile pass `fly-canonicalise`; did you mean `fly-canonicalize`",
    "canonicalize,csee": "no compile pass `csee`; did you mean `cse`",
    "no-such-thing-at-all": "no compile pass `no-such-thing-at-all`\n",
    "canonicalize{depth=3}": "the pass pipeline `canonicalize{depth=3}` cannot be read",
}


@pytest.mark.parametrize("name", WRONG_PASSES)
def test_an_unknown_pass_of_a_backend(monkeypatch, name):
    """Refused before any pass runs, at the method that names it; names that are close are suggested."""
    lowered = []

    class Short(RocmBackend):
        def pipeline_fragments(self, *, compile_hints):
            return [*super().pipeline_fragments(compile_hints=compile_hints), name]

        def lower_compile_hints(self, module, *, compile_hints):
            lowered.append(module)

    register_backend("rocm", Short, force=True)
    with pytest.raises(PassName) as caught:
        make_scale()(np.ones(64, np.float32), 2.0)
    text = str(caught.value)
    assert WRONG_PASSES[name] in text and "Short" in text and "backend `rocm`" in text, text
    assert Path(caught.value.span.file) == Path(__file__)
    assert "def pipeline_fragments" in caught.value.span.text and "fly." in str(lowered[0])


def test_suggested_upstream_passes_exist():
    with ir.Context() as context:
        for name in UPSTREAM:
            parse_upstream(f"gpu.module({name})" if name == "convert-gpu-to-rocdl" else name, context)


def test_a_backend_for_other_hardware_cannot_compile(monkeypatch):
    class Other(Dummy):
        @staticmethod
        def detect_target():
            return GPUTarget("dummy", "gfx942", 64)

    register_backend("other", Other)
    monkeypatch.setenv("FLYDSL_COMPILE_BACKEND", "other")
    with pytest.raises(BackendCode, match="family dummy"):
        make_scale()(np.ones(64, np.float32), 2.0)


def test_hash_depends_on_target_and_passes():
    class Longer(RocmBackend):
        def pipeline_fragments(self, *, compile_hints):
            return [*super().pipeline_fragments(compile_hints=compile_hints), "cse"]

    ours = [get_backend(arch=arch).hash() for arch in ("gfx942", "gfx942", "gfx950")]
    assert ours[0] == ours[1] != ours[2]
    assert Longer(RocmBackend.make_target("gfx942")).hash() != ours[0]


def test_address_spaces_are_llvms():
    """AMDGPU usage of LLVM, address spaces: 0 generic, 1 global, 3 local (LDS), 5 private."""
    backend = get_backend(arch="gfx942")
    assert [backend.llvm_address_space(s) for s in ("generic", "global", "shared", "private")] == [0, 1, 3, 5]


def test_a_class_without_source_is_known_to_its_process_only(monkeypatch):
    """Its address may be that of another class in the next process, which the disk cache would take it for."""
    namespace = {"RocmBackend": RocmBackend}
    exec("class Typed(RocmBackend):\n    pass\n", namespace)
    typed, written = namespace["Typed"], RocmBackend
    before = [cls(cls.make_target("gfx942")).hash() for cls in (typed, written)]
    monkeypatch.setattr("flydsl.compiler.backends.base._PROCESS", "another")
    after = [cls(cls.make_target("gfx942")).hash() for cls in (typed, written)]
    assert before[0] != after[0] and before[1] == after[1]
