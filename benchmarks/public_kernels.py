"""Public FlyDSL programs as inputs: `public_kernels.py --repo PATH` traces, compiles and simulates them at small
shapes and prints a table.

PATH is a checkout of ROCm/FlyDSL (`kernels/`, `examples/`, `tests/`). They ask for `device="cuda"`; here that means
the CPU's memory. Every case runs in a process of its own, on every chip, under every wave schedule: `apart` says
whether the results differ between schedules.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SCHEDULES = ("lockstep", "ahead", "reverse", "random:1")
CHIPS = ("gfx942", "gfx950")
CASES: dict[str, Callable] = {}


def case(fn: Callable) -> Callable:
    """Register a case: a function of the repository that returns (largest error / tolerance, result tensors)."""
    CASES[fn.__name__] = fn
    return fn


# --- examples: their own scripts, which check themselves ------------------------------------------------------------


def run_example(repo: Path, name: str, **constants: int) -> dict[str, Any]:
    """Run an example as a script, with some of its top-level integer constants changed; return its namespace."""
    text = (repo / "examples" / name).read_text()
    for names, values in constants.items():
        target = names.replace("_", ", ")
        text, found = re.subn(rf"(?m)^(\s*){target} = \d+(, \d+)*$", rf"\g<1>{target} = {values}", text)
        assert found == 1, f"{name} sets {names} {found} times"
    folder = Path(tempfile.mkdtemp(prefix="public_"))
    path = folder / name.replace("-", "_")
    path.write_text(text)  # kernels are rewritten from source files
    namespace: dict[str, Any] = {"__name__": "__main__", "__file__": str(path)}
    exec(compile(text, str(path), "exec"), namespace)
    return namespace


@case
def example_02_tiled_copy(repo: Path):
    n = run_example(repo, "02-tiledCopy.py")
    return 0.0 if n["is_correct"] else float("inf"), [n["B"]]


@case
def example_03_tiled_mma(repo: Path):
    n = run_example(repo, "03-tiledMma.py")
    return 0.0 if n["is_correct"] else float("inf"), [n["C"]]


@case
def example_04_preshuffle_gemm(repo: Path):
    n = run_example(repo, "04-preshuffle_gemm.py", M_N_K="256, 256, 256")
    return 0.0 if n["is_correct"] else float("inf"), [n["C"]]


@case
def example_05_gather_scatter(repo: Path):
    n = run_example(repo, "05-gather_scatter.py", M_R_N="128, 64, 512")
    return 0.0, [n["dst"], n["dst2"]]


# --- kernels: inputs and references of ours
# ----------------------------------------------------------------------------


def _random(rows: int, cols: int | None, dtype: Any) -> Any:
    import torch

    shape = (rows,) if cols is None else (rows, cols)
    return torch.randn(shape, generator=torch.Generator().manual_seed(rows * 1000 + (cols or 0))).to(dtype)


def _error(out: Any, expected: Any, tolerance: float) -> float:
    import torch

    difference = (out.to(torch.float64) - expected).abs()
    return float("inf") if difference.isnan().any() else float(difference.max()) / tolerance


def _dtype(name: str) -> Any:
    import torch

    return {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "fp16": torch.float16}[name]


def _stream() -> Any:
    import flydsl.expr as fx

    return fx.Stream(None)


def _softmax(m: int, n: int, name: str, tolerance: float) -> Callable:
    def run(repo: Path):
        import torch
        from kernels.norm.softmax_kernel import build_softmax_module

        x, y = _random(m, n, _dtype(name)), torch.full((m, n), float("nan"), dtype=_dtype(name))
        build_softmax_module(m, n, name)(x, y, m, stream=_stream())
        return _error(y, torch.softmax(x.double(), -1), tolerance), [y]

    return run


CASES["softmax_f32_2048"] = _softmax(8, 2048, "f32", 1e-5)
CASES["softmax_bf16_4096"] = _softmax(4, 4096, "bf16", 2e-2)
CASES["softmax_f16_1000"] = _softmax(5, 1000, "f16", 1e-2)


def _pointer(x: Any, name: str) -> Any:
    import flydsl.compiler as flyc
    import flydsl.expr as fx

    return flyc.from_c_void_p(getattr(fx, {"f32": "Float32", "f16": "Float16", "bf16": "BFloat16"}[name]), x.data_ptr())


def _layernorm(m: int, n: int, name: str, tolerance: float) -> Callable:
    def run(repo: Path):
        import torch
        from kernels.norm.layernorm_kernel import build_layernorm_module

        from flydsl.runtime.sim import addressable

        dtype = _dtype(name)
        x, gamma, beta = _random(m, n, dtype), _random(n, None, dtype), _random(n + 1, None, dtype)[:n].clone()
        y = torch.full((m, n), float("nan"), dtype=dtype)
        with addressable(x=x, gamma=gamma, beta=beta, y=y):
            build_layernorm_module(n, name)(*(_pointer(t, name) for t in (x, gamma, beta, y)), m, stream=_stream())
        expected = torch.nn.functional.layer_norm(x.double(), (n,), gamma.double(), beta.double(), 1e-5)
        return _error(y, expected, tolerance), [y]

    return run


CASES["layernorm_bf16_8192"] = _layernorm(3, 8192, "bf16", 5e-2)
CASES["layernorm_f32_1000"] = _layernorm(5, 1000, "f32", 1e-4)


def _rmsnorm(m: int, n: int, name: str, tolerance: float) -> Callable:
    def run(repo: Path):
        import torch
        from kernels.norm.rmsnorm_kernel import build_rmsnorm_module

        dtype = _dtype(name)
        x, gamma = _random(m, n, dtype), _random(n, None, dtype)
        y = torch.full((m, n), float("nan"), dtype=dtype)
        build_rmsnorm_module(n, name)(x, gamma, y, m, stream=_stream())
        wide = x.double()
        expected = wide * torch.rsqrt((wide * wide).mean(-1, keepdim=True) + 1e-5) * gamma.double()
        return _error(y, expected, tolerance), [y]

    return run


CASES["rmsnorm_bf16_8192"] = _rmsnorm(3, 8192, "bf16", 5e-2)
CASES["rmsnorm_f32_2000"] = _rmsnorm(4, 2000, "f32", 1e-4)


def _preshuffle(m: int, n: int, k: int, tile: tuple[int, int, int], name: str, **options: Any) -> Callable:
    def run(repo: Path):
        import torch
        from kernels.gemm.preshuffle_gemm import compile_preshuffle_gemm

        out = torch.float16 if options.get("out_dtype") == "fp16" else torch.bfloat16
        a, b, kernel_a, kernel_b = _gemm_inputs(m, n, k, name)
        scale_a, scale_b = torch.rand(m) + 0.5, torch.rand(n) + 0.5
        scaled = name in ("fp8", "int8")
        none = torch.empty(0)
        c = torch.full((m * n,), float("nan"), dtype=out)
        shuffled = kernel_b.reshape(n // 16, 16, -1, 16 // kernel_b.element_size()).transpose(1, 2).contiguous()
        tm, tn, tk = tile
        launch = compile_preshuffle_gemm(N=n, K=k, tile_m=tm, tile_n=tn, tile_k=tk, in_dtype=name, **options)
        args = [c, kernel_a.reshape(-1), shuffled.reshape(-1)]
        launch(*args, scale_a if scaled else none, scale_b if scaled else none, none.to(out), m, n, _stream())
        expected = a.double() @ b.double().T
        if scaled:
            expected = expected * scale_a.double()[:, None] * scale_b.double()[None, :]
        return _error(c.reshape(m, n), expected, float(expected.abs().max()) * 2**-8), [c]

    return run


def _gemm_inputs(m: int, n: int, k: int, name: str) -> tuple:
    """Return A, B with their values, and as the kernel wants them."""
    import torch

    if name == "int8":
        g = torch.Generator().manual_seed(1)
        a, b = (torch.randint(-128, 128, (rows, k), generator=g, dtype=torch.int8) for rows in (m, n))
        return a, b, a, b
    if name == "fp8":
        fp8 = torch.float8_e4m3fnuz if os.environ["ARCH"] == "gfx942" else torch.float8_e4m3fn
        a, b = _random(m, k, torch.float32).to(fp8), _random(n, k, torch.float32).to(fp8)
        return a, b, a.view(torch.int8), b.view(torch.int8)
    a, b = _random(m, k, _dtype(name)), _random(n, k, _dtype(name))
    return a, b, a, b


# The kernel reads scale_a for whole tiles from an unbounded buffer: with M = 33 the simulator reports reads past its
# end.
CASES["preshuffle_fp8"] = _preshuffle(48, 128, 512, (16, 64, 256), "fp8")
CASES["preshuffle_int8"] = _preshuffle(64, 256, 512, (64, 256, 128), "int8")
CASES["preshuffle_fp16"] = _preshuffle(64, 128, 512, (32, 64, 128), "fp16", out_dtype="fp16")
CASES["preshuffle_fp8_async"] = _preshuffle(64, 256, 512, (64, 256, 128), "fp8", use_async_copy=True)
ONLY = {"preshuffle_fp8_async": ("gfx950",)}
CASES["preshuffle_bf16_lds1"] = _preshuffle(64, 256, 256, (64, 256, 64), "bf16", lds_stage=1)


# --- "cuda"
# ------------------------------------------------------------------------------------------------------------------


def fake_cuda() -> None:
    """Let torch's "cuda" mean the CPU."""
    import torch
    from torch.overrides import TorchFunctionMode

    class Stream:
        cuda_stream = 0

        def __init__(self, *args: Any, **kwargs: Any):
            pass

        def synchronize(self) -> None:
            pass

    class ToCpu(TorchFunctionMode):
        def __torch_function__(self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
            kwargs = {k: _cpu(v) for k, v in (kwargs or {}).items()}
            return func(*(_cpu(a) for a in args), **kwargs)

    def _cpu(x: Any) -> Any:
        if isinstance(x, str) and x.startswith("cuda"):
            return "cpu"
        return torch.device("cpu") if isinstance(x, torch.device) and x.type == "cuda" else x

    torch.Tensor.cuda = lambda self, *args, **kwargs: self
    torch.cuda.is_available = lambda: True
    torch.cuda.synchronize = lambda *args: None
    torch.cuda.Stream = Stream
    torch.cuda.current_stream = lambda *args: Stream()
    torch.cuda.current_device = lambda: 0
    ToCpu().__enter__()


def child(repo: Path, name: str, schedule: str) -> dict[str, Any]:
    """Run a case once and say what came out."""
    import hashlib

    import torch

    fake_cuda()
    sys.path[:0] = [str(repo), str(repo / "examples")]
    torch.manual_seed(0)
    checks = "bounds,uninit,barrier,waits,undefined" if schedule.endswith("!") else None
    with env_override(FLYDSL_SIM_SCHEDULE=schedule.rstrip("!"), FLYDSL_SIM_CHECK=checks):
        start = time.perf_counter()
        artifacts = _capture_artifacts()
        error, results = CASES[name](repo)
        seconds = time.perf_counter() - start
    digest = hashlib.sha256(b"".join(t.contiguous().view(torch.uint8).numpy().tobytes() for t in results)).hexdigest()[
        :12
    ]
    row: dict[str, Any] = {"error": error, "seconds": round(seconds, 2), "digest": digest}
    if schedule.rstrip("!") == SCHEDULES[0]:
        start = time.perf_counter()
        kernels = [k for a in artifacts for k in a.codegen(("hsaco",)).kernels.values()]
        row["codegen_s"] = round(time.perf_counter() - start, 2)
        row["kernels"] = [{"vgprs": k.vgprs, "spills": k.vgpr_spills, "lds": k.lds_bytes} for k in kernels]
    return row


def _capture_artifacts() -> list:
    from flydsl.compiler.jit_function import JitFunction

    found: list = []
    compile_ = JitFunction._compile

    def keep(self: Any, arguments: Any) -> Any:
        artifact = compile_(self, arguments)
        found.append(artifact)
        return artifact

    JitFunction._compile = keep
    return found


def env_override(**values: str) -> Any:
    from flydsl.utils import env

    return env.override(**values)


def spawn(repo: Path, name: str, arch: str, schedule: str) -> dict[str, Any]:
    """Run one case in its own process."""
    environment = {**os.environ, "ARCH": arch, "FLYDSL_GPU_ARCH": arch, "FLYDSL_RUNTIME_KIND": "sim"}
    environment["FLYDSL_RUNTIME_ENABLE_CACHE"] = "0"  # every case compiles: its artifacts are looked at
    root = str(Path(__file__).resolve().parents[1])
    environment["PYTHONPATH"] = os.pathsep.join(p for p in (root, environment.get("PYTHONPATH")) if p)
    command = [sys.executable, __file__, "--repo", str(repo), "--child", name, "--schedule", schedule]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600)
    for line in done.stdout.splitlines():
        if line.startswith("@@"):
            return json.loads(line[2:])
    lines = [x for x in (done.stderr or done.stdout).strip().splitlines() if x.strip()]
    hit = [x for x in lines if "Error" in x or "error[" in x] or lines[-1:] or [f"exit {done.returncode}"]
    return {"failed": hit[-1][:200], "stderr": done.stderr}


