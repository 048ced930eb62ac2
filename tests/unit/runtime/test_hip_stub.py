"""The HIP driver against a stub library built here: which calls it makes, and the kernarg bytes of launches.

What a driver copies into kernarg memory is checked against the code object itself: pyelftools finds the metadata
note in the very image that
was loaded, msgpack reads offsets and sizes, and the expected bytes are packed here from the values of the call.
"""

import contextlib
import ctypes
import io
import pathlib
import shutil
import struct
import subprocess
import threading

import ml_dtypes
import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.compiler.jit_argument import MemRefJitArg
from flydsl.diag import (
    BlockLimit,
    ClusterLaunchUnsupported,
    DeviceChip,
    DevicesMixed,
    ExportedArch,
    HipFailed,
    HipUnusable,
    HostMemory,
    MissingHip,
    SharedCapacity,
)
from flydsl.runtime import driver, exported, kinds, rocm
from flydsl.runtime.host_arrays import HostArray
from flydsl.targets.rocm import hip
from flydsl.utils import env, logger

msgpack = pytest.importorskip("msgpack", reason="msgpack is not installed")
elffile = pytest.importorskip("elftools.elf.elffile", reason="pyelftools is not installed")

CC = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
SOURCE = pathlib.Path(__file__).with_name("hip_stub.c")
LOADED = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64)


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    return build(tmp_path_factory.mktemp("hip"))


@pytest.fixture(scope="session")
def old_library(tmp_path_factory):
    """A HIP that neither names chips nor launches clusters."""
    return build(tmp_path_factory.mktemp("old_hip"), "-DOLD_HIP")


def build(folder: pathlib.Path, *flags: str) -> pathlib.Path:
    if CC is None:
        pytest.skip("no C compiler: cc, gcc or clang builds the stub of libamdhip64")
    path = folder / "libamdhip64.so"
    subprocess.run([CC, "-shared", "-fPIC", "-O1", "-w", *flags, "-o", str(path), str(SOURCE)], check=True)
    return path


class Stub:
    """The stub library; `layouts` holds the metadata of the kernels in the images that were loaded."""

    def __init__(self, path: pathlib.Path):
        self.lib = ctypes.CDLL(str(path))
        self.lib.stub_log.restype = ctypes.c_char_p
        self.layouts: dict[str, dict] = {}
        self.callback = LOADED(self.loaded)

    def reset(self, devices: int, chips: tuple[str, ...] = (), buses: tuple[str, ...] = ()) -> None:
        """Have `devices` devices; without `chips` the library names none."""
        self.layouts.clear()
        self.images: list[bytes] = []
        self.lib.stub_reset(devices, self.callback)
        for i in range(devices):
            names = [(given[i] if i < len(given) else "").encode() for given in (chips, buses)]
            self.lib.stub_chip(i, *names)

    def pin(self, array: np.ndarray) -> np.ndarray:
        """Let devices reach an array on the host."""
        self.lib.stub_pin(ctypes.c_size_t(array.ctypes.data), ctypes.c_uint64(array.nbytes))
        return array

    def loaded(self, module: int, image: int, size: int) -> None:
        self.images.append(ctypes.string_at(image, size))
        for kernel in metadata(ctypes.string_at(image, size))["amdhsa.kernels"]:
            self.layouts[kernel[".name"]] = kernel
            explicit = [a for a in kernel[".args"] if not a[".value_kind"].startswith("hidden_")]
            numbers = ctypes.c_int * len(explicit)
            offsets, sizes = numbers(*(a[".offset"] for a in explicit)), numbers(*(a[".size"] for a in explicit))
            end = max((a[".offset"] + a[".size"] for a in explicit), default=0)
            self.lib.stub_layout(kernel[".name"].encode(), end, len(explicit), offsets, sizes)

    @property
    def calls(self) -> list[tuple[str, str]]:
        return [tuple(line.split(" ", 1)) for line in self.lib.stub_log().decode().splitlines()]

    def named(self, call: str) -> list[str]:
        return [rest for name, rest in self.calls if name == call]

    @property
    def launches(self) -> list[dict[str, str]]:
        return self.launched_by("hipModuleLaunchKernel")

    def launched_by(self, call: str) -> list[dict[str, str]]:
        return [
            {"kernel": r.split()[0], **dict(p.split("=", 1) for p in r.split()[1:])} for r in self.named(call)
        ]

    def expected(self, kernel: str, values: list[tuple[str, object]]) -> str:
        """Pack (struct letter, value) pairs where the metadata has its explicit arguments; gaps read as the stub
        fills them.
        """
        explicit = [a for a in self.layouts[kernel][".args"] if not a[".value_kind"].startswith("hidden_")]
        assert len(explicit) == len(values), [a[".size"] for a in explicit]
        data = bytearray(b"\xee" * max(a[".offset"] + a[".size"] for a in explicit))
        for argument, (letter, value) in zip(explicit, values):
            assert struct.calcsize(letter) == argument[".size"], (argument, letter)
            struct.pack_into(f"<{letter}", data, argument[".offset"], value)
        return data.hex()


def metadata(image: bytes) -> dict:
    for section in elffile.ELFFile(io.BytesIO(image)).iter_sections():
        for note in section.iter_notes() if section["sh_type"] == "SHT_NOTE" else ():
            if note["n_name"] == "AMDGPU":
                found = msgpack.unpackb(note["n_descdata"], strict_map_key=False)
                assert found["amdhsa.version"][0] == 1
                return found
    raise AssertionError("the image has no AMDGPU metadata")


@pytest.fixture
def stub(library, monkeypatch):
    yield from stand_in(library, monkeypatch)


@pytest.fixture
def old_stub(old_library, monkeypatch):
    yield from stand_in(old_library, monkeypatch)


