"""torch's `cuda` device without a GPU: where tensors are, what `torch.cuda` answers, addresses that kernels get as
integers.
"""

import threading

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (pip install torch)")

import flydsl.compiler as flyc  # noqa: E402
import flydsl.expr as fx  # noqa: E402
from flydsl.diag import (  # noqa: E402
    DevicesMixed,
    FlyError,
    SimulatedCudaCapture,
    SimulatedCudaDevice,
    SimulatedCudaForeign,
)
from flydsl.runtime.torch_cuda import simulated_cuda  # noqa: E402


@pytest.fixture
def cuda(monkeypatch):
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx942")
    with simulated_cuda(devices=2) as mode:
        yield mode


@flyc.kernel
def add_one_kernel(address: fx.Int64, n: fx.Int32):
    i = fx.block_idx.x * 64 + fx.thread_idx.x
    if i < n:
        pointer = fx.inttoptr(fx.PointerType.get(fx.Float32.ir_type, fx.AddressSpace.Global), address)
        view = fx.make_view(pointer, fx.make_layout(1 << 20, 1))
        view[i] = view[i] + 1.0


@flyc.jit
def add_one(address: fx.Int64, n: fx.Int32):
    add_one_kernel(address, n).launch(grid=((n + 63) // 64,), block=(64,))


@flyc.kernel
def double_kernel(x: fx.Tensor, n: fx.Int32):
    i = fx.block_idx.x * 64 + fx.thread_idx.x
    if i < n:
        x[i] = x[i] * 2.0


@flyc.jit
def double(x: fx.Tensor, n: fx.Int32, stream: fx.Stream = fx.Stream(None)):
    double_kernel(x, n).launch(grid=((n + 63) // 64,), block=(64,), stream=stream)


# --- where tensors are -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.randn(4, 3, device="cuda"),
        lambda: torch.zeros(4, device=torch.device("cuda")),
        lambda: torch.zeros(4, device=torch.device("cuda:0")),
        lambda: torch.zeros(4, device=0),
        lambda: torch.zeros(4).cuda(),
        lambda: torch.zeros(4).cuda(0),
        lambda: torch.zeros(4).to("cuda"),
        lambda: torch.zeros(4).to("cuda:0", torch.float16),
        lambda: torch.zeros(4).to(device="cuda", dtype=torch.bfloat16),
        lambda: torch.zeros(4).to(torch.zeros(1, device="cuda")),
        lambda: torch.tensor([1, 2], device="cuda"),
        lambda: torch.as_tensor([1, 2], device="cuda"),
        lambda: torch.empty_like(torch.zeros(3), device="cuda"),
        lambda: torch.empty_like(torch.zeros(3, device="cuda")),
        lambda: torch.zeros(3, device="cuda").new_ones(2),
        lambda: torch.zeros(3, device="cuda") + 1,
        lambda: torch.zeros(3, device="cuda")[1:].view(2, 1).contiguous(),
        lambda: torch.split(torch.zeros(4, device="cuda"), 2)[1],
        lambda: torch.nn.functional.softmax(torch.zeros(3, device="cuda"), 0),
        lambda: torch.nn.Linear(2, 3).cuda().weight.data,
        lambda: torch.nn.Linear(2, 3, device="cuda")(torch.zeros(1, 2, device="cuda")),
        lambda: torch.randn(3, device="cuda", generator=torch.Generator(device="cuda").manual_seed(1)),
    ],
)
def test_is_on_the_gpu(cuda, make):
    tensor = make()
    assert tensor.is_cuda and not tensor.is_cpu
    assert tensor.device == torch.device("cuda", 0) and tensor.get_device() == 0
    assert torch.empty(1, device=tensor.device).is_cuda


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.zeros(4),
        lambda: torch.zeros(4, device="cpu"),
        lambda: torch.zeros(4, device="cuda").cpu(),
        lambda: torch.zeros(4, device="cuda").to("cpu"),
        lambda: torch.zeros(4).copy_(torch.ones(4, device="cuda")),
        lambda: torch.zeros(4, device="cuda").to(torch.zeros(1)),
        lambda: torch.randn(3) + 1,
    ],
)
def test_is_on_the_host(cuda, make):
    tensor = make()
    assert not tensor.is_cuda and tensor.is_cpu and tensor.device == torch.device("cpu") and tensor.get_device() == -1
    tensor.numpy()


