"""One kernel per name of the specifications: what it computes, the instruction it becomes, and where it is refused.

A `Case` says which chips have the name, the body of its kernel, its inputs and what NumPy says of them. `check` runs it
on one chip in the simulator and looks for the instruction in the ISA; on the other chips it expects our error at the line
of the body.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.diag import FlyError
from flydsl.utils import env

CHIPS = ("gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250")
CDNA = ("gfx942", "gfx950")
WAVE = {"gfx942": 64, "gfx950": 64, "gfx1100": 32, "gfx1201": 32, "gfx1250": 32}
UNSET = 0xA5  # every byte of an output before the launch


@dataclass(frozen=True)
class Case:
    """A name in a kernel.

    `body(i, *tensors)` is called in the kernel with the thread's number, the inputs and last the output;
    `want(wave_size, *inputs)` returns the output. `isa` is a pattern, or one per chip; `ulps` the distance allowed to
    `want`, in units of its last place; `tried` the chips that the normal run takes, where one of a family is enough.
    """

    name: str
    body: Callable[..., Any]
    inputs: tuple[np.ndarray, ...]
    want: Callable[..., Any]
    isa: Any = ""
    chips: tuple[str, ...] = CHIPS
    tried: tuple[str, ...] = CHIPS
    ulps: float = 0
    threads: int = 128
    options: dict[str, Any] = field(default_factory=dict)
    not_emulated: str = ""  # why benchmarks/emulate_names.py cannot judge it

    def __str__(self) -> str:
        return self.name


def launcher(case: Case) -> Any:
    """Return the jit function that launches the body on four tensors."""
    body, threads, used = case.body, case.threads, len(case.inputs) + 1

    @flyc.kernel(**case.options)
    def kernel(a: fx.Tensor, b: fx.Tensor, c: fx.Tensor, d: fx.Tensor):
        body(fx.block_idx.x * threads + fx.thread_idx.x, *(a, b, c, d)[:used])

    @flyc.jit
    def launch(a: fx.Tensor, b: fx.Tensor, c: fx.Tensor, d: fx.Tensor, blocks: fx.Constexpr[int]):
        kernel(a, b, c, d).launch(grid=(blocks, 1, 1), block=(threads, 1, 1))

    return launch


def launched(case: Case, arch: str, blocks: int = 1) -> tuple[np.ndarray, np.ndarray, Any]:
    """Return (output, expected output, function that gives the ISA) of a case on a chip."""
    inputs = [x.copy() for x in case.inputs]
    model = arch if arch in case.chips else case.chips[0]
    want = np.ascontiguousarray(case.want(WAVE[model], *(x.copy() for x in case.inputs)))
    out = np.full(want.nbytes, UNSET, np.uint8).view(want.dtype).reshape(want.shape)
    args = (*inputs, out, *[np.zeros(1, np.int32)] * (3 - len(inputs)), blocks)
    launch = launcher(case)
    with env.override(ARCH=arch, FLYDSL_GPU_ARCH=arch):
        launch(*args)
    return out, want, lambda: isa_text(launch, args, arch)


def isa_text(launch: Any, args: tuple, arch: str) -> str:
    """Return the assembly, encodings' suffixes (_e32, _e64, _dpp) left out."""
    with env.override(ARCH=arch, FLYDSL_GPU_ARCH=arch):
        text = launch.artifact_for(launch.wrap_arguments(args, {})).codegen(("isa",)).isa
    return re.sub(r"_e(32|64)(_dpp)?\b|_dpp\b", "", text)


def check(case: Case, arch: str) -> None:
    """Run a case on a chip that has the name, or see it refused on one that has not."""
    if arch not in case.chips:
        refused(case, arch)
        return
    out, want, isa = launched(case, arch)
    same(out, want, case.ulps)
    pattern = case.isa.get(arch, case.isa.get(arch[:4], "")) if isinstance(case.isa, dict) else case.isa
    if pattern:
        text = isa()
        assert re.search(pattern, text), (pattern, [line for line in text.splitlines() if re.match(r"\t[a-z]", line)])


def refused(case: Case, arch: str) -> None:
    """Expect our error, which names the chip and points into this case's body."""
    with pytest.raises(FlyError) as caught:
        launched(case, arch)
    text = str(caught.value)
    assert arch in text, text
    assert source_file(case.body) in text.split("why:")[0], text


def source_file(body: Callable) -> str:
    """Return the file name of a body."""
    return inspect.getsourcefile(inspect.unwrap(getattr(body, "__wrapped__", body))).rpartition("/")[2]


def same(out: np.ndarray, want: np.ndarray, ulps: float = 0) -> None:
    """Compare bit by bit (any NaN equals any NaN), or within some units in the last place."""
    nan = np.isnan(want.astype(np.float64)) if want.dtype.kind not in "biu" else np.zeros(want.shape, bool)
    got_nan = np.isnan(out.astype(np.float64)) if out.dtype.kind not in "biu" else nan
    bits = f"u{want.itemsize}"
    good = (out.view(bits) == want.view(bits)) | (nan & got_nan)
    if ulps and not good.all():
        with np.errstate(all="ignore"):
            distance = np.abs(out.astype(np.float64) - want.astype(np.float64)) / np.abs(np.spacing(want)).astype(np.float64)
        good |= (distance <= ulps) & np.isfinite(want.astype(np.float64))
    if not good.all():
        at = np.argwhere(~good)[0]
        raise AssertionError(f"{(~good).sum()} of {good.size} differ, first at {tuple(at)}: got {out[tuple(at)]!r}, want {want[tuple(at)]!r}")


def table(cases: list[Case]) -> Any:
    """Parametrise a test over cases and chips; those beyond `tried` run at night."""
    night = [pytest.mark.nightly]
    pairs = [
        pytest.param(case, arch, id=f"{case.name}-{arch}", marks=[] if arch in case.tried else night)
        for case in cases
        for arch in CHIPS
    ]
    return pytest.mark.parametrize("case, arch", pairs)


def by_wave(fn: Callable[[int, list], Any], wave: int, *arrays: np.ndarray) -> list:
    """Return fn(lane, the wave's values of each array) for each lane of each wave."""
    rows = [x.reshape(-1, wave) for x in arrays]
    return [fn(lane, *(r[w] for r in rows)) for w in range(len(rows[0])) for lane in range(wave)]
