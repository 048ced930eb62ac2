"""Exports to C: the object and the header, compiled by a C compiler and run against a HIP library that records launches."""

import ctypes
import json
import shutil
import subprocess

import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.diag import FlyError

STUB = r"""
#include <stdio.h>
#include <string.h>
#include <stdint.h>
static int loads, device;
int hipInit(unsigned f) { return 0; }
int hipGetDevice(int *d) { *d = device; return 0; }
int hipSetDevice(int d) { device = d; return 0; }
int hipModuleLoadData(void **m, const void *code) {
  if (memcmp(code, "\177ELF", 4)) return 200;
  *m = (void *)(intptr_t)(++loads); printf("load %d\n", device); return 0;
}
int hipModuleUnload(void *m) { printf("unload\n"); return 0; }
int hipModuleGetFunction(void **f, void *m, const char *name) { *f = (void *)name; return 0; }
int hipFuncSetAttribute(const void *f, int a, int v) { printf("attribute %d\n", v); return 0; }
int hipModuleLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned lds, void *stream,
                          void **p, void **extra) {
  printf("%s grid %u %u %u block %u %u %u lds %u stream %p", (char *)f, gx, gy, gz, bx, by, bz, lds, stream);
  if (strstr((char *)f, "scale"))
    printf(" args %p %d %p %d %g %d", *(void **)p[0], *(int32_t *)p[1], *(void **)p[2], *(int32_t *)p[3], *(float *)p[4], *(int32_t *)p[5]);
  printf("\n");
  return 0;
}
"""


@flyc.kernel
def scale_kernel(a: fx.Tensor, b: fx.Tensor, f: fx.Float32, n: fx.Int32):
    i = fx.block_idx.x * 256 + fx.thread_idx.x
    if i < n:
        b[i] = a[i] * f


@flyc.kernel
def clear_kernel(b: fx.Tensor):
    b[fx.thread_idx.x] = 0.0


