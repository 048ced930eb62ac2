"""Launches on several streams: ordered by events, waits and the host, or reported with both lines."""

import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
import flydsl.sim
from flydsl.targets.sim.streams import order

torch = pytest.importorskip("torch", reason="torch is not installed")
simulated_cuda = pytest.importorskip("flydsl.runtime.torch_cuda").simulated_cuda  # imports torch

N = 64


@pytest.fixture(autouse=True)
def _fresh():
    order.clear()
    yield
    order.clear()


@flyc.kernel
def twice_kernel(src: fx.Tensor, dst: fx.Tensor, first: fx.Int32, step: fx.Int32):
    i = first + fx.thread_idx.x * step
    x = src[i]
    dst[i] = x + x


@flyc.jit
def twice(src: fx.Tensor, dst: fx.Tensor, first: fx.Int32, step: fx.Int32, stream: fx.Stream = fx.Stream(None)):
    twice_kernel(src, dst, first, step).launch(grid=(1, 1, 1), block=(N, 1, 1), stream=stream)


def line_of(text: str) -> int:
    from pathlib import Path

    return next(i for i, line in enumerate(Path(__file__).read_text().splitlines(), 1) if line.strip() == text)


READ, WRITE = line_of("x = src[i]"), line_of("dst[i] = x + x")


def lines(found) -> list[tuple]:
    return [(f.kind, f.severity, f.span and f.span.line, f.other and f.other.line) for f in found]


@pytest.fixture
def arrays():
    return [np.zeros(2 * N, np.float32) for _ in range(3)]


def test_integer_streams_that_nothing_orders(arrays) -> None:
    a, b, c = arrays
    with flydsl.sim.check() as found:
        twice(a, b, 0, 1, fx.Stream(0x10))
        twice(b, c, 0, 1, fx.Stream(0x20))  # reads what the first one writes
    assert lines(found) == [("race", "error", READ, WRITE)]
    assert found[0].index == (0,) and found[0].tensor == "src" and "stream 0x20" in str(found[0]) and "stream 0x10" in str(found[0])


def test_one_stream_and_the_default_stream_order(arrays) -> None:
    a, b, c = arrays
    with flydsl.sim.check() as found:
        twice(a, b, 0, 1, fx.Stream(0x10))
        twice(b, c, 0, 1, fx.Stream(0x10))
        twice(c, a, 0, 1)  # the default stream waits for streams of this kind, and they for it
        twice(a, b, 0, 1, fx.Stream(0x20))
    assert not found


@pytest.mark.parametrize("stream,is_ordered", [(None, True), (0x10, True), (0x20, False)])
def test_the_program_states_that_it_waits(arrays, stream, is_ordered) -> None:
    a, b, c = arrays
    with flydsl.sim.check() as found:
        twice(a, b, 0, 1, fx.Stream(0x10))
        flydsl.sim.synchronize(stream)
        twice(b, c, 0, 1, fx.Stream(0x20))
    assert lines(found) == [("race", "error", READ, WRITE)] * (not is_ordered)


@pytest.mark.parametrize("first,step,meets", [(N, 1, False), (N - 1, 1, True)])
def test_halves_of_one_tensor_are_apart(arrays, first, step, meets) -> None:
    a, b, _ = arrays
    with flydsl.sim.check() as found:
        twice(a, b, 0, 1, fx.Stream(0x10))
        twice(a, b, first, step, fx.Stream(0x20))
    assert lines(found) == [("race", "error", WRITE, WRITE)] * meets


def test_even_and_odd_elements_are_apart(arrays) -> None:
    a, b, _ = arrays
    with flydsl.sim.check() as found:
        twice(a, b, 0, 2, fx.Stream(0x10))
        twice(a, b, 1, 2, fx.Stream(0x20))
    assert not found


def test_reads_of_one_tensor_are_no_race(arrays) -> None:
    a, b, c = arrays
    with flydsl.sim.check() as found:
        twice(a, b, 0, 1, fx.Stream(0x10))
        twice(a, c, 0, 1, fx.Stream(0x20))
    assert not found


def test_a_read_that_a_later_write_overtakes(arrays) -> None:
    a, b, c = arrays
    with flydsl.sim.check() as found:
        twice(a, b, 0, 1, fx.Stream(0x10))
        twice(c, a, 0, 1, fx.Stream(0x20))
    assert lines(found) == [("race", "error", WRITE, READ)]


