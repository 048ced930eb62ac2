"""Faults of compiling, caching, launching and tooling that users reported (kinds runtime/launch, cache, tooling, docs/install, perf).

Each test is named after the report's id; `Fails if` names the change to our code that would bring the fault back.
"""

import os
import pathlib
import re
import subprocess
import sys
import threading
import time

import ml_dtypes
import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.diag import FlyError
from flydsl.utils import env

from .kernels import artifact, isa, run

ROOT = pathlib.Path(__file__).parents[2]


@flyc.kernel
def add_kernel(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
    i = fx.block_idx.x * 64 + fx.thread_idx.x
    if i < n:
        out[i] = x[i] + 1.0


@flyc.jit
def add_launch(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
    add_kernel(x, out, n).launch(grid=((n + 63) // 64, 1, 1), block=(64, 1, 1))


def test_R036_calls_without_any_cache():
    """Fails if a launch keeps a pointer into an artifact that nothing holds."""
    import gc

    x = np.arange(100, dtype=np.float32)
    with env.override(FLYDSL_RUNTIME_ENABLE_CACHE="0", ARCH="gfx942"):
        for _ in range(2):
            out = np.zeros(100, np.float32)
            add_launch(x, out, 100)
            assert (out == x + 1).all()
        compiled = flyc.compile(add_launch, x, out, 100)
        copy = compiled
        del compiled
        gc.collect()
        out[:] = 0
        copy(x, out, 100)
        assert (out == x + 1).all()


def test_R038_two_chips_in_one_process():
    """Fails if the target is looked up once per process, or left out of the key."""

    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        out[fx.thread_idx.x] = fx.Float32(fx.gpu.num_warp_threads())

    kernel = flyc.kernel(body)

    @flyc.jit
    def launch(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        kernel(x, out, n).launch(grid=(1, 1, 1), block=(64, 1, 1))

    x, out = np.zeros(64, np.float32), np.zeros(64, np.float32)
    for arch, wave in (("gfx942", 64), ("gfx1100", 32), ("gfx942", 64)):
        with env.override(ARCH=arch, FLYDSL_GPU_ARCH=arch):
            launch(x, out, 1)
        assert (out == wave).all()
    assert launch.cache_info().misses == 2
    with env.override(ARCH="gfx9999"), pytest.raises(FlyError, match="gfx9999"):  # never a silent default
        launch(x, out, 1)


def test_R044_static_shapes_are_part_of_the_key():
    """Fails if the signature of a static tensor leaves out its shape or strides."""

    @flyc.kernel
    def fill(t: fx.Tensor):
        size = fx.size(t).to_py_value()
        for k in range(size):
            t[k] = fx.Float32(size)

    @flyc.jit
    def launch(t: fx.Tensor):
        fill(t).launch(grid=(1, 1, 1), block=(1, 1, 1))

    for n in (8, 24, 16, 8):
        t = np.zeros(n, np.float32)
        launch(flyc.from_dlpack(t))
        assert (t == n).all()
    info = launch.cache_info()
    assert (info.misses, info.currsize) == (3, 3)


SCALE = 2.0


def scaled(v):
    return v * SCALE


def test_R045_what_a_kernel_refers_to_is_part_of_the_key(monkeypatch):
    """Fails if `compiler.fingerprint` stops at the kernel's own code."""
    closed = 1.0

    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        out[fx.thread_idx.x] = scaled(x[fx.thread_idx.x]) + closed

    kernel = flyc.kernel(body)

    @flyc.jit
    def launch(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        kernel(x, out, n).launch(grid=(1, 1, 1), block=(64, 1, 1))

    x, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)

    def result():
        launch(x, out, 1)
        return out.copy()

    assert (result() == x * 2 + 1).all()
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert (result() == x * 3 + 1).all()
    closed = 5.0
    assert (result() == x * 3 + 5).all()
    monkeypatch.setitem(globals(), "scaled", lambda v: v - 1.0)
    assert (result() == x + 4).all()


FUTURE = """
from __future__ import annotations
import flydsl.compiler as flyc
import flydsl.expr as fx

@flyc.kernel
def kernel(out: fx.Tensor, n: fx.Constexpr[int], v: fx.Float32):
    for k in fx.range_constexpr(n):
        out[k] = v * float(n)

@flyc.jit
def launch(out: fx.Tensor, n: fx.Constexpr[int], v: fx.Float32):
    kernel(out, n, v).launch(grid=(1, 1, 1), block=(1, 1, 1))
"""


@pytest.mark.parametrize("future", (True, False))
def test_R048_annotations_as_text(tmp_path, monkeypatch, future):
    """Fails if annotations that are text are not evaluated before arguments are wrapped."""
    name = f"annotated_{int(future)}"
    (tmp_path / f"{name}.py").write_text(FUTURE if future else FUTURE.replace("from __future__ import annotations\n", ""))
    monkeypatch.syspath_prepend(str(tmp_path))
    module = __import__(name)
    for n in (2, 3):
        out = np.zeros(4, np.float32)
        module.launch(out, n, 1.5)
        assert list(out) == [1.5 * n] * n + [0.0] * (4 - n)
    assert module.launch.cache_info().misses == 2


def test_R052_compiling_without_device_driver_or_torch(tmp_path):
    """Fails if tracing or code generation imports torch, or loads HIP."""
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\nsys.modules['torch'] = None\n"
        + FUTURE.replace("from __future__ import annotations\n", "")
        + "import numpy as np, os\n"
        + "for arch in ('gfx942', 'gfx1201'):\n"
        + "    os.environ['ARCH'] = arch\n"
        + "    c = launch.artifact_for(launch.wrap_arguments((np.zeros(4, np.float32), 2, 1.0), {}))\n"
        + "    assert c.codegen(('hsaco',)).hsaco[:4] == b'\\x7fELF', arch\n"
        + "import ctypes\nprint('maps', any('amdhip' in line for line in open('/proc/self/maps')) if os.path.exists('/proc/self/maps') else False)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COMPILE_ONLY": "1", "FLYDSL_RUNTIME_CACHE_DIR": ""}
    done = subprocess.run([sys.executable, str(program)], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "maps False" in done.stdout, done.stderr


def test_R053_everything_of_one_compile():
    """Fails if an artifact gives up its traced IR, its ISA, its code object or its metadata."""

    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        out[fx.thread_idx.x] = x[fx.thread_idx.x]

    made = artifact(body)
    built = made.codegen(("isa", "hsaco"))
    assert "gpu.func" in str(made.source_ir) and "s_endpgm" in built.isa and built.hsaco[:4] == b"\x7fELF"
    (info,) = built.kernels.values()
    assert info.vgprs > 0 and info.wave_size == 64


MISTAKES = {
    "unknown name": "out[i] = undefined",
    "bad shift": "fx.Int32(i) << 1.5",
    "profile": "fx.make_layout((4, 8), (1, 2, 3))",
    "type in a loop": "for k in range(n): i = fx.Float32(k)",
    "bool": "assert i > 3",
    "index": "fx.Vector.from_elements([1.0, 2.0])[5]",
    "mode": "fx.get_(fx.make_layout(4, 1), 3)",
    "copy": "fx.copy(fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32), x, out)",
    "text": "fx.printf('{} {}', i)",
    "static": "fx.range_constexpr(n)",
}


@pytest.mark.parametrize("name", MISTAKES)
def test_R062_the_last_frame_is_the_users(tmp_path, monkeypatch, name):
    """Fails if `diag.stack.trimmed` keeps a frame of the package behind the user's, or errors carry no place."""
    module = f"mistake_{name.replace(' ', '_')}"
    text = f"import flydsl.expr as fx\ndef body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):\n    i = fx.thread_idx.x\n    {MISTAKES[name]}\n"
    path = tmp_path / f"{module}.py"
    path.write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    body = __import__(module).body
    with pytest.raises(Exception) as e:
        run(body)
    tb = e.value.__traceback__
    while tb.tb_next is not None:
        tb = tb.tb_next
    assert (tb.tb_frame.f_code.co_filename, tb.tb_lineno) == (str(path), 4)
    if isinstance(e.value, FlyError):
        assert e.value.span.file == str(path) and e.value.span.line == 4 and (sys.version_info < (3, 11) or e.value.span.column > 4)
    else:
        assert name == "unknown name" and isinstance(e.value, NameError)


def test_R063_every_instruction_has_a_line():
    """Fails if a pass builds ops without the location of the op it replaces."""
    from flydsl.ir import print_op

    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        layout = fx.make_layout((8, 8), (8, 1))
        tile = fx.zipped_divide(fx.make_view(x.iter, layout), (1, 4))[None, (fx.thread_idx.x // 2, fx.thread_idx.x % 2)]
        frag = fx.make_rmem_tensor(4, fx.Float32)
        if fx.thread_idx.x < 16:
            fx.copy(fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32), fx.make_view(tile.iter, fx.make_layout(4, 1)), frag)
            for k in range(n):
                frag[0] = frag[0] * 2.0
            fx.make_view(out.iter + fx.thread_idx.x * 4, fx.make_layout(4, 1)).store(frag.load())

    text = print_op(artifact(body).lowered.operation, locations=True)
    ops = [line for line in text.splitlines() if re.search(r"(llvm\.(load|store|getelementptr)|scf\.|arith\.(mul|add|cmp))", line)]
    unknown = [line for line in ops if ("loc(" not in line and not line.endswith("{")) or "loc(unknown)" in line]
    assert len(ops) > 10 and unknown == []


def test_R080_import_on_an_unknown_chip(tmp_path):
    """Fails if importing the package looks for a device, or an unknown chip is refused without the list of known ones."""
    code = "import flydsl, flydsl.compiler, flydsl.expr.rocdl; from flydsl import arch; print('imported'); arch.get('gfx777')"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "ARCH": "gfx777", "FLYDSL_GPU_ARCH": "gfx777"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert "imported" in done.stdout and done.returncode == 1
    assert "gfx777" in done.stderr and "gfx942" in done.stderr and "gfx1250" in done.stderr


def test_R107_prints_from_one_thread(capfd):
    """Fails if printing an LDS tile loses values, or prints once per lane."""

    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        lds = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 64]).peek()
        lds[fx.thread_idx.x] = x[fx.thread_idx.x]
        fx.barrier()
        if fx.thread_idx.x == 5:
            for k in range(4):
                fx.printf("tile[{}] = {}", k, lds[k + 10])

    run(body)
    said = capfd.readouterr().out
    found = re.findall(r"tile\[(\d)\] = ([\d.]+)", said)
    assert [(int(k), float(v)) for k, v in found] == [(k, k + 10.0) for k in range(4)]


@pytest.mark.parametrize("dtype, numpy", [(fx.Float8E4M3FN, ml_dtypes.float8_e4m3fn), (fx.BFloat16, ml_dtypes.bfloat16), (fx.Float16, np.float16)])
def test_R108_prints_of_small_floats(capfd, dtype, numpy):
    """Fails if printf hands the bits of a small float on instead of its value."""

    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        if fx.thread_idx.x == 0:
            for k in fx.range_constexpr(3):
                fx.printf("{}", x[k].bitcast(dtype))

    values = np.array([1.5, -0.25, 12.0] + [0.0] * 5).astype(numpy)
    run(body, values.view({1: np.uint8, 2: np.uint16}[values.itemsize]))
    assert [float(v) for v in capfd.readouterr().out.split()[:3]] == [1.5, -0.25, 12.0]


def test_R110_compile_time_of_a_small_kernel():
    """Fails if a static tile is expanded into work that grows faster than the tile (measured: the ratio of two sizes)."""

    def kernel(n):
        def body(x: fx.Tensor, out: fx.Tensor, m: fx.Int32):
            frag = fx.make_rmem_tensor((n, 4), fx.Float32)
            frag.fill(0)
            for k in fx.range_constexpr(n):
                frag[k, 1] = x[fx.thread_idx.x + k]
            out[fx.thread_idx.x] = frag.load().reduce("add")

        return body

    def seconds(n):
        start = time.process_time()
        isa(kernel(n))
        return time.process_time() - start

    seconds(4)
    small, large = seconds(16), seconds(64)
    assert large < 10 * max(small, 0.05), (small, large)


def test_R140_threads_that_compile_at_once():
    """Fails if contexts, traces or caches are shared between threads without a lock."""

    def kernel(k):
        def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
            i = fx.thread_idx.x
            v = x[i]
            for j in range(n):
                v = v + float(k)
            out[i] = v

        return body

    results, errors = {}, []

    def work(k):
        try:
            kernel_k = flyc.kernel(kernel(k))

            @flyc.jit
            def launch(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
                kernel_k(x, out, n).launch(grid=(1, 1, 1), block=(64, 1, 1))

            out = np.zeros(64, np.float32)
            launch(np.arange(64, dtype=np.float32), out, 3)
            results[k] = out
        except Exception as e:
            errors.append(e)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert errors == [] and len(results) == 16
    assert all((out == np.arange(64) + 3 * k).all() for k, out in results.items())


def test_R141_growing_lengths_compile_once():
    """Fails if the extent of a tensor passed as it is, or the value of an Int32, enters the key."""
    misses = add_launch.cache_info().misses
    for n in range(40, 60):
        x, out = np.arange(n, dtype=np.float32), np.zeros(n, np.float32)
        add_launch(x, out, n)
        assert (out == x + 1).all()
    assert add_launch.cache_info().misses - misses <= 1


def test_R145_a_crash_of_the_code_generator_is_an_exception():
    """Fails if a module outside the proven set is handed to LLVM in this process (`targets.rocm.isolate`)."""
    from flydsl.targets.rocm import compile_lowered

    bad = """module attributes {gpu.container_module} { gpu.module @m {
      gpu.func @k(%p: !llvm.ptr<1>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
        %1 = llvm.inline_asm has_side_effects "v_not_an_instruction $0", "=v" : () -> i32
        llvm.store %1, %p : i32, !llvm.ptr<1>
        gpu.return } } }"""
    with pytest.raises(FlyError) as e:
        compile_lowered(bad, "gfx942", emit=("hsaco",))
    assert "v_not_an_instruction" in str(e.value) or "assembl" in str(e.value).lower()


def test_R148_unsupported_operations_are_named():
    """Fails if the simulator skips an op that it does not know."""
    from flydsl.targets.sim import Program

    text = 'module { gpu.module @m { gpu.func @k(%p: !llvm.ptr<1>) kernel { "rocdl.s.setprio"() {priority = 1 : i16} : () -> ()\n  %c = arith.constant 1 : i32\n  %x = "llvm.intr.experimental.vp.ctpop.nope"(%c) : (i32) -> i32\n gpu.return } } }'
    with pytest.raises((FlyError, ValueError)) as e:
        Program(text, "gfx942").launch("k", (1, 1, 1), (64, 1, 1), [0], [])
    assert "ctpop" in str(e.value)
