"""Memory that may only be read: a write is our error at its line, before any byte changes, whatever checks are on."""

import mmap
from pathlib import Path

import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
import flydsl.sim
from flydsl.diag.errors.simulator import SimFindings
from flydsl.expr import buffer_ops
from flydsl.utils import env

N = 64
SOURCE = Path(__file__).read_text().splitlines()


def line_of(text: str) -> int:
    return next(i for i, line in enumerate(SOURCE, 1) if line.strip() == text)


@flyc.kernel
def store_kernel(src: fx.Tensor, dst: fx.Tensor, first: fx.Int32):
    i = fx.thread_idx.x
    if i >= first:
        dst[i] = src[i] + 1


@flyc.jit
def store(src: fx.Tensor, dst: fx.Tensor, first: fx.Int32):
    store_kernel(src, dst, first).launch(grid=1, block=N)


@flyc.kernel
def buffer_kernel(dst: fx.Tensor):
    resource = buffer_ops.create_buffer_resource(dst)
    buffer_ops.buffer_store(fx.Int32(7), resource, fx.Int32(fx.thread_idx.x))


@flyc.jit
def buffered(dst: fx.Tensor):
    buffer_kernel(dst).launch(grid=1, block=N)


@flyc.kernel
def atomic_kernel(dst: fx.Tensor):
    fx.atomic_add(dst.iter, fx.Int32(1))


@flyc.jit
def atomic(dst: fx.Tensor):
    atomic_kernel(dst).launch(grid=1, block=N)


@flyc.kernel
def pointer_kernel(p: fx.Pointer, out: fx.Tensor):
    p[fx.thread_idx.x] = out[fx.thread_idx.x]


@flyc.jit
def through_pointer(p: fx.Pointer, out: fx.Tensor):
    pointer_kernel(p, out).launch(grid=1, block=N)


def mapped(tmp_path: Path) -> np.ndarray:
    np.zeros(N, np.int32).tofile(tmp_path / "a.bin")
    return np.memmap(tmp_path / "a.bin", np.int32, "r")


def of_bytes(tmp_path: Path) -> np.ndarray:
    return np.frombuffer(bytes(4 * N), np.int32)


def locked(tmp_path: Path) -> np.ndarray:
    array = np.zeros(N, np.int32)
    array.flags.writeable = False
    return array


def view(tmp_path: Path) -> np.ndarray:
    return locked(tmp_path).reshape(2, -1).reshape(-1)[::1]


class Exporter:
    """A tensor of another library: `versioned` ones say whether they may be written."""

    def __init__(self, array: np.ndarray, versioned: bool = True):
        self.array, self.versioned = array, versioned

    def __dlpack__(self, **options):
        if not self.versioned and "max_version" in options:
            raise TypeError("unexpected keyword argument 'max_version'")
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def exported(tmp_path: Path) -> Exporter:
    return Exporter(locked(tmp_path))


ALL = (mapped, of_bytes, locked, view, exported)


@pytest.fixture(params=["default", "none"])
def checks(request):
    with flydsl.sim.check(checks=request.param, on_finding="raise"):
        yield


def values(given) -> np.ndarray:
    return np.array(getattr(given, "array", given))


@pytest.mark.parametrize("make", ALL)
def test_a_write_is_an_error_and_nothing_changes(make, tmp_path, checks) -> None:
    given = make(tmp_path)
    with pytest.raises(SimFindings) as caught:
        store(np.ones(N, np.int32), given, 0)
    finding = caught.value.findings[0]
    assert (finding.kind, finding.tensor, finding.index, finding.span.line) == ("bounds", "dst", (0,), line_of("dst[i] = src[i] + 1"))
    assert "write to `dst`, which the host passed as read-only" in str(caught.value)
    assert not values(given).any()


@pytest.mark.parametrize("make", ALL)
def test_reads_work(make, tmp_path, checks) -> None:
    out = np.zeros(N, np.int32)
    store(make(tmp_path), out, 0)
    assert (out == 1).all()


@pytest.mark.parametrize("kernel", [buffered, atomic])
@pytest.mark.parametrize("make", (mapped, of_bytes))
def test_buffer_stores_and_atomics(kernel, make, tmp_path, checks) -> None:
    given = make(tmp_path)
    with pytest.raises(SimFindings, match="write to `dst`, which the host passed as read-only"):
        kernel(given)
    assert not given.any()


def test_collected_findings_name_the_first_lane_that_writes(tmp_path) -> None:
    given = mapped(tmp_path)
    with flydsl.sim.check(on_finding="collect") as findings:
        store(np.ones(N, np.int32), given, 40)
    (finding,) = findings
    assert (finding.index, finding.thread, finding.count) == ((40,), (40, 0, 0), N - 40)
    assert not given.any()


def test_a_write_that_no_lane_makes_is_none(tmp_path, checks) -> None:
    store(np.ones(N, np.int32), mapped(tmp_path), N)


def test_an_exporter_that_knows_no_versions_may_be_written() -> None:
    """NumPy takes such memory as read-only, because nobody says what it is."""
    array = np.zeros(N, np.int32)
    given = Exporter(array, versioned=False)
    assert not np.from_dlpack(given).flags.writeable
    store(np.ones(N, np.int32), given, 0)
    assert (array == 2).all()


def test_a_writable_view_of_the_same_memory_is_written(tmp_path) -> None:
    array = np.zeros(N, np.int32)
    other = array.view()
    other.flags.writeable = False
    with flydsl.sim.check(checks="default,-race"):
        store(other, array, 0)
    assert (array == 1).all()


def test_a_bare_address_in_a_protected_mapping(tmp_path, checks) -> None:
    given = mapped(tmp_path)
    with pytest.raises(SimFindings) as caught:
        through_pointer(flyc.from_c_void_p(fx.Int32, given.ctypes.data), np.ones(N, np.int32))
    assert "write to `p (a bare address)`, which the system protects" in str(caught.value)
    assert caught.value.findings[0].span.line == line_of("p[fx.thread_idx.x] = out[fx.thread_idx.x]")
    assert not given.any()


def test_a_bare_address_of_a_read_only_tensor_of_the_launch(tmp_path, checks) -> None:
    given = of_bytes(tmp_path)
    with pytest.raises(SimFindings, match="read-only"):
        through_pointer(flyc.from_c_void_p(fx.Int32, given.ctypes.data), given)
    assert not given.any()


def test_a_bare_address_where_nothing_is() -> None:
    hole = mmap.mmap(-1, mmap.PAGESIZE)
    address = np.frombuffer(hole, np.uint8).ctypes.data
    hole.close()
    with pytest.raises(SimFindings, match="in no tensor of this launch"):
        through_pointer(flyc.from_c_void_p(fx.Int32, address), np.ones(N, np.int32))


def test_none_of_the_checks_lets_a_bad_address_end_the_process() -> None:
    with env.override(FLYDSL_SIM_CHECK="none"):
        through_pointer(flyc.from_c_void_p(fx.Int32, 4096), np.ones(N, np.int32))
