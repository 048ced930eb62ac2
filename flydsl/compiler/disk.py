"""Artifacts in the disk cache: what an entry is keyed by, and when the cache is used at all."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from types import CodeType

import flydsl
from flydsl.compiler.code_reads import code_reads, digests_of_file
from flydsl.compiler.fingerprint import Captured, described
from flydsl.compiler.jit_executor import CompiledArtifact
from flydsl.compiler.lines import line_tables, moved_places
from flydsl.diag import RunOnly, RunOnlyFolder, RunOnlyMiss
from flydsl.runtime.disk_cache import DiskCache, Entry
from flydsl.utils import env
from flydsl.utils.logger import log

_STARTED = time.time()
_MOST_COMPARED = 32
Part = tuple[str, str]


class DiskKey:
    """The key of one specialisation, and the parts that it is the hash of: for `flydsl cache explain`, which compares
    them."""

    def __init__(self, parts: dict[str, list[Part]], problems: tuple[str, ...]):
        self.parts = parts
        self.problems = problems  # why it cannot be stored
        self.text = hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def disk_key(key: tuple, names: Iterable[str], captured: Captured) -> DiskKey:
    """Return the key on disk of a key in memory (`JitFunction.key`)."""
    signatures, archs, hints, environment, _ = key
    arguments = described(zip(names, signatures, strict=True))
    parts = {
        "arguments": list(arguments.entries),
        "target": [("arch", archs[0]), ("arch of the helpers", archs[1])],
        "hints": [("hints", hints)],
        "environment": [(name, value) for name, value in environment],
        "toolchain": toolchain(),
        "captured": list(captured.entries),
    }
    return DiskKey(parts, (*arguments.opaque, *captured.opaque))


# --- the toolchain ----------------------------------------------------------------------------------------------------

_toolchain: dict[tuple[str, ...], list[Part]] = {}


def toolchain() -> list[Part]:
    """Return what identifies the compiler: versions, its own sources, `FLYDSL_EXTRA_SOURCE_DIRS`."""
    extra = tuple(env.runtime.extra_source_dirs)
    known = _toolchain.get(extra)
    if known is None:
        known = _toolchain[extra] = [
            ("flydsl", flydsl.__version__),
            ("sources", _sources_digest(os.path.dirname(flydsl.__file__))),
            ("MLIR", version_of("torch-mlir")),
            ("LLVM", version_of("llvmlite")),
            ("Python", f"{sys.implementation.cache_tag}"),
            *((f"extra sources {folder}", _sources_digest(folder)) for folder in extra),
        ]
    return known


def _sources_digest(folder: str) -> str:
    """Return a hash of the names and contents of the Python sources below a folder; without `tools`, which generate no
    code."""
    digest = hashlib.sha256()
    for where, folders, files in os.walk(folder):
        folders[:] = sorted(f for f in folders if f not in ("__pycache__", "tools"))
        for name in sorted(files):
            if name.endswith(".py"):
                path = os.path.join(where, name)
                with open(path, "rb") as f:
                    digest.update(f"{path[len(folder) :]}\0".encode() + hashlib.sha256(f.read()).digest())
    return digest.hexdigest()


def version_of(distribution: str) -> str:
    """Return the version of an installed distribution; from the name of its folder, since reading its metadata takes
    10 ms."""
    start = distribution.replace("-", "_") + "-"
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        for name in names:
            if name.startswith(start) and name.endswith(".dist-info"):
                return name[len(start) : -len(".dist-info")]
    import importlib.metadata  # 20 ms, for installations of another form

    return importlib.metadata.version(distribution)


# --- use --------------------------------------------------------------------------------------------------------------


def disk_cache() -> DiskCache | None:
    """Return the cache in force, or None: it is turned off, has no folder, or stages are dumped and nothing may be
    skipped.

    Raises   RunOnly, RunOnlyFolder: FLYDSL_RUNTIME_RUN_ONLY with switches that contradict it
    """
    folder = env.runtime.cache_dir
    dumping = env.debug.dump_ir or env.debug.dump_asm
    if env.runtime.run_only:
        if dumping:
            raise RunOnly(problem="stages are to be dumped, and they exist only while compiling")
        if not folder:
            raise RunOnlyFolder
        return DiskCache(folder, env.runtime.cache_limit << 20)
    shown = env.debug.print_origin_ir or env.debug.print_after_all or env.debug.ast_diff or env.debug.level >= 3
    if not folder or dumping or shown or not env.runtime.enable_cache:
        return None
    return DiskCache(folder, env.runtime.cache_limit << 20)


def load_or_compile(
    name: str, key: DiskKey, codes: tuple[CodeType, ...], compile_now: Callable[[], CompiledArtifact]
) -> tuple[CompiledArtifact, bool]:
    """Return (artifact, whether it came from disk). Of several processes that want the same one, one compiles and the
    others wait.

    Raises   RunOnlyMiss: FLYDSL_RUNTIME_RUN_ONLY and it is not there
    """
    cache = disk_cache()
    if cache is None:
        return compile_now(), False
    artifact = _load(cache, name, key, codes)
    if artifact is not None:
        if env.compile.compile_only and artifact.kernel_names:
            artifact.code_object()
        return artifact, True
    if env.debug.level >= 2:
        log.warning("cache: miss of %s %s: %s", name, key.text, _difference(cache, name, key))
    if env.runtime.run_only:
        problem = f"it is never stored: {'; '.join(key.problems)}" if key.problems else _difference(cache, name, key)
        raise RunOnlyMiss(problem=problem, function=name, key=key.text, folder=str(cache.folder))
    if key.problems:
        log.info("cache: %s is not stored: %s", name, "; ".join(key.problems))
        return compile_now(), False
    with cache.lock(name, key.text):
        artifact = _load(cache, name, key, codes)
        if artifact is not None:
            return artifact, True
        artifact = compile_now()
        if artifact.is_lowered and not artifact.post_load and sources_match(codes):
            _store(cache, name, key, artifact, codes)
    return artifact, False


def _load(cache: DiskCache, name: str, key: DiskKey, codes: tuple[CodeType, ...]) -> CompiledArtifact | None:
    entry = cache.load(name, key.text)
    if entry is None:
        return None
    try:
        if entry.facts["libraries"] != _libraries(entry.facts["libraries"]):
            return None
        artifact = CompiledArtifact.from_entry(entry)
        artifact.moved = moved_places(entry.facts["lines"], codes)
    except (KeyError, TypeError, ValueError, SyntaxError, AttributeError) as e:
        log.warning("cache: the entry %s of %s is ignored: %s", key.text, name, e)
        return None
    artifact.keep = _keeper(cache, name, key)
    return artifact


def _store(
    cache: DiskCache, name: str, key: DiskKey, artifact: CompiledArtifact, codes: tuple[CodeType, ...]
) -> None:
    facts = {"function": name, "parts": key.parts, "made": time.time(), "lines": line_tables(codes)}
    facts["libraries"] = _libraries(artifact.request.link_libs)
    artifact.to_entry(facts)
    if artifact.kernel_names:
        artifact.code_object() if env.compile.compile_only else artifact.prepare()
    cache.store(name, key.text, artifact.entry)
    artifact.keep = _keeper(cache, name, key)


def _libraries(paths: Iterable[str]) -> dict[str, str]:
    """Return the hash of each linked bitcode file; an entry whose files have changed is none."""
    found = {}
    for path in paths:
        try:
            with open(path, "rb") as f:
                found[path] = hashlib.sha256(f.read()).hexdigest()
        except OSError:
            found[path] = "missing"
    return found


def _difference(cache: DiskCache, name: str, key: DiskKey) -> str:
    """Return in what a specialisation differs from the entry of its function that is most like it."""
    found = []
    for stored in cache.entries(name)[-_MOST_COMPARED:]:
        entry = cache.load(name, stored.key)
        if entry is not None and "parts" in entry.facts:
            found.append((explain_difference(key.parts, entry.facts["parts"]), stored.key))
    if not found:
        return f"nothing of `{name}` is stored"
    lines, other = min(found, key=lambda f: len(f[0]))
    return f"no entry; it differs from {other[:12]} in {'; '.join(lines)}"


def _keeper(cache: DiskCache, name: str, key: DiskKey) -> Callable[[Entry], None]:
    def keep(entry: Entry) -> None:
        """Store an entry with what was made since; another process may have added other sections."""
        now = cache.load(name, key.text)
        if now is not None:
            entry.sections = {**now.sections, **entry.sections}
        if env.runtime.enable_cache and not env.runtime.run_only:
            cache.store(name, key.text, entry)

    return keep


def sources_match(codes: tuple[CodeType, ...]) -> bool:
    """Whether source files that changed after this process started still hold the code that runs.

    Kernels are traced from their source text, and the key is made of the running code: an entry with both from
    different times would be wrong.
    """
    for path in {c.co_filename for c in codes}:
        try:
            if os.stat(path).st_mtime < _STARTED - 1:
                continue
        except OSError:  # a notebook cell: its text does not change
            continue
        known = digests_of_file(path)
        if not all(code_reads(c).digest in known for c in codes if c.co_filename == path):
            log.info("cache: nothing is stored, %s was edited after it was imported", path)
            return False
    return True


def explain_difference(wanted: dict[str, list[Part]], stored: dict[str, list[Part]]) -> list[str]:
    """Return a line per part in which two keys differ."""
    lines = []
    for group in wanted:
        ours, theirs = dict(map(tuple, wanted[group])), dict(map(tuple, stored.get(group, ())))
        for name in [*ours, *(n for n in theirs if n not in ours)]:
            if ours.get(name) != theirs.get(name):
                stored_text, now = _shortened(theirs.get(name), ours.get(name))
                lines.append(f"{group}: {name}: stored {stored_text}, now {now}")
    return lines


def _shortened(*texts: str | None) -> list[str]:
    """Return texts that differ, cut to the place where they do."""
    common = len(os.path.commonprefix([t for t in texts if t is not None])) if None not in texts else 0
    start = max(0, common - 20) if any(t is not None and len(t) >= 60 for t in texts) else 0
    return ["nothing" if t is None else _cut(t, start) for t in texts]


def _cut(text: str, start: int) -> str:
    if len(text) < 60 and not start:
        return repr(text)
    if len(text) == 64 and set(text) <= set("0123456789abcdef"):
        return text[:12]
    return f"{'...' if start else ''}{text[start : start + 60]}{'...' if len(text) > start + 60 else ''}"
