"""A warm process that generates code for modules LLVM might abort on; an abort becomes a Python exception here.

One worker per set of LLVM options (they are process-wide and cannot be taken back), at most `_MOST_WORKERS` at
a time.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flydsl.targets.rocm.codegen import Request
    from flydsl.targets.rocm.options import OptionValue

_MOST_WORKERS = 4
_TIMEOUT_S = 600.0


class WorkerDied(Exception):
    """The worker ended while it worked; `log` is what it printed, `status` its exit status."""

    def __init__(self, log: str, status: int | None) -> None:
        super().__init__(log or f"exit status {status}")
        self.log, self.status = log, status


class WorkerRefused(Exception):
    """LLVM refused the text in the worker; `symbols` as in `codegen.LlvmError`."""

    def __init__(self, text: str, symbols: tuple[str, ...]) -> None:
        super().__init__(text)
        self.symbols = symbols


class Worker:
    """One process. Not for use by several threads at once: `generate` takes the lock."""

    def __init__(self, llvm_options: tuple[tuple[str, OptionValue], ...]) -> None:
        self._log = tempfile.TemporaryFile(prefix="flydsl-worker-")
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("worker_main.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        )
        self._write({"path": sys.path, "llvm_options": llvm_options}, [])
        self._read_header()
        if llvm_options and (complaint := self._read_log()):  # a value that does not fit the option is only printed
            self.close()
            raise WorkerDied(complaint, None)

    @property
    def is_alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def generate(self, request: Request) -> dict[str, str | bytes]:
        """Return what `codegen.generate` returns for `request`.

        Raises   WorkerDied: LLVM ended the process, or it took too long; WorkerRefused: LLVM refused the text
        """
        with self._lock:
            self._log.seek(0)
            self._log.truncate()
            timer = threading.Timer(_TIMEOUT_S, self._process.kill)
            timer.start()
            try:
                return self._exchange(request)
            finally:
                timer.cancel()

    def _exchange(self, request: Request) -> dict[str, str | bytes]:
        text = request.text.encode()
        header = {
            "cpu": request.cpu,
            "opt_level": request.opt_level,
            "level": request.level,
            "outputs": request.outputs,
            "link_libs": request.link_libs,
            "text_bytes": len(text),
            "bitcode_bytes": len(request.bitcode),
        }
        self._write(header, [text, request.bitcode])
        reply = self._read_header()
        if "error" in reply:
            raise WorkerRefused(reply["error"], tuple(reply["symbols"]))
        results: dict[str, str | bytes] = {}
        for name, is_text, size in reply["results"]:
            part = self._process.stdout.read(size)
            results[name] = part.decode() if is_text else part
        return results

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._log):
            try:
                stream.close()
            except OSError:  # the pipe of a dead process: nothing is lost
                pass

    def _write(self, header: dict[str, Any], parts: list[bytes]) -> None:
        try:
            self._process.stdin.write(json.dumps(header).encode() + b"\n")
            for part in parts:
                self._process.stdin.write(part)
            self._process.stdin.flush()
        except OSError:
            raise self._death() from None

    def _read_header(self) -> dict[str, Any]:
        line = self._process.stdout.readline()
        if not line:
            raise self._death()
        return json.loads(line)

    def _death(self) -> WorkerDied:
        try:
            status = self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait()
        return WorkerDied(self._read_log(), status)

    def _read_log(self) -> str:
        self._log.seek(0)
        return self._log.read().decode(errors="replace").strip()


@functools.cache
def known_llvm_options() -> frozenset[str]:
    """Return the names of LLVM's options, as `--help-hidden` lists them (one short process)."""
    program = "import llvmlite.binding as b; b.set_option('', '--help-hidden')"
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )
    return frozenset(re.findall(r"^ +-{1,2}([\w.-]+)", result.stdout, re.MULTILINE))


_workers: OrderedDict[tuple, Worker] = OrderedDict()
_workers_lock = threading.Lock()


def get_worker(llvm_options: tuple[tuple[str, OptionValue], ...] = ()) -> Worker:
    """Return a living worker whose LLVM has these options.

    Raises   WorkerDied: LLVM does not know one of them
    """
    with _workers_lock:
        worker = _workers.pop(llvm_options, None)
        if worker is not None and not worker.is_alive:
            worker.close()
            worker = None
        worker = worker or Worker(llvm_options)
        _workers[llvm_options] = worker
        while len(_workers) > _MOST_WORKERS:
            _workers.popitem(last=False)[1].close()
        return worker


def close_workers() -> None:
    """End all workers; the next module that needs one starts it again."""
    with _workers_lock:
        while _workers:
            _workers.popitem()[1].close()


atexit.register(close_workers)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_workers.clear)  # a child must not share its parent's pipes