@flyc.jit
def scale(a: fx.Tensor, b: fx.Tensor, f: fx.Float32, n: fx.Int32, times: fx.Int32, stream: fx.Stream = fx.Stream(None)):
    if n > 1000:
        clear_kernel(b).launch(grid=(1,), block=(64, 1, 1), stream=stream)
    for _ in range(times):
        scale_kernel(a, b, f * 2.0, n - 1).launch(grid=((n + 255) // 256,), block=(256, 1, 1), stream=stream)


X = np.zeros(64, np.float32)
MAIN = r"""
#include <stdio.h>
#include "kernel.h"
int main(void) {
  p_scale_a_layout_t a = {{64}};
  p_scale_b_layout_t b = {{32}};
  printf("%d\n", p_scale_call((void *)16, &a, (void *)32, &b, 1.5f, 300, 2, (void *)48));
  printf("%d\n", p_scale__module_load(-1));
  printf("%d\n", p_scale__module_init());
  printf("%d\n", p_scale_call((void *)16, &a, (void *)32, &b, 1.5f, 300, 2, (void *)48));
  printf("%d\n", p_scale_call_auto((void *)16, &a, (void *)32, &b, 1.5f, 300, 2, (void *)48));
  printf("%d\n", p_scale_call((void *)16, &a, (void *)32, &b, -0.25f, 1001, 1, 0));
  printf("%d\n", p_scale_call((void *)16, &a, (void *)32, &b, 1.0f, -5, 1, 0));
  printf("%d\n", p_scale_call((void *)16, &a, (void *)32, &b, 1.0f, 0, 1, 0));
  printf("%d %d\n", p_scale_NUM_ARGS, p_scale__module_unload());
  printf("%d\n", p_scale_call((void *)16, &a, (void *)32, &b, 1.0f, 0, 1, 0));
  return 0;
}
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler `cc`")
@pytest.mark.parametrize("language", ["c", "c++"])
def test_exported_object_runs(tmp_path, language) -> None:
    compiled = flyc.compile(scale, X, X, 1.0, 5, 1, None)
    assert compiled.export_to_c(tmp_path, "kernel", "p_") == "p_scale"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["kernel.gfx942.hsaco", "kernel.h", "kernel.json", "kernel.o"]
    facts = json.loads((tmp_path / "kernel.json").read_text())
    assert facts["symbol"] == "p_scale" and set(facts["kernels"]) == {"scale_kernel_1", "clear_kernel_0"}
    (tmp_path / "hip.c").write_text(STUB)
    source = tmp_path / ("main.c" if language == "c" else "main.cpp")
    source.write_text(MAIN)
    subprocess.check_call(["cc", "-c", "-w", tmp_path / "hip.c", "-o", tmp_path / "hip.o"])
    flags = ["-Wall", "-Werror", "-x", language, "-std=" + ("c11" if language == "c" else "c++11")]
    subprocess.check_call(["cc", *flags, "-c", source, "-o", tmp_path / "main.o"])
    subprocess.check_call(
        ["cc", tmp_path / "main.o", tmp_path / "kernel.o", tmp_path / "hip.o", "-o", tmp_path / "main"]
    )
    out = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True).stdout.splitlines()
    launch = "scale_kernel_1 grid 2 1 1 block 256 1 1 lds 0 stream 0x30 args 0x10 64 0x20 32 3 299"
    expected = ["-1", "-1", "0", "-2", "load 0", launch, launch, "0"]
    expected += ["clear_kernel_0 grid 1 1 1 block 64 1 1 lds 0 stream (nil)"]
    expected += ["scale_kernel_1 grid 4 1 1 block 256 1 1 lds 0 stream (nil) args 0x10 64 0x20 32 -0.5 1000", "0"]
    assert out[: len(expected)] == expected
    assert out[len(expected) :] == ["0", "0", "unload", "8 0", "-2"]
    if language == "c":
        assert b"\x7fELF" == (tmp_path / "kernel.gfx942.hsaco").read_bytes()[:4]


@flyc.kernel
def int_kernel(a: fx.Tensor, v: fx.Int32):
    a[0] = v


@flyc.jit
def arithmetic(a: fx.Tensor, x: fx.Int32, y: fx.Int32):
    int_kernel(a, x * y).launch(grid=(1,), block=(1, 1, 1))
    int_kernel(a, x // y).launch(grid=(1,), block=(1, 1, 1))
    int_kernel(a, x % y).launch(grid=(1,), block=(1, 1, 1))
    int_kernel(a, (x << 3) ^ (y >> 1)).launch(grid=(1,), block=(1, 1, 1))
    int_kernel(a, x + y - 7).launch(grid=(1,), block=(1, 1, 1))
    total = x % 40
    while total > 5:
        total = total - 3
    int_kernel(a, total).launch(grid=(1,), block=(1, 1, 1))


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler `cc`")
def test_arithmetic_as_in_python(tmp_path, monkeypatch) -> None:
    """The C host program and the Python one compute the same kernel arguments, also where 32 bits overflow."""
    from flydsl.runtime import null

    a = np.zeros(4, np.int32)
    compiled = flyc.compile(arithmetic, a, 1, 2)
    compiled.export_to_c(tmp_path, "arith", "")
    record = "#include <stdint.h>\nint64_t seen[64]; int count;\n"
    record += r"""
int hipInit(unsigned f) { return 0; }
int hipGetDevice(int *d) { *d = 0; return 0; }
int hipSetDevice(int d) { return 0; }
int hipModuleLoadData(void **m, const void *code) { *m = (void *)1; return 0; }
int hipModuleUnload(void *m) { return 0; }
int hipModuleGetFunction(void **f, void *m, const char *name) { *f = (void *)name; return 0; }
int hipFuncSetAttribute(const void *f, int a, int v) { return 0; }
int hipModuleLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned lds, void *stream,
                          void **p, void **extra) { seen[count++] = *(int32_t *)p[2]; return 0; }
"""
    (tmp_path / "hip.c").write_text(record)
    subprocess.check_call(
        ["cc", "-shared", "-fPIC", "-w", tmp_path / "hip.c", tmp_path / "arith.o", "-o", tmp_path / "arith.so"]
    )
    lib = ctypes.CDLL(str(tmp_path / "arith.so"))
    assert lib.arithmetic__module_init() == 0 and lib.arithmetic__module_load(-1) == 0
    monkeypatch.setenv("FLYDSL_RUNTIME_KIND", "null")
    seen = []
    monkeypatch.setattr(null, "_launch", lambda *launch: seen.append(launch[-1][-1]))
    rng = np.random.default_rng(1)
    for x, y in [
        (7, -2),
        (-7, 2),
        (2**31 - 1, 2**31 - 1),
        (-(2**31), 3),
        *rng.integers(-(2**31), 1000, (20, 2)).tolist(),
    ]:
        seen.clear()
        arithmetic(a, x, y)
        values = [
            ctypes.c_void_p(a.ctypes.data),
            ctypes.pointer((ctypes.c_int32 * 1)(4)),
            ctypes.c_int32(x),
            ctypes.c_int32(y),
        ]
        args = (ctypes.c_void_p * 4)(*(ctypes.cast(ctypes.pointer(v), ctypes.c_void_p) for v in values))
        ctypes.c_int.in_dll(lib, "count").value = 0
        assert lib.arithmetic(args) == 0
        found = list((ctypes.c_int64 * 64).in_dll(lib, "seen"))[: len(seen)]
        assert found == seen, (x, y)


# --- clusters --------------------------------------------------------------------------------------------------------

CLUSTER_STUB = r"""
/* HIP_LAUNCH_CONFIG and hipLaunchAttribute as HIP's public header lays them out; 4 is hipLaunchAttributeClusterDimension. */
struct attribute { int id; char pad[8 - sizeof(int)]; union { char pad[64]; struct { unsigned x, y, z; } cluster; } value; };
struct config { unsigned gx, gy, gz, bx, by, bz, lds; void *stream; struct attribute *attributes; unsigned count; };
int hipDrvLaunchKernelEx(const struct config *c, void *f, void **p, void **extra) {
  printf("clusters: ");
  for (unsigned i = 0; i < c->count; i++) {
    struct attribute *a = &c->attributes[i];
    printf("attribute %d = %u %u %u ", a->id, a->value.cluster.x, a->value.cluster.y, a->value.cluster.z);
  }
  return hipModuleLaunchKernel(f, c->gx, c->gy, c->gz, c->bx, c->by, c->bz, c->lds, c->stream, p, extra);
}
"""


@flyc.kernel
def clustered_scale(a: fx.Tensor, b: fx.Tensor, f: fx.Float32, n: fx.Int32):
    b[fx.thread_idx.x] = a[fx.thread_idx.x] * f * fx.Float32(n)


@flyc.jit
def clustered(a: fx.Tensor, b: fx.Tensor, f: fx.Float32, n: fx.Int32, c: fx.Int32, stream: fx.Stream = fx.Stream(None)):
    clustered_scale(a, b, f, n).launch(grid=(n, 4), block=(64,), cluster=(2, 2, 1), smem=512, stream=stream)
    clustered_scale(a, b, f, n).launch(grid=(n, 4), block=(64,), cluster=(c, 1, 1), stream=stream)
    clear_kernel(b).launch(grid=(1,), block=(64, 1, 1), stream=stream)


COMPILERS = [c for c in ("cc", "clang", "clang-19") if shutil.which(c)] + ["/usr/lib/llvm-19/bin/clang"]


@pytest.mark.parametrize("compiler", COMPILERS)
def test_clusters_are_launched_as_the_python_driver_does(tmp_path, monkeypatch, compiler) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"no compiler {compiler}")
    monkeypatch.setenv("ARCH", "gfx1250")
    monkeypatch.setenv("CC", compiler)
    compiled = flyc.compile(clustered, X, X, 1.0, 8, 1, None)
    compiled.export_to_c(tmp_path, "kernel")
    main = """
#include <stdio.h>
#include "kernel.h"
int main(void) {
  clustered_a_layout_t a = {{64}};
  clustered_b_layout_t b = {{32}};
  printf("%d\\n", clustered_call_auto((void *)16, &a, (void *)32, &b, 1.5f, 8, 4, (void *)48));
  printf("%d\\n", clustered_call_auto((void *)16, &a, (void *)32, &b, 1.5f, 0, 1, (void *)48));
  printf("%d\\n", clustered_call_auto((void *)16, &a, (void *)32, &b, 1.5f, 2, 1, (void *)48));
  return 0;
}
"""
    (tmp_path / "main.c").write_text(main)
    sizes, clear = "block 64 1 1", "clear_kernel_2 grid 1 1 1 block 64 1 1 lds 0 stream 0x30"
    scaled = [f"clustered_scale_{i} grid {{n}} 4 1 {sizes} lds {lds} stream 0x30 args 0x10 64 0x20 32 1.5 {{n}}" for i, lds in enumerate((512, 0))]
    first, second = (text.format(n=8) for text in scaled)
    expected = ["load 0", f"clusters: attribute 4 = 2 2 1 {first}", f"clusters: attribute 4 = 4 1 1 {second}", clear, "0", clear, "0"]
    first, second = (text.format(n=2) for text in scaled)
    expected += [f"clusters: attribute 4 = 2 2 1 {first}", second, clear, "0"]
    assert output(tmp_path, compiler, STUB + CLUSTER_STUB) == expected
    assert output(tmp_path, compiler, STUB)[:2] == ["load 0", "801"]  # a HIP without the call: hipErrorNotSupported


def output(folder, compiler: str, stub: str) -> list[str]:
    """Build main.c with the exported object and a HIP library, which is shared as the real one is; return what it prints."""
    (folder / "hip.c").write_text(stub)
    subprocess.check_call([compiler, "-shared", "-fPIC", "-w", folder / "hip.c", "-o", folder / "libhip.so"])
    flags = ["-Wall", "-Werror", "-std=c11", f"-Wl,-rpath,{folder}"]
    subprocess.check_call(
        [compiler, *flags, folder / "main.c", folder / "kernel.o", folder / "libhip.so", "-o", folder / "main"]
    )
    return subprocess.run([folder / "main"], capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.parametrize("name, prefix", [("a/b", ""), ("", ""), ("x", "3"), ("x", "a-b"), ("..", ""), ("x", "__")])
def test_bad_names(tmp_path, name, prefix) -> None:
    compiled = flyc.compile(scale, X, X, 1.0, 5, 1, None)
    with pytest.raises(FlyError, match="cannot export under the name"):
        compiled.export_to_c(tmp_path, name, prefix)


def test_missing_folder(tmp_path) -> None:
    compiled = flyc.compile(scale, X, X, 1.0, 5, 1, None)
    with pytest.raises(FileNotFoundError, match="existing folder"):
        compiled.export_to_c(tmp_path / "nowhere", "kernel")


@flyc.kernel
def printing_kernel(a: fx.Tensor):
    fx.printf("{}", a[0])


@flyc.jit
def printing(a: fx.Tensor):
    printing_kernel(a).launch(grid=(1,), block=(1, 1, 1))


def test_what_cannot_be_exported(tmp_path) -> None:
    with pytest.raises(NotImplementedError, match="prints"):
        flyc.compile(printing, X).export_to_c(tmp_path, "kernel")
