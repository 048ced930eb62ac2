"""Compiling several specialisations at once, in processes. Threads do not help: the bindings hold the interpreter lock.

    results = compile_many([Job(run, (a, b, 64)), Job(run, (a, b, 128), hints={"waves_per_eu": 2})])

Workers are forked from this process: they have everything imported already, and jobs need no pickling. What they
compile comes back through the disk cache (a temporary one where none is in force), so each job is compiled once and
this process only reads files. Where there is no fork, jobs are compiled one after the other.
"""

from __future__ import annotations

import json
import os
import select
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from flydsl.compiler.context import CompilationContext
from flydsl.compiler.disk import disk_cache
from flydsl.compiler.jit_executor import CompiledArtifact
from flydsl.compiler.jit_function import JitFunction
from flydsl.utils import env

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Job:
    """One specialisation: a jit function with arguments, hints and environment variables (such as ARCH)."""

    function: JitFunction
    args: tuple = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    hints: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Result:
    """The artifact with its code, or why there is none. `seconds` is the time in the worker."""

    job: Job
    artifact: CompiledArtifact | None
    error: str | None
    seconds: float


def compile_many(jobs: Sequence[Job], workers: int | None = None, progress: Progress | None = None) -> list[Result]:
    """Compile all jobs to code objects and return their results in order; a job that fails does not stop the others.

    `workers`: processes, by default one per core; `progress(done, total)` is called after each job.
    """
    count = min(workers or os.cpu_count() or 1, len(jobs))
    with _some_disk_cache():
        if count > 1 and hasattr(os, "fork"):
            reports = _in_workers(jobs, count, progress)
        else:
            reports = {}
        return [
            _result(job, reports.get(i), i, len(jobs), progress if not reports else None) for i, job in enumerate(jobs)
        ]


def _result(job: Job, report: dict | None, index: int, total: int, progress: Progress | None) -> Result:
    """Return a job's result: from the disk cache after a worker has made it, else compiled here."""
    if report is None or report["error"] is None:
        started = time.perf_counter()
        artifact, error = _compile(job)
        seconds = report["seconds"] if report else time.perf_counter() - started
    else:
        artifact, error, seconds = None, report["error"], report["seconds"]
    if progress is not None:
        progress(index + 1, total)
    return Result(job, artifact, error, seconds)


def _compile(job: Job) -> tuple[CompiledArtifact | None, str | None]:
    hints = CompilationContext.compile_hints(job.hints) if job.hints else nullcontext()
    try:
        with env.override(**job.environment), hints:
            artifact = job.function.artifact_for(job.function.wrap_arguments(job.args, job.kwargs))
            if artifact.kernel_names:
                artifact.code_object()
        return artifact, None
    except Exception as e:  # whatever a configuration does wrong is its result
        return None, f"{type(e).__name__}: {e}"


@contextmanager
def _some_disk_cache() -> Iterator[None]:
    """Have a disk cache inside the block: results of workers come back through it."""
    if env.runtime.run_only or disk_cache() is not None:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="flydsl-parallel-") as folder:
        changes = {"FLYDSL_RUNTIME_CACHE_DIR": folder, "FLYDSL_RUNTIME_ENABLE_CACHE": "1", "FLYDSL_DUMP_IR": None}
        with env.override(**changes, FLYDSL_DEBUG_DUMP_ASM=None):
            yield


# --- workers ----------------------------------------------------------------------------------------------------------


class _Worker:
    """A forked process: job numbers go in, reports (a JSON line each) come out."""

    def __init__(self, jobs: Sequence[Job], others: Sequence[_Worker]):
        down, up = os.pipe(), os.pipe()
        sys.stdout.flush()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # a fork beside threads: the child uses none of theirs
            self.pid = os.fork()
        if self.pid == 0:
            for other in others:
                os.close(other.jobs)
                os.close(other.reports)
            os.close(down[1])
            os.close(up[0])
            _serve(jobs, down[0], up[1])
        os.close(down[0])
        os.close(up[1])
        self.jobs, self.reports = down[1], up[0]
        self.busy_with: int | None = None

    def give(self, index: int) -> None:
        self.busy_with = index
        os.write(self.jobs, index.to_bytes(4, "little"))

    def read(self) -> dict:
        """Return the report of the job; a worker that died is a failed job."""
        data = b""
        while not data.endswith(b"\n"):
            part = os.read(self.reports, 1 << 16)
            if not part:
                return {"error": "the compiling process died", "seconds": 0.0, "died": True}
            data += part
        return json.loads(data)

    def end(self) -> None:
        os.close(self.jobs)
        os.close(self.reports)
        os.waitpid(self.pid, 0)


def _serve(jobs: Sequence[Job], orders: int, reports: int) -> None:
    """Compile job after job until the pipe closes; never returns."""
    try:
        while len(order := os.read(orders, 4)) == 4:
            started = time.perf_counter()
            _, error = _compile(jobs[int.from_bytes(order, "little")])
            report = {"error": error, "seconds": time.perf_counter() - started}
            os.write(reports, json.dumps(report).encode() + b"\n")
    finally:
        os._exit(0)


def _in_workers(jobs: Sequence[Job], count: int, progress: Progress | None) -> dict[int, dict]:
    """Compile all jobs in `count` workers; return the report of each."""
    waiting = list(range(len(jobs)))[::-1]
    done: dict[int, dict] = {}
    workers: list[_Worker] = []
    try:
        for _ in range(count):
            workers.append(_Worker(jobs, workers))
            workers[-1].give(waiting.pop())
        while len(done) < len(jobs):
            busy = {w.reports: w for w in workers if w.busy_with is not None}
            for handle in select.select(list(busy), [], [])[0]:
                worker = busy[handle]
                report = done[worker.busy_with] = worker.read()
                worker.busy_with = None
                if progress is not None:
                    progress(len(done), len(jobs))
                if report.get("died"):
                    workers.remove(worker)
                    worker.end()
                    if waiting:
                        workers.append(worker := _Worker(jobs, workers))
                if waiting:
                    worker.give(waiting.pop())
    finally:
        for worker in workers:
            worker.end()
    return done