def stand_in(library: pathlib.Path, monkeypatch):
    found = Stub(library)
    found.reset(2)
    rocm._chip_of.cache_clear()
    rocm._pages_host_memory.cache_clear()
    hip.library.cache_clear()
    monkeypatch.setattr(hip, "candidates", lambda: iter([str(library)]))
    monkeypatch.setenv("FLYDSL_RUNTIME_KIND", "rocm")
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx942")
    yield found
    hip.library.cache_clear()
    rocm._chip_of.cache_clear()
    rocm._pages_host_memory.cache_clear()


def on_device(device: int, address: int = 0x7F0000000000, shape: tuple = (64,)) -> MemRefJitArg:
    strides = tuple(int(np.prod(shape[i + 1 :])) for i in range(len(shape)))
    return MemRefJitArg(HostArray(address, shape, strides, "f32", 4, device, None), dynamic_layout=True)


def make_fill():
    """Return a fresh jit function: loaded modules belong to its artifacts."""

    @flyc.kernel
    def fill_kernel(out: fx.Tensor, v: fx.Float32):
        out[fx.thread_idx.x] = v

    @flyc.jit
    def fill(out: fx.Tensor, v: fx.Float32, n: fx.Int32, stream: fx.Stream = fx.Stream(None)):
        fill_kernel(out, v).launch(grid=(n, 2), block=(64,), stream=stream)

    return fill


# --- kernarg bytes ---------------------------------------------------------------------------------------------------


def make_all_kinds():
    @flyc.kernel
    def all_kinds_kernel(
        a: fx.Int8,
        m: fx.Tensor,
        b: fx.Int64,
        c: fx.Boolean,
        f: fx.Float32,
        p: fx.Pointer,
        h: fx.Float16,
        u: fx.Uint32,
        d: fx.Float64,
    ):
        if c:
            m[0, 0] = (
                f
                + fx.Float32(h)
                + fx.Float32(d)
                + fx.Float32(a)
                + fx.Float32(b)
                + fx.Float32(u)
                + fx.make_view(p, fx.make_layout(4, 1))[0]
            )

    @flyc.jit
    def all_kinds(
        a: fx.Int8,
        m: fx.Tensor,
        b: fx.Int64,
        c: fx.Boolean,
        f: fx.Float32,
        p: fx.Pointer,
        h: fx.Float16,
        u: fx.Uint32,
        d: fx.Float64,
    ):
        all_kinds_kernel(a, m, b, c, f, p, h, u, d).launch(grid=(3,), block=(64,))

    return all_kinds


def kernel_level_values(values: dict) -> list[tuple[str, object]]:
    """The machine arguments of `all_kinds_kernel`: the address and the dynamic parts of a tensor, then each scalar."""
    return [
        ("b", values["a"]),
        ("Q", values["m"]), ("i", values["rows"]), ("i", values["cols"]), ("q", values["stride"]),
        ("q", values["b"]), ("b", values["c"]), ("f", values["f"]), ("Q", values["p"]), ("e", values["h"]),
        ("I", values["u"]), ("d", values["d"]),
    ]  # fmt: skip


@pytest.mark.parametrize("arch", ["gfx942", "gfx1100", "gfx1201"])
@pytest.mark.parametrize("sign", [1, -1])
def test_kernarg_bytes_are_where_the_code_object_wants_them(stub, monkeypatch, arch, sign):
    monkeypatch.setenv("FLYDSL_GPU_ARCH", arch)
    values = {
        "a": sign * 5,
        "m": 0x7ABC12345600,
        "rows": 7,
        "cols": 9,
        "stride": 9,
        "b": sign * (2**40 + 3),
        "c": True,
    }
    values |= {"f": sign * 1.5, "p": 0x7DEF00000040, "h": sign * 0.25, "u": 2**32 - 7, "d": sign * 1e300}
    tensor = on_device(0, values["m"], (7, 9))
    make_all_kinds()(
        values["a"], tensor, values["b"], values["c"], values["f"], flyc.from_c_void_p(fx.Float32, values["p"]), values["h"],
        values["u"], values["d"],
    )  # fmt: skip
    (launch,) = stub.launches
    assert launch["kernarg"] == stub.expected(launch["kernel"], kernel_level_values(values))
    assert launch["grid"] == "3,1,1" and launch["block"] == "64,1,1"


def test_the_fast_path_packs_the_same_bytes(stub):
    fill = make_fill()
    for value in (2.0, 3.0, 4.0):
        fill(on_device(0), value, 5)
    assert [x["kernarg"] for x in stub.launches] == [
        stub.expected("fill_kernel_0", [("Q", 0x7F0000000000), ("i", 64), ("f", v)]) for v in (2.0, 3.0, 4.0)
    ]
    assert {x["grid"] for x in stub.launches} == {"5,2,1"}
    assert len(stub.named("hipModuleLoadData")) == len(stub.named("hipModuleGetFunction")) == 1


def test_numbers_converted_on_the_host(stub):
    """Arithmetic around a launch has the types of the IR: an integer as a float is passed as one, f32 is rounded."""

    @flyc.kernel
    def convert_kernel(
        out: fx.Tensor, a: fx.Float32, b: fx.Float16, c: fx.Int32, d: fx.Float64, e: fx.Float32, u: fx.Float64
    ):
        out[fx.thread_idx.x] = a + fx.Float32(b) + fx.Float32(c) + fx.Float32(d) + e + fx.Float32(u)

    @flyc.jit
    def convert(out: fx.Tensor, n: fx.Int32, f: fx.Float32, u: fx.Uint32):
        third = f / fx.Float32(3.0)
        convert_kernel(out, fx.Float32(n), fx.Float16(n), fx.Int32(f), fx.Float64(third), f / (f - f), fx.Float64(u)).launch(
            grid=(1,), block=(64,)
        )

    for _ in range(2):
        convert(on_device(0), -3, 2.5, 2**32 - 5)
    third = float(np.float32(2.5) / np.float32(3.0))
    values = [("f", -3.0), ("e", -3.0), ("i", 2), ("d", third), ("f", float("inf")), ("d", 2.0**32 - 5)]
    expected = stub.expected("convert_kernel_0", [("Q", 0x7F0000000000), ("i", 64), *values])
    assert [x["kernarg"] for x in stub.launches] == [expected] * 2


