"""The main loop of example 07 beside that of the public preshuffled GEMM compiled by the published wheel, same tile.

    python benchmarks/isa_gemm.py --wheel PYTHON --repo PATH [--archs gfx942,gfx950]

PYTHON: interpreter of an environment with the `flydsl` wheel (and its ROCM_PATH); PATH: a checkout of ROCm/FlyDSL.
Compared in the loop: matrix, global, LDS instructions (equal), all instructions and `llvm-mca` cycles (within 5 %); of
the kernel: VGPRs (at most 5 % more), no spills. Without --wheel our side is printed alone. Ends with status 1 if a bar
is missed.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter

ROOT = pathlib.Path(__file__).resolve().parent.parent
TILE, SIZE = (128, 128, 64), 4096
KINDS = {
    "mfma": r"v_mfma", "global": r"(buffer|global)_(load|store)", "lds read": r"ds_read", "lds write": r"ds_write",
    "barrier": r"s_barrier",
}  # fmt: skip
OURS = """
import sys, numpy as np, importlib.util
spec = importlib.util.spec_from_file_location("example", {example!r})
m = importlib.util.module_from_spec(spec); sys.modules["example"] = m; spec.loader.exec_module(m)
a = np.zeros(({size}, {size}), np.float16); s = np.zeros({size}, np.float32)
m.preshuffle_gemm(a, a.copy(), a.copy(), s, s.copy(), {size}, {size}, {size}, {tile}, 16)
"""
THEIRS = """
import sys, pathlib
sys.path.insert(0, {here!r})
import public_kernels as p
repo = pathlib.Path({repo!r})
p.fake_cuda(); sys.path[:0] = [str(repo), str(repo / "examples")]
p.run_example(repo, "04-preshuffle_gemm.py")
"""


def assembly(python: str, code: str, arch: str, path: str) -> str:
    """Return the final assembly that a script dumps."""
    with tempfile.TemporaryDirectory(prefix="isa-gemm-") as folder:
        env = {
            **os.environ, "ARCH": arch, "FLYDSL_GPU_ARCH": arch, "COMPILE_ONLY": "1", "FLYDSL_DUMP_IR": "1", "FLYDSL_DUMP_DIR": folder,
            "FLYDSL_RUNTIME_ENABLE_CACHE": "0", "PYTHONPATH": path,
        }  # fmt: skip
        done = subprocess.run([python, "-c", code], env=env, cwd=folder, capture_output=True, text=True, timeout=600)
        files = sorted(pathlib.Path(folder).rglob("*isa*.s"))
        if not files:
            raise SystemExit(f"{python}: no assembly for {arch}\n{done.stderr[-2000:]}")
        return files[0].read_text()


def loop_body(text: str) -> list[str]:
    """Return the instructions of the loop with the most matrix instructions."""
    bodies = re.findall(r"^(\.LBB\w+):(.*?)^\s+s_cbranch\w*\s+\1\b", text, re.M | re.S)
    lines = [[x.split(";")[0].strip() for x in body.splitlines() if re.match(r"\s+[a-z]\w*_", x)] for _, body in bodies]
    return max(lines, key=lambda body: sum("mfma" in x for x in body))


def _for_mca(line: str) -> str:
    """Return a buffer access as the global access of the same width: llvm-mca 19 crashes on buffer instructions."""
    m = re.match(r"buffer_(load|store)_(\w+) (v\S+), (v\d+), s\[(\d+):\d+\]", line)
    if m is None:
        return line
    base = f"s[{m[5]}:{int(m[5]) + 1}]"
    return (
        f"global_load_{m[2]} {m[3]}, {m[4]}, {base}"
        if m[1] == "load"
        else f"global_store_{m[2]} {m[4]}, {m[3]}, {base}"
    )


def mca_cycles(body: list[str], arch: str) -> float | None:
    """Return the cycles per iteration that llvm-mca estimates (for gfx950 by gfx942's model where it knows no other),
    None without it."""
    tool = next((t for t in ("llvm-mca-22", "llvm-mca-20", "llvm-mca-19", "llvm-mca") if shutil.which(t)), None)
    for cpu in (arch, "gfx942") if tool else ():
        command = [
            tool,
            "-mtriple=amdgcn-amd-amdhsa",
            f"-mcpu={cpu}",
            "-iterations=10",
            "-instruction-info=0",
            "-resource-pressure=0",
        ]
        done = subprocess.run(command, input="\n".join(map(_for_mca, body)) + "\n", capture_output=True, text=True)
        found = re.search(r"Total Cycles:\s+(\d+)", done.stdout)
        if found:
            return int(found[1]) / 10
    return None


def facts(text: str, arch: str) -> dict[str, float | None]:
    """Return what is compared."""
    body = loop_body(text)
    counts = Counter(kind for x in body for kind, pattern in KINDS.items() if re.match(pattern, x))
    numbers = {name: int(re.search(rf"\.{name}:\s*(\d+)", text)[1]) for name in ("vgpr_count", "vgpr_spill_count")}
    return {**{k: counts[k] for k in KINDS}, "all": len(body), "cycles": mca_cycles(body, arch), **numbers}


def missed(ours: dict, theirs: dict) -> list[str]:
    """Return the names of the bars that we miss."""
    out = [k for k in KINDS if ours[k] != theirs[k]]
    out += [k for k in ("all", "cycles", "vgpr_count") if ours[k] and theirs[k] and ours[k] > 1.05 * theirs[k]]
    return out + (["vgpr_spill_count"] if ours["vgpr_spill_count"] else [])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", default=os.environ.get("PEER_PY"), help="python of an environment with the wheel")
    parser.add_argument("--repo", help="checkout of ROCm/FlyDSL")
    parser.add_argument("--archs", default="gfx942,gfx950")
    args = parser.parse_args()
    return int(compare(args.archs.split(","), args.wheel, args.repo) > 0)


def compare(archs: list[str], wheel: str | None, repo: str | None) -> int:
    """Print both sides of the GEMM's main loop, chip by chip; return on how many chips a bar is missed."""
    example = str(ROOT / "examples" / "07_preshuffle_gemm.py")
    bad = 0
    print(f"{'':6} {'':7} " + " ".join(f"{name:>16}" for name in (*KINDS, "all", "mca cycles", "vgprs", "spills")))
    for arch in archs:
        ours = facts(
            assembly(sys.executable, OURS.format(example=example, size=SIZE, tile=TILE), arch, str(ROOT)), arch
        )
        print(f"{arch:6} {'ours':7} " + " ".join(f"{v!s:>16}" for v in ours.values()))
        if wheel and repo:
            code = THEIRS.format(here=str(ROOT / "benchmarks"), repo=repo)
            theirs = facts(assembly(wheel, code, arch, ""), arch)
            print(f"{arch:6} {'wheel':7} " + " ".join(f"{v!s:>16}" for v in theirs.values()))
            found = missed(ours, theirs)
            bad += bool(found)
            print(f"{arch:6} {'':7} {'within the bars' if not found else 'MISSED: ' + ', '.join(found)}")
    return bad


if __name__ == "__main__":
    sys.exit(main())
