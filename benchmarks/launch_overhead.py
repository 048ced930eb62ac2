"""What a call costs on the host, from Python to the launch, on a runtime that does nothing; beside the published wheel
where one is given.

    python benchmarks/launch_overhead.py [--wheel PYTHON] [--rounds 200]

Ours runs on the `null` runtime. The wheel has no such runtime: it calls a stub `libamdhip64` (built here with `cc`)
whose launches do nothing; with `--hip` ours is measured on that stub as well, through the same ctypes binding that
drives a GPU. First every refusal is proven on the path that is timed: wrong element type, shape, device and count. A
number is the best of many short batches (the machine may be busy), in microseconds.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CASES = ((1, 0), (3, 2), (5, 3), (6, 4), (10, 5))  # tensors, ints: 1, 5, 8, 10, 15 arguments
TARGETS_US = {("torch", 5, 3): 5.0, ("torch", 10, 5): 10.0, ("numpy", 5, 3): 10.0, ("numpy", 10, 5): 20.0}
BATCH = 100
STUB = r"""
#include <stdlib.h>
#include <string.h>
typedef int E; typedef void *P;
E hipInit(unsigned f) { return 0; }
E hipGetDeviceCount(int *n) { *n = 1; return 0; }
E hipGetDevice(int *n) { *n = 0; return 0; }
E hipSetDevice(int n) { return 0; }
E hipDeviceSynchronize(void) { return 0; }
E hipGetLastError(void) { return 0; }
E hipPeekAtLastError(void) { return 0; }
const char *hipGetErrorName(E e) { return "hipStub"; }
const char *hipGetErrorString(E e) { return "stub"; }
E hipMalloc(P *p, size_t n) { *p = malloc(n); return 0; }
E hipFree(P p) { free(p); return 0; }
E hipHostMalloc(P *p, size_t n, unsigned f) { *p = malloc(n); return 0; }
E hipHostFree(P p) { free(p); return 0; }
E hipMemcpy(P d, const void *s, size_t n, int k) { memmove(d, s, n); return 0; }
E hipMemcpyAsync(P d, const void *s, size_t n, int k, P st) { memmove(d, s, n); return 0; }
E hipMemset(P d, int v, size_t n) { return 0; }
E hipMemsetAsync(P d, int v, size_t n, P s) { return 0; }
E hipMemsetD16Async(P d, unsigned short v, size_t n, P s) { return 0; }
E hipMemsetD32Async(P d, int v, size_t n, P s) { return 0; }
E hipHostRegister(P p, size_t n, unsigned f) { return 0; }
E hipHostUnregister(P p) { return 0; }
E hipHostGetDevicePointer(P *d, P h, unsigned f) { *d = h; return 0; }
E hipStreamCreate(P *s) { *s = 0; return 0; }
E hipStreamDestroy(P s) { return 0; }
E hipStreamSynchronize(P s) { return 0; }
E hipStreamWaitEvent(P s, P e, unsigned f) { return 0; }
E hipEventCreate(P *e) { *e = (P)1; return 0; }
E hipEventCreateWithFlags(P *e, unsigned f) { *e = (P)1; return 0; }
E hipEventDestroy(P e) { return 0; }
E hipEventRecord(P e, P s) { return 0; }
E hipEventSynchronize(P e) { return 0; }
E hipEventElapsedTime(float *ms, P a, P b) { *ms = 1.0f; return 0; }
E hipModuleLoadData(P *m, const void *image) { *m = (P)8; return 0; }
E hipModuleUnload(P m) { return 0; }
E hipModuleGetFunction(P *f, P m, const char *n) { *f = (P)16; return 0; }
typedef unsigned U;
E hipModuleLaunchKernel(P f, U gx, U gy, U gz, U bx, U by, U bz, U lds, P s, P *args, P *extra) { return 0; }
E hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int *n, P f, int b, size_t s) { *n = 1; return 0; }
E hipModuleOccupancyMaxPotentialBlockSize(int *g, int *b, P f, size_t s, int l) { *g = 1; *b = 256; return 0; }
E hipFuncSetAttribute(P f, int a, int v) { return 0; }
E hipGetDevicePropertiesR0600(char *p, int d) { /* pageableMemoryAccess: host arrays stand in for those of a GPU */
  memset(p, 0, 1472); p[672] = 1; return 0;
}
"""


def build_stub(folder: str) -> str:
    """Compile a libamdhip64 that does nothing; return its folder."""
    source, versions, library = (os.path.join(folder, n) for n in ("hip.c", "hip.map", "libamdhip64.so.7"))
    pathlib.Path(source).write_text(STUB)
    pathlib.Path(versions).write_text("hip_4.2 { global: *; };\n")
    flags = ["-O1", "-w", "-shared", "-fPIC", "-Wl,-soname,libamdhip64.so.7", f"-Wl,--version-script={versions}"]
    subprocess.check_call([os.environ.get("CC_HOST", "cc"), source, "-o", library, *flags])
    for name in ("libamdhip64.so", "libamdhip64.so.6"):
        os.symlink("libamdhip64.so.7", os.path.join(folder, name))
    return folder


def kernel_source() -> str:
    """Return a module with one kernel and one jit function per case."""
    lines = ["import flydsl.compiler as flyc", "import flydsl.expr as fx", ""]
    for tensors, ints in CASES:
        names = [f"t{i}" for i in range(tensors)] + [f"n{i}" for i in range(ints)]
        typed = [f"t{i}: fx.Tensor" for i in range(tensors)] + [f"n{i}: fx.Int32" for i in range(ints)]
        name, grid = f"{tensors}_{ints}", "(n0 + 255) // 256" if ints else 1
        copies = [f"    t{k}[i] = t0[i]" for k in range(tensors)]
        lines += ["@flyc.kernel", f"def kernel_{name}({', '.join(typed)}):"]
        lines += ["    i = fx.block_idx.x * 256 + fx.thread_idx.x", *copies]
        lines += ["@flyc.jit", f"def launch_{name}({', '.join(typed)}):"]
        lines += [f"    kernel_{name}({', '.join(names)}).launch(grid=({grid},), block=(256, 1, 1))", ""]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", default=os.environ.get("PEER_PY"), help="python with the flydsl wheel and torch")
    parser.add_argument("--hip", action="store_true", help="measure ours on the stub HIP library, too")
    parser.add_argument("--rounds", type=int, default=200, help=f"batches of {BATCH} calls; the best one counts")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        sys.path.insert(0, args.child)
        child(args.rounds)
        return 0
    with tempfile.TemporaryDirectory(prefix="flydsl-bench-") as folder:
        pathlib.Path(folder, "overhead_kernels.py").write_text(kernel_source())
        ours = run(sys.executable, folder, args.rounds, PYTHONPATH=str(ROOT), FLYDSL_RUNTIME_KIND="null")
        columns = {"ours": ours}
        if args.hip or args.wheel:
            build_stub(folder)
        if args.hip:
            columns["ours, stub HIP"] = run(
                sys.executable,
                folder,
                args.rounds,
                PYTHONPATH=str(ROOT),
                FLYDSL_RUNTIME_KIND="rocm",
                LD_LIBRARY_PATH=folder,
            )
        if args.wheel:
            columns["wheel"] = run(args.wheel, folder, args.rounds, PYTHONPATH="", LD_LIBRARY_PATH=folder)
    return report(columns)


def run(python: str, folder: str, rounds: int, **env: str) -> dict:
    """Return the measurements of one interpreter: "library tensors ints path" -> microseconds."""
    environment = {
        **os.environ,
        "FLYDSL_GPU_ARCH": "gfx942",
        "ARCH": "gfx942",
        "FLYDSL_RUNTIME_CACHE_DIR": folder + "/cache",
        **env,
    }
    command = [python, str(pathlib.Path(__file__).resolve()), "--child", folder, "--rounds", str(rounds)]
    out = subprocess.run(command, env=environment, capture_output=True, text=True, cwd="/")
    if out.returncode:
        raise SystemExit(f"{python} failed\n{out.stdout[-1000:]}{out.stderr[-3000:]}")
    return json.loads(out.stdout.strip().splitlines()[-1])


def report(columns: dict[str, dict]) -> int:
    """Print the table; return 1 when a target is missed."""
    paths = ["call", "compiled"]
    print("microseconds per call: the jit function (call), the CompiledFunction (compiled)")
    print(
        f"{'arguments':28}" + "".join(f"{c + ' ' + p:>24}" for c in columns for p in paths) + f"{'wheel/ours call':>18}"
    )
    missed = []
    for library in ("torch", "numpy"):
        for tensors, ints in CASES:
            row = [columns[c].get(f"{library} {tensors} {ints} {p}") for c in columns for p in paths]
            ours, wheel = row[0], columns.get("wheel", {}).get(f"{library} {tensors} {ints} call")
            text = f"{library + f' {tensors} tensors + {ints} ints':28}" + "".join(
                f"{x:24.2f}" if x else f"{'-':>24}" for x in row
            )
            print(text + (f"{wheel / ours:18.1f}" if wheel else ""))
            target = TARGETS_US.get((library, tensors, ints))
            if target and ours > target:
                missed.append(f"{library} {tensors}+{ints}: {ours:.2f} us, target {target} us")
            if wheel and wheel < 5 * ours:
                missed.append(f"{library} {tensors}+{ints}: {wheel / ours:.1f} times the wheel, target 5")
    print("targets: " + ("all met" if not missed else "MISSED " + "; ".join(missed)))
    return 1 if missed else 0


# --- in the measured interpreter --------------------------------------------------------------------------------------


def child(rounds: int) -> None:
    """Measure all cases and print JSON."""
    import overhead_kernels as subject
    import torch

    import flydsl.compiler as flyc

    libraries = {"torch": lambda: torch.zeros(4096)}
    if is_ours():
        import numpy as np

        libraries["numpy"] = lambda: np.zeros(4096, np.float32)
    results = {}
    for library, make in libraries.items():
        for tensors, ints in CASES:
            function = getattr(subject, f"launch_{tensors}_{ints}")
            arguments = [make() for _ in range(tensors)] + [4096] * ints
            function(*arguments)
            compiled = flyc.compile(function, *arguments)
            compiled(*arguments)
            if is_ours():
                prove_refusals(function, compiled, arguments, library)
            results[f"{library} {tensors} {ints} call"] = best(function, arguments, rounds)
            results[f"{library} {tensors} {ints} compiled"] = best(compiled, arguments, rounds)
    print(json.dumps(results))


def is_ours() -> bool:
    """Return whether this interpreter imports this checkout."""
    import flydsl

    return pathlib.Path(flydsl.__file__).resolve().is_relative_to(ROOT)


def best(function, arguments: list, rounds: int) -> float:
    """Return microseconds per call in the fastest batch; slow calls are measured one by one, for four seconds."""
    fastest, batch = float("inf"), 1
    end = time.perf_counter() + 4
    for i in range(rounds):
        start = time.perf_counter()
        for _ in range(batch):
            function(*arguments)
        now = time.perf_counter()
        fastest = min(fastest, (now - start) / batch)
        batch = BATCH if fastest < 1e-3 else 1
        if now > end and i > 4:
            break
    return 1e6 * fastest


def prove_refusals(function, compiled, arguments: list, library: str) -> None:
    """Call with wrong element type, shape, device and count in every position; each must raise, on both paths."""
    import numpy as np
    import torch

    def make(shape, dtype="float32"):
        return np.zeros(shape, dtype) if library == "numpy" else torch.zeros(shape, dtype=getattr(torch, dtype))

    wrong = {
        "element type": make(4096, "complex64"),
        "shape (no dimensions)": make(()),
        "stride": make(8192)[::2],
        "device": torch.zeros(4096, device="meta"),
    }
    only_compiled = {"element type (other)": make(4096, "float16"), "shape (rank)": make((64, 64)), "no tensor": 4096}
    wrong_numbers = {"number: too large": 2**40, "number: a fraction": 0.5, "number: a text": "1"}
    for i, argument in enumerate(arguments):
        values = wrong_numbers if isinstance(argument, int) else {**wrong, **only_compiled}
        for what, value in values.items():
            for call in (compiled,) if what in only_compiled else (function, compiled):
                refuses(call, [*arguments[:i], value, *arguments[i + 1 :]], f"{what} (argument {i})")
    for call in (function, compiled):
        refuses(call, arguments[:-1], "count: one less")
        refuses(call, [*arguments, 1], "count: one more")
        call(*arguments)
    prove_static_shapes(function, arguments, make)


def prove_static_shapes(function, arguments: list, make) -> None:
    """Where extents are compiled in, another shape must raise."""
    import flydsl.compiler as flyc

    for i, argument in enumerate(arguments):
        if not isinstance(argument, int):
            pinned = [*arguments[:i], flyc.from_dlpack(argument), *arguments[i + 1 :]]
            compiled = flyc.compile(function, *pinned)
            compiled(*arguments)
            refuses(compiled, [*arguments[:i], make(4095), *arguments[i + 1 :]], f"shape (argument {i} is static)")
            refuses(compiled, [*arguments[:i], flyc.from_dlpack(make(4095)), *arguments[i + 1 :]], "shape (both static)")


def refuses(call, arguments: list, what: str) -> None:
    """Check that a call raises an error of ours."""
    from flydsl.diag import FlyError

    try:
        call(*arguments)
    except FlyError:
        return
    raise AssertionError(f"{call}: wrong {what} was accepted")


if __name__ == "__main__":
    sys.exit(main())