def test_small_floats_are_passed_as_their_bits(stub):
    @flyc.kernel
    def small_kernel(out: fx.Tensor, a: fx.BFloat16, b: fx.Float8E5M2, c: fx.Float8E4M3FNUZ, d: fx.BFloat16):
        out[fx.thread_idx.x] = fx.Float32(a) + fx.Float32(b) + fx.Float32(c) + fx.Float32(d)

    @flyc.jit
    def small(
        out: fx.Tensor, a: fx.BFloat16, b: fx.Float8E5M2, c: fx.Float8E4M3FNUZ, n: fx.Int32
    ):
        small_kernel(out, a, b, c, fx.BFloat16(n)).launch(grid=(1,), block=(64,))

    numbers = (3.14159, -1.003906251, 1.01171875, 1e39, float("nan"))  # rounded up, down, to even, past the range
    for number in numbers:
        small(on_device(0), number, 3.0, -2.0, 258)
    for launch, number in zip(stub.launches, numbers):
        with np.errstate(over="ignore"):
            bits = np.array(number).astype(ml_dtypes.bfloat16).view(np.uint16)
        fp8 = np.array(3.0).astype(ml_dtypes.float8_e5m2).view(np.uint8)
        fnuz = np.array(-2.0).astype(ml_dtypes.float8_e4m3fnuz).view(np.uint8)
        last = np.array(258.0).astype(ml_dtypes.bfloat16).view(np.uint16)
        values = [("Q", 0x7F0000000000), ("i", 64), ("H", bits), ("B", fp8), ("B", fnuz), ("H", last)]
        assert launch["kernarg"] == stub.expected("small_kernel_0", values), number


def test_unsigned_numbers_after_signed_ones(stub):
    """One packer serves all values of a kernel's types."""

    @flyc.kernel
    def numbers_kernel(out: fx.Tensor, u: fx.Uint32, w: fx.Uint64, i: fx.Int32):
        out[fx.thread_idx.x] = fx.Float32(u) + fx.Float32(w) + fx.Float32(i)

    @flyc.jit
    def numbers(out: fx.Tensor, u: fx.Uint32, w: fx.Uint64, i: fx.Int32):
        numbers_kernel(out, u, w, i).launch(grid=(1,), block=(64,))

    given = [(1, 2, -3), (2**32 - 1, 2**64 - 2, -(2**31)), (5, 6, 7)]
    for values in given:
        numbers(on_device(0), *values)
    expected = [[("Q", 0x7F0000000000), ("i", 64), ("I", u), ("Q", w), ("i", i)] for u, w, i in given]
    assert [x["kernarg"] for x in stub.launches] == [stub.expected("numbers_kernel_0", e) for e in expected]


