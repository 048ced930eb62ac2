"""`flydsl.autotune` on real kernels without a GPU: parallel compiles, configurations that cannot work, static
cost, stored results.
"""

import contextlib
import json

import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.autotune import Config, autotune, do_bench
from flydsl.tuning.cost import static_cost


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    monkeypatch.setenv("FLYDSL_AUTOTUNE_CACHE_DIR", str(tmp_path / "results"))
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx942")
    monkeypatch.setenv("FLYDSL_RUNTIME_KIND", "sim")
    for name in ("FLYDSL_AUTOTUNE", "FLYDSL_AUTOTUNE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)


@flyc.kernel
def scale_kernel(x: fx.Tensor, y: fx.Tensor, n: fx.Int32, block: fx.Constexpr[int], lds_bytes: fx.Constexpr[int]):
    scratch = fx.SharedAllocator().allocate(fx.Array[fx.Float32, lds_bytes // 4]).peek()
    i = fx.block_idx.x * block + fx.thread_idx.x
    if i < n:
        scratch[fx.thread_idx.x] = x[i]
        y[i] = scratch[fx.thread_idx.x] * 2.0


@flyc.jit
def scale(
    x: fx.Tensor, y: fx.Tensor, n: fx.Int32, block: fx.Constexpr[int] = 64, lds_bytes: fx.Constexpr[int] = 4096
):
    scale_kernel(x, y, n, block, lds_bytes).launch(grid=((n + block - 1) // block,), block=(block,))


@flyc.kernel
def total_kernel(x: fx.Tensor, y: fx.Tensor, n: fx.Int32, step: fx.Constexpr[int]):
    total = fx.Float32(0.0)
    for k in range(0, n, step):
        for j in fx.range_constexpr(step):
            total = total + x[(k + j) * 64 + fx.thread_idx.x]
    y[fx.thread_idx.x] = total


@flyc.jit
def total(x: fx.Tensor, y: fx.Tensor, n: fx.Int32, step: fx.Constexpr[int] = 1):
    total_kernel(x, y, n, step).launch(grid=(1,), block=(64,))


def arrays(n: int = 1000) -> tuple[np.ndarray, np.ndarray, int]:
    return np.arange(n, dtype=np.float32), np.zeros(n, np.float32), n


CONFIGS = [Config(block=64, lds_bytes=1 << 20), Config(block=128, lds_bytes=512), Config(block=128, lds_bytes=65536)]


def test_search_skips_what_cannot_work_and_takes_the_cheaper(capsys):
    tuned = autotune(CONFIGS, key=["n"])(scale)
    x, y, n = arrays(40_000)
    tuned(x, y, n)
    assert np.array_equal(y, 2 * x)
    (best,) = tuned.cache.values()
    assert best.to_dict() == {"block": 128, "lds_bytes": 512}  # the other one fits two waves per compute unit
    assert list(tuned.skipped) == [CONFIGS[0]]
    assert "LDS" in tuned.skipped[CONFIGS[0]]


def test_all_infeasible_says_why():
    tuned = autotune(CONFIGS[:1], key=["n"])(scale)
    with pytest.raises(RuntimeError, match="no configuration of 1 can be used.*lds_bytes=1048576.*LDS"):
        tuned(*arrays())


def test_results_are_kept_per_key_and_device(monkeypatch):
    searches = []
    configs = lambda x, y, n: searches.append(n) or CONFIGS[1:]
    tuned = autotune(configs, key=["n"])(scale)
    for n in (100, 100, 200):
        tuned(*arrays(n))
    assert searches == [100, 200]
    again = autotune(configs, key=["n"])(scale)  # as a new process would: results come from the file
    again(*arrays(100))
    assert searches == [100, 200]
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx950")
    again(*arrays(100))
    assert searches == [100, 200, 100]


def test_a_damaged_result_file_is_ignored(tmp_path):
    tuned = autotune(CONFIGS[1:], key=["n"])(scale)
    tuned(*arrays())
    (file,) = (tmp_path / "results").glob("*.json")
    assert json.loads(file.read_text())
    for text in ("{", "[]", '{"[1]": 3}', '{"x": {"block": 1}}'):
        file.write_text(text)
        assert autotune(CONFIGS[1:], key=["n"])(scale).cache == {}


def test_artifact_is_shipped_and_used(tmp_path, monkeypatch):
    monkeypatch.setenv("FLYDSL_AUTOTUNE_CONFIG_DIR", str(tmp_path / "shipped"))
    monkeypatch.setenv("FLYDSL_AUTOTUNE", "1")
    make = lambda: autotune(CONFIGS[1:], key=["n"], default=Config(block=64, lds_bytes=512), artifact_name="scale")(
        scale
    )
    make()(*arrays())
    (file,) = (tmp_path / "shipped").glob("scale-*.json")
    payload = json.loads(file.read_text())
    assert payload["version"] == 1 and payload["identity"]["key"] == {"n": 1000}
    assert payload["identity"]["device"] == {"name": "simulated gfx942", "arch": "gfx942", "compute_units": 304}
    assert payload["config"] == {"block": 128, "lds_bytes": 512}
    monkeypatch.delenv("FLYDSL_AUTOTUNE")
    monkeypatch.setenv("FLYDSL_AUTOTUNE_CACHE_DIR", str(tmp_path / "other"))
    assert make().resolve_config(*arrays()).to_dict() == payload["config"]
    assert make().resolve_config(*arrays(999)).to_dict() == {
        "block": 64,
        "lds_bytes": 512,
    }  # no artifact: the default
    payload["config"]["block"] = "128"
    file.write_text(json.dumps(payload))
    assert make().resolve_config(*arrays()).to_dict() == {"block": 64, "lds_bytes": 512}


def test_validate_hook_sees_the_results(monkeypatch):
    x, y, n = arrays(256)

    @contextlib.contextmanager
    def check(named):
        named["y"][:] = 0
        yield
        if named["block"] == 128:
            raise ValueError("not wanted")
        assert np.array_equal(named["y"], 2 * x)

    tuned = autotune([Config(block=64, lds_bytes=512), Config(block=128, lds_bytes=512)], validate_hook=check)(scale)
    assert tuned.resolve_config(x, y, n).kwargs["block"] == 64
    assert [c.kwargs["block"] for c in tuned.skipped] == [128]


def test_select_config_and_hooks():
    ran = []
    configs = [
        Config(block=64, lds_bytes=512, pre_hook=lambda kw: ran.append(kw["block"])),
        Config(block=128, lds_bytes=512),
    ]
    tuned = autotune(configs, select_config=lambda results: max(results, key=lambda r: r[0].kwargs["block"]))(scale)
    tuned(*arrays(128))
    assert next(iter(tuned.cache.values())) is configs[1] and ran == []
    tuned = autotune(configs[:1], post_hook=lambda kw: ran.append("post"))(scale)
    tuned(*arrays(128))
    assert ran == [64, "post"]


def test_waves_per_eu_reaches_the_code():
    tuned = autotune([Config(waves_per_eu=1)], key=["n"])(scale)
    tuned(*arrays(64))
    assert scale._last_compiled[1].request.fields == (("waves_per_eu", 1),)


def cost(function, *args) -> float:
    artifact = flyc.compile(function, *args).artifact
    return static_cost(artifact, [v for _, a in function.wrap_arguments(args, {}) for v in a.flat()])


def test_static_cost_follows_the_work():
    x, y = np.zeros(64 * 64, np.float32), np.zeros(64, np.float32)
    one, many = cost(total, x, y, 4), cost(total, x, y, 64)
    assert 10 < many / one < 17  # sixteen times the trips, and what is outside of the loop
    assert cost(total, x, y, 64, 4) < many  # fewer trips, equal loads
    assert cost(scale, *arrays(10_000_000)) > 5 * cost(scale, *arrays(1_000_000))  # rounds of workgroups


def test_do_bench_takes_the_median(monkeypatch):
    now = iter([0.0, 0.010, 0.0, 0.020, 0.0, 0.090, 0.0, 0.020, 0.0, 0.030])
    monkeypatch.setattr("flydsl.tuning.bench.time.perf_counter", lambda: next(now))
    monkeypatch.setattr(
        "flydsl.tuning.bench._timer", lambda: __import__("flydsl.tuning.bench", fromlist=["_"])._host_clock
    )
    calls = []
    assert do_bench(lambda: calls.append(1), warmup=2, rep=10) == pytest.approx(10.0)  # 20 ms of two calls
    assert len(calls) == 12
    now = iter([0.0, 0.001, 0.0, 0.002, 0.0, 0.003, 0.0, 0.004, 0.0, 0.005])
    assert do_bench(lambda: None, 0, 5, quantiles=[0.0, 0.5, 0.625, 1.0]) == pytest.approx([1.0, 3.0, 3.5, 5.0])


def test_runs_are_timed_on_the_device_of_the_tensors(torch):
    """Events of another device would time nothing."""
    from flydsl.runtime.torch_cuda import simulated_cuda

    current = []

    def bench(call, warmup, rep):
        call()
        current.append(torch.cuda.current_device())
        return 1.0

    tuned = autotune([Config(block=64)], key=["n"], do_bench=bench)(scale)
    with simulated_cuda(2):
        for device in (1, 0):
            x = torch.ones(64, device=f"cuda:{device}")
            y = torch.zeros(64, device=f"cuda:{device}")
            tuned.cache.clear()
            tuned(x, y, 64)
            assert y.tolist() == [2.0] * 64 and torch.cuda.current_device() == 0
    assert current == [1, 0]