def test_moves_copy(cuda):
    host = torch.zeros(4)
    gpu = host.cuda()
    gpu += 1
    back = gpu.cpu()
    back += 1
    assert host.tolist() == [0] * 4 and gpu.tolist() == [1] * 4 and back.tolist() == [2] * 4
    assert gpu.cuda() is gpu and gpu.to("cuda") is gpu
    shared = torch.as_tensor(host, device="cuda")
    shared += 5
    assert host.tolist() == [0] * 4


def test_autograd_functions_see_gpu_tensors(cuda):
    seen = []

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            seen.append(x.device)
            return 2 * x

        @staticmethod
        def backward(ctx, grad):
            seen.append(grad.device)
            assert torch.empty_like(grad).is_cuda
            return 2 * grad

    x = torch.ones(3, device="cuda", requires_grad=True)
    loss = Twice.apply(x).sum()
    loss.backward(retain_graph=True)
    torch.autograd.backward(loss)
    assert seen == [torch.device("cuda", 0)] * 3
    assert x.grad.is_cuda and x.grad.tolist() == [4.0] * 3
    (again,) = torch.autograd.grad(Twice.apply(x).sum(), x)
    assert again.is_cuda and seen[-1].type == "cuda"


def test_default_device(cuda):
    with torch.device("cuda:1"):
        assert torch.zeros(2).device == torch.device("cuda:1")
    torch.set_default_device("cuda")
    try:
        assert torch.randn(2).is_cuda and torch.get_default_device() == torch.device("cuda", 0)
    finally:
        torch.set_default_device(None)
    assert torch.zeros(2).is_cpu


def test_fresh_memory_is_loud(cuda):
    assert (
        torch.empty(7, device="cuda").isnan().all()
        and torch.empty(7, device="cuda", dtype=torch.bfloat16).isnan().all()
    )


def test_numpy_of_a_gpu_tensor_is_refused(cuda):
    with pytest.raises(TypeError, match=r"\.cpu\(\)"):
        torch.zeros(2, device="cuda").numpy()


def test_other_threads(cuda):
    seen = []
    thread = threading.Thread(target=lambda: seen.append(torch.zeros(1, device="cuda").is_cuda))
    thread.start()
    thread.join()
    assert seen == [True]


def test_freed_memory_is_forgotten(cuda):
    before = len(list(cuda.memory.allocations()))
    keep = [torch.zeros(10, device="cuda") for _ in range(20)]
    assert len(list(cuda.memory.allocations())) == before + 20
    assert torch.cuda.memory_allocated() >= 20 * 40
    del keep
    assert len(list(cuda.memory.allocations())) == before
    for _ in range(3000):
        torch.zeros(1, device="cuda")
    assert len(cuda.memory._entries) < 1200


# --- torch.cuda ------------------------------------------------------------------------------------------------------


def test_devices(cuda):
    assert torch.cuda.is_available() and torch.cuda.device_count() == 2 and torch.version.hip
    properties = torch.cuda.get_device_properties(0)
    assert properties.gcnArchName.split(":")[0] == "gfx942" and properties.warp_size == 64
    assert "MI300" in torch.cuda.get_device_name() and torch.cuda.get_device_capability() == (9, 4)
    with torch.cuda.device(1):
        assert torch.cuda.current_device() == 1 and torch.zeros(1, device="cuda").device.index == 1
    assert torch.cuda.current_device() == 0
    with pytest.raises(SimulatedCudaDevice):
        torch.zeros(1, device="cuda:2")
    with pytest.raises(SimulatedCudaDevice):
        torch.cuda.set_device(5)


@flyc.kernel
def copy_kernel(x: fx.Tensor, y: fx.Tensor):
    y[fx.thread_idx.x] = x[fx.thread_idx.x]


@flyc.jit
def copy(x: fx.Tensor, y: fx.Tensor):
    copy_kernel(x, y).launch(grid=(1,), block=(64,))