def test_threads_do_not_share_kernarg_memory(stub):
    """The stub reads the values while another thread is inside its launch."""
    fill = make_fill()
    fill(on_device(0), 0.0, 1)
    errors = []

    def work(first: int) -> None:
        try:
            for i in range(50):
                fill(on_device(0), float(first + i), 1)
        except Exception as e:
            errors.append(e)

    threads = [threading.Thread(target=work, args=(100 * k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    given = [0.0, *(float(100 * k + i) for k in range(4) for i in range(50))]
    expected = [stub.expected("fill_kernel_0", [("Q", 0x7F0000000000), ("i", 64), ("f", v)]) for v in given]
    assert not errors and sorted(x["kernarg"] for x in stub.launches) == sorted(expected)
    assert len(stub.named("hipModuleLoadData")) == 1


def test_print_buffers_are_freed_when_a_launch_fails(stub):
    @flyc.kernel
    def printing_kernel(n: fx.Int32):
        fx.printf("{}", n)

    @flyc.jit
    def printing(n: fx.Int32):
        printing_kernel(n).launch(grid=(1,), block=(64,))

    stub.lib.stub_fail(b"hipModuleLaunchKernel", 2, 0)
    with pytest.raises(HipFailed):
        printing(3)
    assert len(stub.named("hipHostMalloc")) == len(stub.named("hipHostFree")) == 1


@pytest.mark.parametrize("value", [1e300, -1e300, float("inf"), 3.5e38])
def test_floats_beyond_the_range_are_infinite(stub, value):
    make_fill()(on_device(0), value, 1)
    values = [("Q", 0x7F0000000000), ("i", 64), ("f", float("-inf") if value < 0 else float("inf"))]
    assert stub.launches[0]["kernarg"] == stub.expected("fill_kernel_0", values)


def test_numpy_memory_is_passed_by_address(stub):
    x = stub.pin(np.zeros(64, np.float32))
    make_fill()(x, 1.0, 1)
    assert stub.launches[0]["kernarg"] == stub.expected(
        "fill_kernel_0", [("Q", x.ctypes.data), ("i", 64), ("f", 1.0)]
    )


def test_compiled_functions_take_bare_addresses(stub):
    @flyc.kernel
    def copy_kernel(a: fx.Pointer, b: fx.Pointer):
        fx.make_view(b, fx.make_layout(4, 1))[0] = fx.make_view(a, fx.make_layout(4, 1))[0]

    @flyc.jit
    def copy(a: fx.Pointer, b: fx.Pointer, n: fx.Int32):
        copy_kernel(a, b).launch(grid=(n,), block=(64,))

    typed = [flyc.from_c_void_p(fx.Float32, address) for address in (0x7F0000001000, 0x7F0000002000)]
    compiled = flyc.compile(copy, *typed, 1)
    before = len(stub.launches)
    for i in range(3):
        compiled(0x7F0000003000 + i, ctypes.c_void_p(0x7F0000004000) if i == 1 else 0x7F0000004000, 2)
    compiled(*typed, 2)
    values = [(0x7F0000003000 + i, 0x7F0000004000) for i in range(3)] + [(0x7F0000001000, 0x7F0000002000)]
    expected = [stub.expected("copy_kernel_0", [("Q", a), ("Q", b)]) for a, b in values]
    assert [x["kernarg"] for x in stub.launches[before:]] == expected
    with pytest.raises(TypeError, match="FLY_"):
        compiled(1.5, 0x7F0000004000, 2)


# --- devices, streams ------------------------------------------------------------------------------------------------


def test_each_device_gets_its_module_and_the_current_one_is_restored(stub):
    fill = make_fill()
    for device in (0, 1, 1, 0, 1):
        fill(on_device(device), 1.0, 1)
    assert [x["device"] for x in stub.launches] == ["0", "1", "1", "0", "1"]
    assert stub.named("hipModuleLoadData") == ["device=0", "device=1"]
    assert stub.named("hipSetDevice") == ["1", "0", "1", "0", "1", "0"]
    assert hip.current_device() == 0


def test_current_device_is_used_where_no_tensor_says_one(stub):
    fill = make_fill()
    hip.set_device(1)
    fill(stub.pin(np.zeros(64, np.float32)), 1.0, 1)
    assert stub.launches[0]["device"] == "1"


def test_a_failed_launch_restores_the_device(stub):
    fill = make_fill()
    fill(on_device(1), 1.0, 1)
    stub.lib.stub_fail(b"hipModuleLaunchKernel", 2, 0)
    with pytest.raises(HipFailed, match=r"hipErrorOutOfMemory \(2\)"):
        fill(on_device(1), 1.0, 1)
    assert hip.current_device() == 0


def test_mixed_devices_are_refused(stub):
    @flyc.kernel
    def add_kernel(a: fx.Tensor, b: fx.Tensor):
        a[fx.thread_idx.x] = b[fx.thread_idx.x]

    @flyc.jit
    def add(a: fx.Tensor, b: fx.Tensor):
        add_kernel(a, b).launch(grid=(1,), block=(64,))

    with pytest.raises(DevicesMixed, match="a on 0, b on 1"):
        add(on_device(0), on_device(1))
    add(on_device(1), on_device(1))
    with pytest.raises(DevicesMixed):
        add(on_device(1), on_device(0))
    assert len(stub.launches) == 1


# --- memory of the host ------------------------------------------------------------------------------------------------


def make_add():
    @flyc.kernel
    def add_kernel(out: fx.Tensor, x: fx.Tensor):
        out[fx.thread_idx.x] = out[fx.thread_idx.x] + x[fx.thread_idx.x]

    @flyc.jit
    def add(out: fx.Tensor, x: fx.Tensor):
        add_kernel(out, x).launch(grid=(1,), block=(64,))

    return add


def test_a_host_array_beside_gpu_tensors_is_refused(stub):
    add, x = make_add(), np.zeros(64, np.float32)
    with pytest.raises(DevicesMixed, match="out on 1, x on the host") as caught:
        add(on_device(1), x)
    assert '`torch.from_numpy(x).to("cuda:1")`' in str(caught.value) and caught.value.code == "FLY_DEVICES_MIXED"
    add(on_device(1), on_device(1))
    with pytest.raises(DevicesMixed, match="out on the host, x on 0"):
        add(x, on_device(0))
    assert len(stub.launches) == 1 and stub.lib.stub_last_error() == 0 and hip.current_device() == 0


def test_host_tensors_of_torch_are_refused_on_every_path(stub):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from flydsl.runtime.torch_cuda.tensors import SimulatedCuda

    add = make_add()
    with SimulatedCuda(2):  # tensors that say they are on a GPU
        gpu, host = torch.zeros(64, device="cuda:0"), torch.zeros(64)
        compiled = flyc.compile(add, gpu, gpu)
        for call in (add, compiled, lambda *args: flyc.compile(add, *args)(*args)):
            for warm in range(2):
                call(gpu, gpu)
                with pytest.raises(DevicesMixed, match="out on 0, x on the host") as caught:
                    call(gpu, host)
                assert '`x.to("cuda:0")`' in str(caught.value) and "x.pin_memory()" in str(caught.value)
                with pytest.raises(HostMemory, match="`out`, `x`: memory of the host, which GPU 0 cannot read"):
                    call(host, host)
                with pytest.raises(DevicesMixed):
                    call(gpu, host.numpy())
    assert {x["device"] for x in stub.launches} == {"0"}


def test_only_host_arrays_on_a_gpu_are_refused(stub, tmp_path):
    fill, x = make_fill(), np.zeros(64, np.float32)
    hip.set_device(1)
    for call in (fill, flyc.compile(fill, x, 1.0, 1)):
        with pytest.raises(HostMemory, match="`out`: memory of the host, which GPU 1 cannot read") as caught:
            call(x, 1.0, 1)
        assert "FLYDSL_RUNTIME_KIND=sim" in str(caught.value)
    path = tmp_path / "fill.flyc"
    flyc.export(path, fill, x, 1.0, 1)
    with pytest.raises(HostMemory, match="`out`"):
        exported.load(path)(x, 1.0, 1, None)
    assert not stub.launches and stub.lib.stub_last_error() == 0


def test_each_call_is_asked_where_its_array_is(stub):
    """Pinned and pageable arrays of one form: the form does not tell which it is."""
    fill, pinned, pageable = make_fill(), stub.pin(np.zeros(64, np.float32)), np.zeros(64, np.float32)
    compiled = flyc.compile(fill, pinned, 1.0, 1)
    for call in (fill, compiled, fill, compiled):
        call(pinned, 1.0, 1)
        with pytest.raises(HostMemory):
            call(pageable, 1.0, 1)
    values = [("Q", pinned.ctypes.data), ("i", 64), ("f", 1.0)]
    assert [x["kernarg"] for x in stub.launches] == [stub.expected("fill_kernel_0", values)] * 4


def test_the_end_of_an_array_counts_too(stub):
    whole = np.zeros(128, np.float32)
    stub.pin(whole[:96])
    fill = make_fill()
    fill(whole[32:96], 1.0, 1)
    with pytest.raises(HostMemory):
        fill(whole[64:], 1.0, 1)


def test_pinned_and_empty_arrays_stand_beside_gpu_tensors(stub):
    add = make_add()
    for x in (stub.pin(np.zeros(64, np.float32)), np.zeros(0, np.float32)):
        for _ in range(2):
            add(on_device(1), x)
    assert [x["device"] for x in stub.launches] == ["1"] * 4


def test_devices_that_page_host_memory_take_all_of_it(stub):
    stub.lib.stub_pages(1, 1)
    add, x = make_add(), np.zeros(64, np.float32)
    add(on_device(1), x)
    with pytest.raises(DevicesMixed):
        add(on_device(0), x)
    add(on_device(1), x)
    hip.set_device(1)
    add(x, x)
    assert [x["device"] for x in stub.launches] == ["1"] * 3
    hip.set_device(0)
    with pytest.raises(HostMemory):
        add(x, x)


def test_calls_with_host_arrays_are_fast_where_every_device_pages(stub):
    for device in range(2):
        stub.lib.stub_pages(device, 1)
    fill, x = make_fill(), np.zeros(64, np.float32)
    fill(x, 1.0, 1)
    before = len(stub.calls)
    fill._call_slowly = None
    fill(x, 1.0, 1)
    names = [name for name, _ in stub.calls[before:]]
    assert names == ["hipModuleLaunchKernel"]


def test_host_tensors_are_refused_on_machines_of_several_chips(stub, monkeypatch):
    """There the current device stands in for arrays without one, and its code may be known already."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from flydsl.runtime.torch_cuda.tensors import SimulatedCuda

    stub.reset(2, ("gfx942", "gfx1100"))
    rocm._chip_of.cache_clear()
    rocm._pages_host_memory.cache_clear()
    monkeypatch.delenv("FLYDSL_GPU_ARCH")
    fill = make_fill()
    with SimulatedCuda(2):
        for device in (0, 1, 0):
            fill(torch.zeros(64, device=f"cuda:{device}"), 1.0, 1)
        with pytest.raises(HostMemory):
            fill(torch.zeros(64), 1.0, 1)
    assert [x["device"] for x in stub.launches] == ["0", "1", "0"]


# --- FLYDSL_RUNTIME_KIND=auto on a machine with GPUs -------------------------------------------------------------------


@pytest.fixture
def auto(stub, monkeypatch):
    monkeypatch.setenv("FLYDSL_RUNTIME_KIND", "auto")
    monkeypatch.setattr(kinds, "_has_amd_gpu", lambda: True)
    monkeypatch.setattr(logger, "_said", set())
    return stub


def test_calls_with_nothing_but_host_memory_are_simulated(auto, caplog):
    fill, x = make_fill(), np.zeros(64, np.float32)
    with caplog.at_level("WARNING", "flydsl"):
        for value in (1.0, 2.0):
            fill(x, value, 1)
            assert (x == value).all()
    assert sum("it runs in the simulator" in r.message for r in caplog.records) == 1
    assert not auto.launches
    fill(on_device(1), 1.0, 1)
    assert [x["device"] for x in auto.launches] == ["1"]
    with pytest.raises(DevicesMixed):
        make_add()(on_device(0), x)


def test_one_function_runs_on_both(auto):
    """The forms of host and GPU tensors of torch are one; the fast path must not take one for the other."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from flydsl.runtime.torch_cuda.tensors import SimulatedCuda

    fill = make_fill()
    with SimulatedCuda(2):
        gpu, host = torch.zeros(64, device="cuda:1"), torch.zeros(64)
        compiled = flyc.compile(fill, host, 1.0, 1)
        for number, call in enumerate((fill, compiled, fill, compiled), 1):
            for value in (number, -number):
                call(host, float(value), 1, None)
                assert (host == value).all()
                call(gpu, float(value), 1, None)
    values = [[("Q", gpu.data_ptr()), ("i", 64), ("f", float(v))] for n in range(1, 5) for v in (n, -n)]
    assert [x["kernarg"] for x in auto.launches] == [auto.expected("fill_kernel_0", v) for v in values]
    fill._call_slowly = compiled._call_slowly = None
    with SimulatedCuda(2):
        for call in (fill, compiled):
            call(host, 1.0, 1, None)


def test_exported_files_and_tuning_choose_alike(auto, tmp_path, monkeypatch):
    from flydsl.autotune import Config, autotune

    fill, x = make_fill(), np.zeros(64, np.float32)
    path = tmp_path / "fill.flyc"
    flyc.export(path, fill, x, 1.0, 1)
    exported.load(path)(x, 3.0, 1, None)
    assert (x == 3).all()
    monkeypatch.setenv("FLYDSL_AUTOTUNE_CACHE_DIR", str(tmp_path))
    tuned = autotune([Config(waves_per_eu=1), Config(waves_per_eu=2)], key=["n"])(fill)
    tuned(x, 4.0, 1)
    assert (x == 4).all() and not auto.calls  # by the static cost: nothing is timed
    (key,) = tuned.cache
    assert any(part.startswith("_device_sim:") for part in key)


def test_devices_that_page_host_memory_run_it_under_auto(auto):
    for device in range(2):
        auto.lib.stub_pages(device, 1)
    make_fill()(np.zeros(64, np.float32), 1.0, 1)
    assert len(auto.launches) == 1


# --- devices of several chips ----------------------------------------------------------------------------------------

MACHINE = {"gfx942": 0x4C, "gfx1100": 0x41, "gfx1201": 0x4E, "gfx950": 0x4F}  # EF_AMDGPU_MACH of e_flags (AMDGPU usage of LLVM)


def machine(image: bytes) -> int:
    return elffile.ELFFile(io.BytesIO(image))["e_flags"] & 0xFF


@pytest.fixture
def mixed(stub, monkeypatch):
    """gfx942 and gfx1100 in one machine, and nothing in the environment."""
    stub.reset(3, ("gfx942:sramecc+:xnack-", "gfx1100", "gfx942:sramecc+:xnack-"))
    for name in ("ARCH", "FLYDSL_GPU_ARCH", "HSA_OVERRIDE_GFX_VERSION"):
        monkeypatch.delenv(name, raising=False)
    return stub


def test_a_call_compiles_for_the_device_of_its_tensors(mixed):
    fill = make_fill()
    for device in (1, 0, 1, 0, 2):
        fill(on_device(device), 2.0, 1)
    assert [x["device"] for x in mixed.launches] == ["1", "0", "1", "0", "2"]
    assert mixed.named("hipModuleLoadData") == ["device=1", "device=0", "device=2"]
    assert [machine(image) for image in mixed.images] == [MACHINE["gfx1100"], MACHINE["gfx942"], MACHINE["gfx942"]]
    assert fill.cache_info()[1:3] == (2, 2)  # two chips, two artifacts; device 2 shares that of device 0


def test_the_second_call_on_each_device_is_fast(mixed):
    fill = make_fill()
    for device in (0, 1):
        fill(on_device(device), 1.0, 1)
    fill._call_slowly = None
    before = len(mixed.calls)
    for device in (1, 0, 1):
        fill(on_device(device), 1.0, 1)
    names = [name for name, _ in mixed.calls[before:]]
    assert set(names) == {"hipSetDevice", "hipModuleLaunchKernel"}
    assert [x["device"] for x in mixed.launches[-3:]] == ["1", "0", "1"]


def test_without_gpu_tensors_the_current_device_decides(mixed):
    fill, x = make_fill(), mixed.pin(np.zeros(64, np.float32))
    for device in (0, 1, 1, 0, 1):
        hip.set_device(device)
        fill(x, 1.0, 1)
    assert [x["device"] for x in mixed.launches] == ["0", "1", "1", "0", "1"]
    assert [machine(image) for image in mixed.images] == [MACHINE["gfx942"], MACHINE["gfx1100"]]


def test_helpers_see_the_chip_that_is_compiled_for(mixed):
    seen = []

    @flyc.kernel
    def ask_kernel(out: fx.Tensor):
        seen.append(fx.rocdl.get_rocm_arch())
        out[fx.thread_idx.x] = 1.0

    @flyc.jit
    def ask(out: fx.Tensor):
        ask_kernel(out).launch(grid=(1,), block=(64,))

    ask(on_device(1))
    ask(on_device(0))
    assert seen == ["gfx1100", "gfx942"]


@pytest.mark.parametrize("variable", ["ARCH", "FLYDSL_GPU_ARCH"])
def test_the_environment_wins_over_the_device(mixed, monkeypatch, variable):
    monkeypatch.setenv(variable, "gfx1100")
    fill = make_fill()
    fill(on_device(1), 1.0, 1)
    with pytest.raises(DeviceChip, match="compiled for gfx1100, but device 0 is gfx942"):
        fill(on_device(0), 1.0, 1)
    assert [machine(image) for image in mixed.images] == [MACHINE["gfx1100"]]
    monkeypatch.delenv(variable)
    fill(on_device(0), 1.0, 1)
    assert [x["device"] for x in mixed.launches] == ["1", "0"]


def test_a_compiled_function_is_for_one_chip(mixed):
    compiled = flyc.compile(make_fill(), on_device(1), 1.0, 1, None)
    assert compiled.artifact.arch == "gfx1100"
    compiled(on_device(1), 2.0, 1, None)
    with pytest.raises(DeviceChip, match="gfx1100.*device 0 is gfx942"):
        compiled(on_device(0), 2.0, 1, None)
    with pytest.raises(DeviceChip):
        compiled(on_device(2), 2.0, 1, None)
    compiled(on_device(1), 2.0, 1, None)
    assert [x["device"] for x in mixed.launches] == ["1"] * 3


def test_compiled_functions_run_on_all_devices_of_their_chip(mixed):
    compiled = flyc.compile(make_fill(), on_device(0), 1.0, 1, None)
    for device in (2, 0, 2):
        compiled(on_device(device), 2.0, 1, None)
    assert [x["device"] for x in mixed.launches] == ["0", "2", "0", "2"]
    assert len(mixed.images) == 2


def test_exported_files_are_launched_with_the_code_for_the_device(mixed, tmp_path):
    path = tmp_path / "fill.flyc"
    flyc.export(path, make_fill(), on_device(0), 1.0, 1, None, archs=("gfx942", "gfx1100"))
    run = exported.load(path)
    run(on_device(1).array, 1.0, 1, None)
    run(on_device(0).array, 1.0, 1, None)
    assert [machine(image) for image in mixed.images] == [MACHINE["gfx1100"], MACHINE["gfx942"]]
    mixed.reset(1, ("gfx1201",))
    rocm._chip_of.cache_clear()
    rocm._pages_host_memory.cache_clear()
    with pytest.raises(ExportedArch, match="gfx1201"):
        run(on_device(0).array, 1.0, 1, None)


def test_tuning_results_are_kept_per_chip(mixed, monkeypatch, tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from flydsl.autotune import Config, autotune
    from flydsl.runtime.torch_cuda.tensors import SimulatedCuda

    monkeypatch.setenv("FLYDSL_AUTOTUNE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(torch.cuda, "device", lambda index: contextlib.nullcontext())
    tuned = autotune([Config(waves_per_eu=1)], key=["n"], do_bench=lambda call, warmup, rep: call() or 1.0)(make_fill())
    with SimulatedCuda(3):
        for device in (0, 1, 2):
            tuned(torch.zeros(64, device=f"cuda:{device}"), 1.0, 1)
    chips = [[part for part in key if part.startswith("_device_")] for key in tuned.cache]
    assert chips == [["_device_rocm:gfx942"], ["_device_rocm:gfx1100"]]


def test_the_driver_names_the_chip_where_hip_does_not(old_stub, monkeypatch, tmp_path):
    """By the place on the bus: HIP shows the GPUs in another order than the driver does."""
    nodes = {0: (0, 0), 2: (110000, 0x0300), 10: (90402, 0x8328)}  # node: gfx_target_version, location_id
    for number, (version, place) in nodes.items():
        (tmp_path / str(number)).mkdir()
        text = f"cpu_cores_count 0\ngfx_target_version {version}\nlocation_id {place}\ndomain 0\nunique_id {number}\n"
        (tmp_path / str(number) / "properties").write_text(text)
    found = driver.driver_gpus(str(tmp_path))
    assert [(g.chip, g.bus) for g in found] == [("gfx1100", "0000:03:00.0"), ("gfx942", "0000:83:05.0")]
    old_stub.reset(2, buses=("0000:83:05.0", "0000:03:00.0"))
    monkeypatch.delenv("FLYDSL_GPU_ARCH")
    monkeypatch.setattr(rocm, "driver_gpus", lambda: found)
    fill = make_fill()
    fill(on_device(0), 1.0, 1)
    fill(on_device(1), 1.0, 1)
    assert [machine(image) for image in old_stub.images] == [MACHINE["gfx942"], MACHINE["gfx1100"]]


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, "abc"),
        ({"HIP_VISIBLE_DEVICES": "2,0"}, "ca"),
        ({"ROCR_VISIBLE_DEVICES": "1,2", "HIP_VISIBLE_DEVICES": "1"}, "c"),
        ({"ROCR_VISIBLE_DEVICES": "GPU-00000000000000ff, 0"}, "ba"),
        ({"CUDA_VISIBLE_DEVICES": "1,-1,0"}, "b"),
        ({"HIP_VISIBLE_DEVICES": "", "CUDA_VISIBLE_DEVICES": "1"}, ""),
    ],
)
def test_visible_devices(monkeypatch, environment, expected):
    for name in ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    gpus = [driver.DriverGpu(chip, "", unique) for chip, unique in (("a", "1"), ("b", "00000000000000ff"), ("c", "3"))]
    assert "".join(g.chip for g in driver.visible(gpus)) == expected


# --- clusters --------------------------------------------------------------------------------------------------------


def make_clusters(size: tuple):
    @flyc.kernel
    def clustered_kernel(out: fx.Tensor, v: fx.Float32):
        out[fx.thread_idx.x] = v

    @flyc.jit
    def clustered(out: fx.Tensor, v: fx.Float32, n: fx.Int32, stream: fx.Stream = fx.Stream(None)):
        clustered_kernel(out, v).launch(grid=(n, 2), block=(64,), cluster=size, smem=256, stream=stream)

    return clustered


def test_cluster_sizes_reach_the_driver(stub, monkeypatch):
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx1250")
    clustered = make_clusters((2, 2, 1))
    for value in (1.0, 2.0):
        clustered(on_device(1), value, 4, 0x99)
    assert not stub.launches
    first, second = stub.launched_by("hipDrvLaunchKernelEx")
    assert second["attribute4"] == "2,2,1" and second["grid"] == "4,2,1" and second["block"] == "64,1,1"
    assert second["lds"] == "256" and second["stream"] == "0x99" and second["device"] == "1"
    values = [("Q", 0x7F0000000000), ("i", 64), ("f", 2.0)]
    assert second["kernarg"] == stub.expected("clustered_kernel_0", values) != first["kernarg"]
    assert hip.current_device() == 0


def test_a_cluster_of_one_is_an_ordinary_launch(stub, monkeypatch):
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx1250")
    make_clusters((1, 1, 1))(on_device(0), 1.0, 4)
    assert len(stub.launches) == 1 and not stub.named("hipDrvLaunchKernelEx")


def test_a_library_without_cluster_launches_says_so(old_stub, monkeypatch):
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx1250")
    with pytest.raises(ClusterLaunchUnsupported, match=r"(?s)\(2, 1, 1\).*hipDrvLaunchKernelEx"):
        make_clusters((2, 1, 1))(on_device(0), 1.0, 4)
    assert not old_stub.launches


def test_failed_cluster_launches_name_the_call(stub, monkeypatch):
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx1250")
    stub.lib.stub_fail(b"hipDrvLaunchKernelEx", 2, 0)
    with pytest.raises(HipFailed, match="hipDrvLaunchKernelEx failed: hipErrorOutOfMemory") as caught:
        make_clusters((2, 1, 1))(on_device(0), 1.0, 4)
    assert caught.value.span.file == __file__  # where the user calls, not a generated function


# --- streams ---------------------------------------------------------------------------------------------------------


class TorchLikeStream:
    cuda_stream = 0x5150


@pytest.mark.parametrize(
    ("stream", "handle"), [(None, "0"), (0x1234, "0x1234"), (TorchLikeStream(), "0x5150"), (fx.Stream(7), "0x7")]
)
def test_streams(stub, stream, handle):
    fill = make_fill()
    fill(on_device(0), 1.0, 1, stream)
    fill(on_device(0), 1.0, 1, stream)
    assert [x["stream"] for x in stub.launches] == [handle] * 2
    assert not stub.named("hipStreamSynchronize") and not stub.named(
        "hipDeviceSynchronize"
    )  # launches are asynchronous


def test_a_warm_launch_only_launches(stub):
    """What graph capture needs: no allocation, no synchronisation, no module load."""
    fill = make_fill()
    fill(on_device(0), 1.0, 1)
    before = len(stub.calls)
    fill(on_device(0), 2.0, 1)
    assert [name for name, _ in stub.calls[before:]] == ["hipModuleLaunchKernel"]


def test_torch_tensors_choose_the_device(stub):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from flydsl.runtime.torch_cuda.tensors import SimulatedCuda

    fill = make_fill()
    with SimulatedCuda(2):  # tensors that say they are on a GPU
        for device in ("cuda:1", "cuda:0", "cuda:1"):
            fill(torch.zeros(64, device=device), 1.0, 1)
    assert [x["device"] for x in stub.launches] == ["1", "0", "1"]


def test_empty_grid_launches_nothing(stub):
    make_fill()(on_device(0), 1.0, 0)
    assert not stub.launches


def test_dynamic_lds(stub):
    @flyc.kernel
    def lds_kernel(out: fx.Tensor):
        out[fx.thread_idx.x] = 1.0

    @flyc.jit
    def run(out: fx.Tensor, smem: fx.Int32):
        lds_kernel(out).launch(grid=(1,), block=(64,), smem=smem)

    with env.override(ARCH="gfx950"):  # 160 KiB
        run(on_device(0), 4096)
        run(on_device(0), 100_000)
        with pytest.raises(SharedCapacity, match="163841 bytes of LDS are allocated, but a workgroup of gfx950 has 163840"):
            run(on_device(0), 163_841)
    assert [x["lds"] for x in stub.launches] == ["4096", "100000"]
    assert stub.named("hipFuncSetAttribute") == ["8 100000"]  # only what is above the default limit


def test_a_block_that_is_larger_than_the_code_allows(stub):
    @flyc.kernel
    def ones(out: fx.Tensor):
        out[fx.thread_idx.x] = 1.0

    @flyc.jit
    def run(out: fx.Tensor, n: fx.Int32):
        ones(out).launch(grid=1, block=n)

    run(on_device(0), 256)
    with pytest.raises(BlockLimit, match="257 threads, but its code was generated for at most 256"):
        run(on_device(0), 257)
    assert [x["block"] for x in stub.launches] == ["256,1,1"]


# --- failures --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["hipModuleLoadData", "hipModuleGetFunction", "hipModuleLaunchKernel"])
def test_failures_name_the_call_and_the_reason(stub, call):
    fill = make_fill()
    stub.lib.stub_fail(call.encode(), 209, 0)
    with pytest.raises(HipFailed) as caught:
        fill(on_device(0), 1.0, 1)
    text = str(caught.value)
    assert call in text and "hipErrorNoBinaryForGpu (209)" in text and "no kernel image is available" in text
    stub.lib.stub_fail(b"", 0, 0)
    fill(on_device(0), 1.0, 1)  # nothing broken was kept
    assert len(stub.named("hipModuleLaunchKernel")) >= 1


def test_missing_library_says_where_it_looked(monkeypatch):
    hip.library.cache_clear()
    monkeypatch.setattr(hip, "candidates", lambda: iter(["/nowhere/libamdhip64.so"]))
    try:
        with pytest.raises(MissingHip, match="/nowhere/libamdhip64.so"):
            hip.library()
        assert hip.device_count() == 0
    finally:
        hip.library.cache_clear()


@pytest.mark.parametrize("content", [b"not a library", None])
def test_a_file_that_is_no_hip_library_is_named_with_what_is_wrong(monkeypatch, tmp_path, content):
    """Bytes that no loader takes, and a library without HIP's functions; one that works, elsewhere, is taken."""
    path = tmp_path / "libamdhip64.so"
    if content is None:
        if CC is None:
            pytest.skip("no C compiler: cc, gcc or clang builds the library")
        (tmp_path / "empty.c").write_text("int nothing_of_hip(void) { return 0; }")
        subprocess.run([CC, "-shared", "-fPIC", "-o", str(path), str(tmp_path / "empty.c")], check=True)
    else:
        path.write_bytes(content)
    hip.library.cache_clear()
    monkeypatch.setattr(hip, "candidates", lambda: iter(["/nowhere/libamdhip64.so", str(path)]))
    monkeypatch.setenv("FLYDSL_RUNTIME_KIND", "rocm")
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx942")
    try:
        with pytest.raises(HipUnusable) as caught:
            make_fill()(on_device(0), 1.0, 1)
        assert caught.value.library == str(path) and caught.value.code == "FLY_HIP_LIBRARY"
        assert ("hipInit" if content is None else str(path)) in caught.value.problem
        assert hip.device_count() == 0
    finally:
        hip.library.cache_clear()


def test_a_hip_library_that_works_is_found_behind_one_that_does_not(monkeypatch, tmp_path, library):
    broken = tmp_path / "libamdhip64.so"
    broken.write_bytes(b"not a library")
    hip.library.cache_clear()
    monkeypatch.setattr(hip, "candidates", lambda: iter([str(broken), str(library)]))
    try:
        assert hip.library()._name == str(library)
    finally:
        hip.library.cache_clear()


def test_candidates(monkeypatch, tmp_path):
    (tmp_path / "torch" / "lib").mkdir(parents=True)
    (tmp_path / "torch" / "lib" / "libamdhip64.so").touch()
    (tmp_path / "_rocm_sdk_core" / "lib").mkdir(parents=True)
    (tmp_path / "_rocm_sdk_core" / "lib" / "libamdhip64.so.7").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("ROCM_PATH", "/my/rocm")
    found = list(hip.candidates())
    assert (
        found[0] == "libamdhip64.so.7"
    )  # one that is loaded already (torch's) comes first: two copies would not share streams
    order = [
        "/my/rocm/lib/libamdhip64.so",
        "/opt/rocm/lib/libamdhip64.so",
        str(tmp_path / "torch" / "lib" / "libamdhip64.so"),
    ]
    assert [f for f in found if f in order] == order
    assert str(tmp_path / "_rocm_sdk_core" / "lib" / "libamdhip64.so.7") in found


def test_device_count(stub):
    assert hip.device_count() == 2
    stub.reset(0)
    assert hip.device_count() == 0
