"""Every example also runs from the text of its lowered IR, in a process that never imports the front end, to the same bytes."""

import json
import os
import pathlib
import runpy
import subprocess
import sys

import numpy as np
import pytest

from flydsl.runtime.sim import SimLoaded

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("[0-9]*.py"))
MAX_LAUNCHES = 2  # per module: the largest case of an example comes first


class Recorder:
    """Stands in for SimLoaded.launcher: runs the launch and keeps what it needs to be run again."""

    def __init__(self):
        self.modules: dict[int, tuple[str, list, dict]] = {}

    def launcher(self, loaded: SimLoaded, buffers: list):
        launch = ORIGINAL(loaded, buffers)
        text, records, data = self.modules.setdefault(id(loaded), (loaded.artifact.ir, [], {}))

        def recorded(kernel, grid, block, cluster, smem, stream, args):
            if len(records) >= MAX_LAUNCHES or sum(b.extent_bytes[1] for _, b in buffers) > 1 << 24:
                launch(kernel, grid, block, cluster, smem, stream, args)
                return
            before = {name: raw_bytes(b) for name, b in buffers}
            launch(kernel, grid, block, cluster, smem, stream, args)
            number = len(records)
            for name, b in buffers:
                data[f"{number}/{name}/before"], data[f"{number}/{name}/after"] = before[name], raw_bytes(b)
            places = {b.address: [name, 0] for name, b in buffers}
            records.append(
                {
                    "kernel": kernel,
                    "grid": grid,
                    "block": block,
                    "smem": smem,
                    "args": [places.get(a, a) for a in args],
                    "arrays": [name for name, _ in buffers],
                }
            )

        return recorded


ORIGINAL = SimLoaded.launcher


def raw_bytes(buffer) -> np.ndarray:
    """Return a copy of a buffer's memory as bytes."""
    import ctypes

    low, high = buffer.extent_bytes
    return np.frombuffer(ctypes.string_at(buffer.address + low, high - low), np.uint8).copy()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.stem)
def test_example_from_its_lowered_text(example, tmp_path, monkeypatch, capsys) -> None:
    recorder = Recorder()
    monkeypatch.setattr(SimLoaded, "launcher", lambda loaded, buffers: recorder.launcher(loaded, buffers))
    runpy.run_path(str(example), run_name="__main__")
    modules = [m for m in recorder.modules.values() if m[1]][:2]
    assert modules
    for number, (text, records, data) in enumerate(modules):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "module.mlir").write_text(text)
        np.savez(folder / "launches.npz", records=json.dumps(records), **data)
        script = pathlib.Path(__file__).with_name("run_lowered.py")
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        out = subprocess.run([sys.executable, str(script), str(folder)], capture_output=True, text=True, env=env)
        assert out.returncode == 0, out.stderr[-3000:]
        assert f"{len(records)} launches agree" in out.stdout
