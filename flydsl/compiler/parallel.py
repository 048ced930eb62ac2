"""Compiling several specialisations at once, in processes. Threads do not help: the bindings hold the interpreter lock.

    results = compile_many([Job(run, (a, b, 64)), Job(run, (a, b, 128), hints={"waves_per_eu": 2})])

Workers are forked from this process: they have everything imported already, and jobs need no pickling. They stay warm
for the next batch (`worker_pool`), which tells them its jobs as (function, arguments); one that does not come to the
same cache key, since something has changed here since the fork, is replaced. What workers compile comes back through
the disk cache (a temporary one where none is in force), so each job is compiled once and this process only reads
files. Where there is no fork, jobs are compiled one after the other.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import pickle
import select
import tempfile
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import field
from typing import Any

from flydsl.compiler import worker_pool
from flydsl.compiler.context import CompilationContext
from flydsl.compiler.disk import disk_cache, disk_key
from flydsl.compiler.jit_argument import JitArgument, without_memory
from flydsl.compiler.jit_executor import CompiledArtifact
from flydsl.compiler.jit_function import JitFunction
from flydsl.runtime.device import chip_for, chosen_for, get_rocm_arch
from flydsl.runtime.host_arrays import common_device
from flydsl.utils import env
from flydsl.utils.record import record

Progress = Callable[[int, int], None]


@record
class Job:
    """One specialisation: a jit function with arguments, hints and environment variables (such as ARCH)."""

    function: JitFunction
    args: tuple = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    hints: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)


@record
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
            reports = _Batch(jobs, progress).run(count)
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


@contextmanager
def _settings(job: Job) -> Iterator[None]:
    """Have a job's environment and hints in force."""
    hints = CompilationContext.compile_hints(job.hints) if job.hints else nullcontext()
    with env.override(**job.environment), hints:
        yield


def _compile(job: Job) -> tuple[CompiledArtifact | None, str | None]:
    try:
        with _settings(job):
            artifact = job.function.artifact_for(job.function.wrap_arguments(job.args, job.kwargs))
            if artifact.kernel_names:
                artifact.code_object()
        return artifact, None
    except Exception as e:  # whatever a configuration does wrong is its result
        return None, _failure(e)