def test_the_check_can_be_off(arrays) -> None:
    a, b, c = arrays
    with flydsl.sim.check(checks="default,-streams") as found:
        twice(a, b, 0, 1, fx.Stream(0x10))
        twice(b, c, 0, 1, fx.Stream(0x20))
    assert not found


def torch_tensors() -> list:
    return [torch.zeros(2 * N).cuda() for _ in range(3)]


def wait_stream(a, b, s, t) -> None:
    t.wait_stream(s)


def wait_event(a, b, s, t) -> None:
    t.wait_event(s.record_event())


def event_waits(a, b, s, t) -> None:
    event = torch.cuda.Event()
    event.record(s)
    event.wait(t)


def host_waits(a, b, s, t) -> None:
    s.synchronize()


def host_waits_for_an_event(a, b, s, t) -> None:
    s.record_event().synchronize()


def host_waits_for_all(a, b, s, t) -> None:
    torch.cuda.synchronize()


def host_reads(a, b, s, t) -> None:
    with torch.cuda.stream(s):
        b.cpu()


def through_a_third_stream(a, b, s, t) -> None:
    middle = torch.cuda.Stream()
    middle.wait_stream(s)
    t.wait_stream(middle)


def nothing(a, b, s, t) -> None:
    pass


def wrong_direction(a, b, s, t) -> None:
    s.wait_stream(t)


def event_too_early(a, b, s, t) -> None:
    t.wait_event(a.early)


def default_stream_waits(a, b, s, t) -> None:
    torch.cuda.current_stream().synchronize()


ORDERS = (wait_stream, wait_event, event_waits, host_waits, host_waits_for_an_event, host_waits_for_all, host_reads, through_a_third_stream)


@pytest.mark.parametrize("how", ORDERS)
def test_what_orders_two_streams_of_torch(how) -> None:
    with simulated_cuda(), flydsl.sim.check() as found:
        a, b, c = torch_tensors()
        s, t = torch.cuda.Stream(), torch.cuda.Stream()
        twice(a, b, 0, 1, s)
        how(a, b, s, t)
        twice(b, c, 0, 1, t)
    assert [str(f) for f in found] == []


@pytest.mark.parametrize("how", (nothing, wrong_direction, event_too_early, default_stream_waits))
def test_what_does_not_order_them(how) -> None:
    with simulated_cuda(), flydsl.sim.check() as found:
        a, b, c = torch_tensors()
        s, t = torch.cuda.Stream(), torch.cuda.Stream()
        a.early = s.record_event()
        twice(a, b, 0, 1, s)
        how(a, b, s, t)
        twice(b, c, 0, 1, t)
    assert lines(found) == [("race", "error", READ, WRITE)]


def test_the_default_stream_does_not_wait_for_streams_of_torch() -> None:
    with simulated_cuda(), flydsl.sim.check() as found:
        a, b, c = torch_tensors()
        twice(a, b, 0, 1, torch.cuda.Stream())
        twice(b, c, 0, 1)
    assert lines(found) == [("race", "error", READ, WRITE)]


@pytest.mark.parametrize("read", [lambda b: b.cpu(), lambda b: b + 1, lambda b: torch.allclose(b, b), lambda b: b[3].item()])
def test_torch_reads_what_another_stream_writes(read) -> None:
    with simulated_cuda(), flydsl.sim.check() as found:
        a, b, _ = torch_tensors()
        s = torch.cuda.Stream()
        twice(a, b, 0, 1, s)
        b.shape, b.view(-1), torch.empty_like(b)  # touch no element
        assert not found
        s.synchronize()
        read(b)
        torch.cuda.synchronize()
        assert not found
        twice(a, b, 0, 1, s)
        read(b)
    assert lines(found[:1]) == [("race", "error", None, WRITE)]


def test_memory_of_a_tensor_that_is_gone_is_not_compared() -> None:
    with simulated_cuda(), flydsl.sim.check() as found:
        s, t = torch.cuda.Stream(), torch.cuda.Stream()
        a = torch.zeros(2 * N).cuda()
        for stream in (s, t, s, t):
            result = torch.empty(2 * N, device="cuda")  # often at the address of the last one
            twice(a, result, 0, 1, stream)
            del result
    assert not found


def test_launches_before_the_first_stream_are_known_by_tensor() -> None:
    with simulated_cuda(), flydsl.sim.check() as found:
        a, b, c = torch_tensors()
        twice(a, b, 0, 1)
        twice(b, c, 0, 1, torch.cuda.Stream())
    assert lines(found) == [("race", "warning", READ, None)]