def test_tensors_on_two_devices_are_refused(cuda):
    a, b = (torch.arange(64, dtype=torch.float32, device=f"cuda:{i}") for i in range(2))
    out = torch.zeros(64, device="cuda:1")
    with pytest.raises(DevicesMixed, match="x on 0, y on 1"):
        copy(a, out)
    copy(b, out)
    assert torch.equal(out, b)
    with pytest.raises(DevicesMixed):
        copy(a, out)  # also where the form of the arguments is known
    compiled = flyc.compile(copy, b, out)
    for call in (compiled, lambda *args: flyc.compile(copy, *args)):
        with pytest.raises(DevicesMixed):
            call(b, a)
    host = torch.zeros(64)
    copy(a, host)  # host memory is no GPU's
    assert torch.equal(host, a.cpu())


def test_streams_and_events(cuda):
    stream, start, end = (
        torch.cuda.Stream(),
        torch.cuda.Event(enable_timing=True),
        torch.cuda.Event(enable_timing=True),
    )
    x = torch.ones(100, device="cuda")
    start.record()
    with torch.cuda.stream(stream):
        assert torch.cuda.current_stream() == stream != torch.cuda.default_stream()
        double(x, 100, stream=torch.cuda.current_stream())
    end.record()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    assert end.query() and start.elapsed_time(end) > 0 and x.tolist() == [2.0] * 100


def test_seeds(cuda):
    torch.manual_seed(3)
    a = torch.randn(4, device="cuda")
    torch.cuda.manual_seed(3)
    assert torch.equal(a, torch.randn(4, device="cuda"))


def test_profiler_shows_launches(cuda):
    x = torch.ones(64, device="cuda")
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        double(x, 64)
        double(x, 64)
    ours = [e for e in profile.events() if str(e.device_type).endswith("CUDA")]
    assert [e.name for e in ours] == ["double_kernel_0"] * 2 and all(e.self_device_time_total > 0 for e in ours)


@pytest.mark.parametrize(
    "use",
    [lambda: torch.utils.cpp_extension.CUDAExtension("x", ["x.cu"])],
    ids=["extension"],
)
def test_foreign_code_is_refused(cuda, use):
    import torch.utils.cpp_extension  # noqa: F401

    with pytest.raises(SimulatedCudaForeign, match="FLY_SIM_CUDA_FOREIGN"):
        use()


def test_leaving_restores_torch(monkeypatch):
    before = (
        torch.cuda.is_available,
        torch.cuda.Stream,
        torch.Generator,
        torch.version.hip,
        threading.Thread.run,
        torch.profiler.profile,
    )
    with simulated_cuda():
        assert torch.cuda.is_available()
    after = (
        torch.cuda.is_available,
        torch.cuda.Stream,
        torch.Generator,
        torch.version.hip,
        threading.Thread.run,
        torch.profiler.profile,
    )
    assert before == after and not torch.cuda.is_available()
    with pytest.raises((RuntimeError, AssertionError)):
        torch.zeros(1, device="cuda")


# --- graphs ----------------------------------------------------------------------------------------------------------