def table(repo: Path, wanted: str, chips: tuple[str, ...], schedules: tuple[str, ...], verbose: bool) -> int:
    """Print one line per case and chip; return how many are not right."""
    print(
        f"{'case':28} {'chip':7} {'result':8} {'error/tol':>9} {'run s':>6} {'code s':>6} {'vgprs':>6} {'spills':>6}"
        "  schedules"
    )
    bad = 0
    for name in CASES:
        if not re.search(wanted, name):
            continue
        for arch in (c for c in chips if c in ONLY.get(name, CHIPS)):
            rows = [spawn(repo, name, arch, s) for s in schedules]
            race = next((r["stderr"] for r in rows if "FLY_SIM_RACE" in r.get("failed", "")), None)
            if race:  # what it computes when nobody looks
                rows = [spawn(repo, name, arch, s + "!") for s in schedules]
            first = rows[0]
            if "failed" in first:
                bad += 1
                print(f"{name:28} {arch:7} FAILED   {first['failed']}", flush=True)
                if verbose:
                    print(first["stderr"])
                continue
            failed = [s for s, r in zip(schedules, rows) if "failed" in r]
            apart = [s for s, r in zip(schedules, rows) if "failed" not in r and r["digest"] != first["digest"]]
            word = "right" if first["error"] <= 1 else "WRONG"
            bad += not (word == "right" and not apart and not failed) and race is None
            kernels = first["kernels"]
            facts = f"{max(k['vgprs'] for k in kernels):6} {sum(k['spills'] for k in kernels):6}"
            said = "equal" if not apart and not failed else f"apart: {', '.join(apart)} failed: {', '.join(failed)}"
            print(
                f"{name:28} {arch:7} {word:8} {first['error']:9.3f} {first['seconds']:6.2f} {first['codegen_s']:6.2f} "
                f"{facts}  {said}",
                flush=True,
            )
            if race:
                print("    it has a race:\n" + "\n".join("      " + x for x in _report(race)))
            for s, r in zip(schedules, rows):
                if "failed" in r:
                    print(f"    under {s}: {r['failed']}")
                    if verbose:
                        print(r["stderr"])
    return bad


def _report(stderr: str) -> list[str]:
    """Return the lines of the last error in a child's output."""
    lines = stderr.strip().splitlines()
    start = max((i for i, x in enumerate(lines) if "error[" in x), default=0)
    return [lines[start].partition(": ")[2] or lines[start], *lines[start + 1 : start + 8]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repo", type=Path, help="checkout of ROCm/FlyDSL")
    parser.add_argument("--cases", default="", help="regular expression of case names")
    parser.add_argument("--chips", default=",".join(CHIPS))
    parser.add_argument("--schedules", default=",".join(SCHEDULES))
    parser.add_argument("-v", "--verbose", action="store_true")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--schedule", default=SCHEDULES[0], help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.repo is None:
        print("public_kernels: give a checkout of ROCm/FlyDSL with --repo PATH")
        return 0
    if args.child:
        print("@@" + json.dumps(child(args.repo.resolve(), args.child, args.schedule)))
        return 0
    chips, schedules = tuple(args.chips.split(",")), tuple(args.schedules.split(","))
    return table(args.repo.resolve(), args.cases, chips, schedules, args.verbose)


if __name__ == "__main__":
    sys.exit(main())
