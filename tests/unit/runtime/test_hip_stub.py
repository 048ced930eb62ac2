"""The HIP driver against a stub library built here: which calls it makes, and the kernarg bytes of launches.

What a driver copies into kernarg memory is checked against the code object itself: pyelftools finds the metadata
note in the very image that
was loaded, msgpack reads offsets and sizes, and the expected bytes are packed here from the values of the call.
"""

import ctypes
import io
import pathlib
import shutil
import struct
import subprocess

import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.compiler.jit_argument import MemRefJitArg
from flydsl.diag import DevicesMixed, HipFailed, MissingHip
from flydsl.runtime.host_arrays import HostArray
from flydsl.targets.rocm import hip

msgpack = pytest.importorskip("msgpack", reason="msgpack is not installed")
elffile = pytest.importorskip("elftools.elf.elffile", reason="pyelftools is not installed")

CC = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
SOURCE = pathlib.Path(__file__).with_name("hip_stub.c")
LOADED = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64)


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    if CC is None:
        pytest.skip("no C compiler: cc, gcc or clang builds the stub of libamdhip64")
    path = tmp_path_factory.mktemp("hip") / "libamdhip64.so"
    subprocess.run([CC, "-shared", "-fPIC", "-O1", "-w", "-o", str(path), str(SOURCE)], check=True)
    return path


class Stub:
    """The stub library; `layouts` holds the metadata of the kernels in the images that were loaded."""

    def __init__(self, path: pathlib.Path):
        self.lib = ctypes.CDLL(str(path))
        self.lib.stub_log.restype = ctypes.c_char_p
        self.layouts: dict[str, dict] = {}
        self.callback = LOADED(self.loaded)

    def reset(self, devices: int) -> None:
        self.layouts.clear()
        self.lib.stub_reset(devices, self.callback)

    def loaded(self, module: int, image: int, size: int) -> None:
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
        return [
            {"kernel": r.split()[0], **dict(p.split("=", 1) for p in r.split()[1:])}
            for r in self.named("hipModuleLaunchKernel")
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
    found = Stub(library)
    found.reset(2)
    hip.library.cache_clear()
    monkeypatch.setattr(hip, "candidates", lambda: iter([str(library)]))
    monkeypatch.setenv("FLYDSL_RUNTIME_KIND", "rocm")
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx942")
    yield found
    hip.library.cache_clear()


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


def test_numpy_memory_is_passed_by_address(stub):
    x = np.zeros(64, np.float32)
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
    fill(np.zeros(64, np.float32), 1.0, 1)
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

    run(on_device(0), 4096)
    run(on_device(0), 100_000)
    assert [x["lds"] for x in stub.launches] == ["4096", "100000"]
    assert stub.named("hipFuncSetAttribute") == ["8 100000"]  # only what is above the default limit


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