def captured_step(x, y):
    """Return a graph of `y = 2 * (x + 1)` with our kernel for the product."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        assert torch.cuda.is_current_stream_capturing()
        z = x + 1
        double(z, z.numel(), torch.cuda.current_stream())
        y.copy_(z)
    assert not torch.cuda.is_current_stream_capturing()
    return graph


def test_a_graph_replays_launches_and_operations_on_new_values(cuda):
    x, y = torch.arange(64.0, device="cuda"), torch.zeros(64, device="cuda")
    graph = captured_step(x, y)
    assert y.tolist() == [0.0] * 64  # what is captured has not run
    for k in range(3):
        x.fill_(k)
        graph.replay()
        assert y.tolist() == [2.0 * (k + 1)] * 64


def test_in_place_operations_happen_once_per_replay(cuda):
    x = torch.zeros(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x += 1
        x[0] = 5.0
        torch._foreach_mul_([x], 2.0)
    assert x.tolist() == [0.0] * 4
    graph.replay()
    graph.replay()
    assert x.tolist() == [10.0, 6.0, 6.0, 6.0]


def test_results_made_in_a_capture_are_filled_by_replays(cuda):
    x = torch.ones(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        parts = torch.split(torch.nn.functional.relu(x - 3), 2)
        noise = torch.rand(4, device="cuda")
        scratch = torch.empty(4, device="cuda")
        scratch[:] = parts[0].sum()
    assert parts[0].isnan().all() and noise.isnan().all()
    x.fill_(7)
    graph.replay()
    first = noise.clone()
    assert parts[1].tolist() == [4.0, 4.0] and scratch.tolist() == [8.0] * 4
    graph.replay()
    assert not torch.equal(first, noise)


def test_captures_by_hand_and_on_joined_streams(cuda):
    x, y = torch.ones(64, device="cuda"), torch.ones(64, device="cuda")
    main, side, other = (torch.cuda.Stream() for _ in range(3))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(main):
        graph.capture_begin()
        side.wait_stream(main)
        double(x, 64, side)
        double(y, 64, other)  # never joined: runs at once
        main.wait_event(side.record_event())
        graph.capture_end()
    torch.cuda.synchronize()
    assert x.tolist() == [1.0] * 64 and y.tolist() == [2.0] * 64
    graph.replay()
    assert x.tolist() == [2.0] * 64 and y.tolist() == [2.0] * 64


def test_checks_run_at_the_replay(cuda):
    x = torch.zeros(64, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        double(x, 128, torch.cuda.current_stream())
    with pytest.raises(FlyError, match="FLY_SIM_BOUNDS"):
        graph.replay()


@pytest.mark.parametrize(
    "use",
    [
        lambda x: double(x, 64),
        lambda x: x.sum().item(),
        lambda x: bool(x[0] > 0),
        lambda x: x.cpu(),
        lambda x: x.to("cpu"),
        lambda x: torch.nonzero(x),
        lambda x: torch.cuda.synchronize(),
        lambda x: torch.cuda.current_stream().synchronize(),
        lambda x: torch.cuda.Event().synchronize(),
        lambda x: torch.cuda.CUDAGraph().capture_begin(),
    ],
    ids=["default stream", "item", "bool", "cpu", "to", "nonzero", "synchronize", "stream", "event", "second capture"],
)
def test_what_a_capture_cannot_hold(cuda, use):
    x = torch.ones(64, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(SimulatedCudaCapture, match="while a CUDA graph is captured"), torch.cuda.graph(graph):
        use(x)
    use_after = x * 2  # nothing of the capture is left behind
    assert use_after.tolist() == [2.0] * 64 and not torch.cuda.is_current_stream_capturing()


def test_graphs_that_were_not_captured(cuda):
    with pytest.raises(RuntimeError, match="not captured"):
        torch.cuda.CUDAGraph().replay()
    with pytest.raises(RuntimeError, match="capture_begin"):
        torch.cuda.CUDAGraph().capture_end()
    graph = captured_step(torch.ones(64, device="cuda"), torch.zeros(64, device="cuda"))
    graph.reset()
    with pytest.raises(RuntimeError, match="not captured"):
        graph.replay()


def test_backward_in_a_capture_is_refused(cuda):
    x = torch.ones(3, device="cuda", requires_grad=True)
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(SimulatedCudaForeign, match="backward"), torch.cuda.graph(graph):
        (2 * x).sum().backward()


def test_graphed_callables(cuda):
    layer = torch.nn.Linear(3, 2).cuda()
    x = torch.ones(1, 3, device="cuda")
    assert torch.equal(torch.cuda.make_graphed_callables(layer, (x,))(x), layer(x))


# --- addresses -------------------------------------------------------------------------------------------------------


def test_address_as_integer(cuda):
    x = torch.zeros(130, device="cuda")
    add_one(x.data_ptr(), 130)
    add_one(x[1:].data_ptr(), 10)
    assert x.tolist() == [1.0] + [2.0] * 10 + [1.0] * 119


def test_access_past_a_tensor_behind_an_address_is_found(cuda):
    x = torch.zeros(100, device="cuda")
    with pytest.raises(FlyError, match="f32"):
        add_one(x.data_ptr(), 128)


def test_kernels_see_the_tensor(cuda):
    x = torch.arange(100, dtype=torch.float32, device="cuda")
    double(x, 100)
    assert torch.equal(x, 2 * torch.arange(100, device="cuda"))