def _failure(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


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

_numbers: weakref.WeakKeyDictionary[JitFunction, int] = weakref.WeakKeyDictionary()  # a process knows those before it
_count = itertools.count()
_batches = itertools.count()


@record
class _Order:
    """A job for a worker: its index in the batch that the worker was forked for, else what describes it and the key
    that both must come to."""

    environment: dict[str, str]
    folder: str
    chip: str
    hints: dict[str, Any]
    index: int | None = None
    function: int = -1
    arguments: bytes = b""
    key: str = ""


class _Batch:
    """The jobs of one call, and who works on which."""

    def __init__(self, jobs: Sequence[Job], progress: Progress | None):
        self.jobs, self.progress, self.number = jobs, progress, next(_batches)
        self.orders: dict[int, tuple[_Order, _Order | None]] = {}
        self.done: dict[int, dict] = {}
        self.workers: list[worker_pool.Worker] = []
        self.working: dict[worker_pool.Worker, int] = {}
        for job in jobs:
            if job.function not in _numbers:
                _numbers[job.function] = next(_count)
        for i, job in enumerate(jobs):
            try:
                self.orders[i] = _orders(job, i)
            except Exception as e:  # wrong arguments: the job's result
                self.report(i, {"error": _failure(e), "seconds": 0.0})
        self.waiting = list(self.orders)[::-1]

    def run(self, count: int) -> dict[int, dict]:
        """Compile all jobs in `count` workers; return the report of each."""
        with worker_pool.ended_on_error(self.workers, self.working.__contains__):
            while len(self.working) < count and self.waiting:
                worker = worker_pool.take_idle()
                if worker is not None:
                    self.workers.append(worker)
                self.begin(self.waiting.pop(), worker)
            while self.working:
                answers = {worker.answers: worker for worker in self.working}
                for handle in select.select(list(answers), [], [])[0]:
                    self.finish(answers[handle])
        return self.done

    def begin(self, index: int, worker: worker_pool.Worker | None) -> None:
        """Give a job to a worker; to a new one where this one cannot take it."""
        mine, described = self.orders[index]
        order = mine if worker is not None and worker.born == self.number else described
        try:
            if worker is None or order is None:
                raise worker_pool.WorkerDied
            worker.give(order)
            self.working[worker] = index
        except worker_pool.WorkerDied:
            self.replace(index, worker)

    def replace(self, index: int, worker: worker_pool.Worker | None) -> None:
        """Give a job to a new worker, in the place of one that is of no use."""
        if worker is not None:
            self.end(worker)
        worker = worker_pool.Worker(_Server(self.jobs), self.number)
        self.workers.append(worker)
        worker.give(self.orders[index][0])
        self.working[worker] = index

    def end(self, worker: worker_pool.Worker) -> None:
        self.workers.remove(worker)
        worker.end()

    def finish(self, worker: worker_pool.Worker) -> None:
        """Take a worker's report; it goes on with the next job."""
        index = self.working.pop(worker)
        try:
            report = worker.read()
        except worker_pool.WorkerDied:
            report = None
        if worker.born != self.number and (report is None or report.get("stale")):
            self.replace(index, worker)  # it knew another state of this process, or ended for want of work
            return
        if report is None:
            self.end(worker)
        self.report(index, report or {"error": "the compiling process died", "seconds": 0.0})
        if self.waiting:
            self.begin(self.waiting.pop(), worker if report else None)

    def report(self, index: int, report: dict) -> None:
        self.done[index] = report
        if self.progress is not None:
            self.progress(len(self.done), len(self.jobs))


def _orders(job: Job, index: int) -> tuple[_Order, _Order | None]:
    """Return the order for a worker of this batch, and that for an older one; None where the arguments cannot be
    sent."""
    with _settings(job):
        arguments = job.function.wrap_arguments(job.args, job.kwargs)
        with chosen_for(chip_for(common_device([(n, b) for n, a in arguments if (b := a.buffer()) is not None]))):
            chip = get_rocm_arch()  # known here, since a forked process must not ask HIP
            here = _Order(dict(os.environ), os.getcwd(), chip, job.hints, index)
            try:
                sent = pickle.dumps([(name, without_memory(argument)) for name, argument in arguments])
                pickle.dumps(job.hints)
            except Exception:  # values of the user's may refuse in any way
                return here, None
            key = _key_text(job.function, arguments)
    number = _numbers[job.function]
    return here, dataclasses.replace(here, index=None, function=number, arguments=sent, key=key)


def _key_text(function: JitFunction, arguments: Sequence[tuple[str, JitArgument]]) -> str:
    return disk_key(function.key(arguments), [name for name, _ in arguments], function.state().captured).text


class _Server:
    """What a worker does: it knows the jobs of the batch that it was forked for, and all functions of earlier ones."""

    def __init__(self, jobs: Sequence[Job]):
        self.jobs = jobs
        self.functions = {number: function for function, number in _numbers.items()}

    def __call__(self, order: _Order) -> dict[str, Any]:
        started = time.perf_counter()
        os.environ.clear()
        os.environ.update(order.environment)
        with chosen_for(order.chip):
            try:
                os.chdir(order.folder)
                report = self._report(order)
            except Exception as e:  # it cannot even be told what to do: a new process is
                report = {"error": _failure(e), "stale": order.index is None}
        return {**report, "seconds": time.perf_counter() - started}

    def _report(self, order: _Order) -> dict[str, Any]:
        if order.index is not None:
            job = self.jobs[order.index]
        else:
            arguments = pickle.loads(order.arguments)
            job = Job(self.functions[order.function], (), dict(arguments), order.hints)
            with _settings(job):
                if _key_text(job.function, arguments) != order.key:
                    return {"error": None, "stale": True}
        return {"error": _compile(dataclasses.replace(job, environment={}))[1]}
