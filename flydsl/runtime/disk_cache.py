"""The cache on disk: one file per entry, `{folder}/{function}/{key}.flydsl`. Knows bytes only, neither IR nor targets.

A file is a line with the SHA-256 of the rest, a line of JSON (facts, and the sections' names and sizes), and the
sections. Nothing in it is unpickled; a file whose hash, owner or mode is wrong is no entry. Entries are written to a
temporary file and renamed, so a process that dies leaves a whole entry or none. A lock file per entry makes processes
that want the same one compile it once.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flydsl.utils.logger import say_once
from flydsl.utils.record import record

try:
    import fcntl
except ImportError:  # Windows: entries stay whole, but two processes may compile the same one
    fcntl = None

SUFFIX = ".flydsl"
_MAGIC = b"flydsl-entry 1 "
_MOST_BYTES = 1 << 30  # of one entry
_STALE_S = 3600  # temporary files that old belong to a process that died
_TOUCH_S = 60
_OPEN = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
WRITER_TIMEOUT_S = 600.0


@dataclass
class Entry:
    """`facts` are JSON values, `sections` bytes by name."""

    facts: dict[str, Any]
    sections: dict[str, bytes] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """Return the file's content."""
        header = {"facts": self.facts, "sections": [[name, len(data)] for name, data in self.sections.items()]}
        body = b"".join([json.dumps(header).encode(), b"\n", *self.sections.values()])
        return _MAGIC + hashlib.sha256(body).hexdigest().encode() + b"\n" + body

    @classmethod
    def from_bytes(cls, data: bytes) -> Entry:
        """Return the entry of a file's content.

        Raises   ValueError: it is damaged
        """
        first, _, body = data.partition(b"\n")
        if not first.startswith(_MAGIC) or first[len(_MAGIC) :] != hashlib.sha256(body).hexdigest().encode():
            raise ValueError("its content does not have the hash that it states")
        line, _, rest = body.partition(b"\n")
        header = json.loads(line)
        entry, at = cls(header["facts"]), 0
        for name, size in header["sections"]:
            if type(size) is not int or size < 0 or at + size > len(rest):
                raise ValueError("a section does not fit the file")
            entry.sections[name] = rest[at : at + size]
            at += size
        return entry


@record
class Stored:
    """A file of the cache as `entries` lists it."""

    function: str
    key: str
    path: Path
    size: int
    used: float


class DiskCache:
    """The entries below one folder, which is made on first use with mode 0700."""

    def __init__(self, folder: str | Path, limit_bytes: int = 1 << 30):
        self.folder = Path(folder).expanduser()
        self.limit_bytes = limit_bytes

    def path(self, function: str, key: str) -> Path:
        """Return where an entry is."""
        return self.folder / _file_name(function) / f"{key}{SUFFIX}"

    def load(self, function: str, key: str) -> Entry | None:
        """Return an entry, or None: it is not there, or it is damaged or not ours."""
        path = self.path(function, key)
        try:
            data = _read(path)
            entry = Entry.from_bytes(data)
        except FileNotFoundError:
            return None
        except PermissionError as e:
            say_once(f"cache: {e}", notice=False)
            return None
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as e:
            say_once(f"cache: {path} is ignored: {e}", notice=False)
            _remove(path)
            return None
        _touch(path)
        return entry

    def store(self, function: str, key: str, entry: Entry) -> bool:
        """Write an entry; False, with one line in the log, where that is not possible."""
        path = self.path(function, key)
        temporary = None
        try:
            self._make_folder(path.parent)
            handle, temporary = tempfile.mkstemp(prefix=f".{key[:16]}-", suffix=".tmp", dir=path.parent)
            with os.fdopen(handle, "wb") as f:
                f.write(entry.to_bytes())
            os.replace(temporary, path)
        except OSError as e:
            if temporary is not None:
                _remove(Path(temporary))
            say_once(f"cache: nothing is stored in {self.folder}: {e}", notice=False)
            return False
        self.trim()
        return True

    @contextmanager
    def lock(self, function: str, key: str, timeout_s: float = WRITER_TIMEOUT_S) -> Iterator[bool]:
        """Hold the lock of an entry; yields whether it is held. Without it (no right to write, time over) work goes
        on, perhaps twice."""
        path = self.path(function, key).with_suffix(".lock")
        handle = self._open_lock(path, timeout_s)
        try:
            yield handle is not None
        finally:
            if handle is not None:
                _remove(path)  # while it is held: who waits holds the same file, who comes later finds the entry
                os.close(handle)

    def _open_lock(self, path: Path, timeout_s: float) -> int | None:
        if fcntl is None:
            return None
        try:
            self._make_folder(path.parent)
            handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        except OSError:
            return None
        end = time.monotonic() + timeout_s
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return handle
            except BlockingIOError:
                if time.monotonic() > end:
                    say_once(f"cache: {path} is held by another process for {timeout_s:.0f} s; compiling without it", notice=False)
                    os.close(handle)
                    return None
                time.sleep(0.01)  # flock has no time limit of its own
            except OSError:
                os.close(handle)
                return None

    def entries(self, function: str | None = None) -> list[Stored]:
        """Return what is stored, the least recently used first."""
        folders = [self.folder / _file_name(function)] if function else _folders(self.folder)
        found = []
        for folder in folders:
            for item in _scan(folder):
                if item.name.endswith(SUFFIX):
                    try:
                        facts = item.stat()
                    except OSError:
                        continue
                    key = item.name[: -len(SUFFIX)]
                    found.append(Stored(folder.name, key, Path(item.path), facts.st_size, facts.st_mtime))
        return sorted(found, key=lambda s: s.used)

    def trim(self) -> int:
        """Remove the least recently used entries above the limit, and what dead processes left; return how many
        entries went."""
        entries = self.entries()
        excess = sum(s.size for s in entries) - self.limit_bytes
        removed = 0
        for stored in entries:
            if excess <= 0:
                break
            _remove(stored.path)
            excess -= stored.size
            removed += 1
        old = time.time() - _STALE_S
        for folder in _folders(self.folder):
            for item in _scan(folder):
                if item.name.endswith(".tmp") and item.stat().st_mtime < old:
                    _remove(Path(item.path))
        return removed

    def clear(self, function: str | None = None) -> int:
        """Remove all entries, or those of one function; return how many."""
        entries = self.entries(function)
        for stored in entries:
            _remove(stored.path)
        for folder in [self.folder / _file_name(function)] if function else _folders(self.folder):
            if all(i.name.endswith((SUFFIX, ".lock", ".tmp")) for i in _scan(folder)):
                shutil.rmtree(folder, ignore_errors=True)
        return len(entries)

    def _make_folder(self, folder: Path) -> None:
        if not self.folder.is_dir():
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
        if not _is_ours(os.stat(self.folder)):
            raise PermissionError(f"{self.folder} belongs to another user, or others may write to it (chmod 700)")
        folder.mkdir(mode=0o700, exist_ok=True)


def _read(path: Path) -> bytes:
    """Return a file's bytes; it and its folders must be ours, since what it holds will run."""
    handle = os.open(path, _OPEN)
    with os.fdopen(handle, "rb") as f:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > _MOST_BYTES:
            raise ValueError("it is no regular file of a plausible size")
        for where, found in (
            (path, facts),
            (path.parent, os.stat(path.parent)),
            (path.parent.parent, os.stat(path.parent.parent)),
        ):
            if not _is_ours(found):
                raise PermissionError(f"{where} belongs to another user, or others may write to it (chmod 700)")
        return f.read()


def _is_ours(facts: os.stat_result) -> bool:
    if not hasattr(os, "getuid"):
        return True
    return facts.st_uid in (os.getuid(), 0) and not facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _file_name(function: str) -> str:
    name = re.sub(r"[^A-Za-z0-9_]", "_", function)[:80]
    return name if name == function else f"{name}_{hashlib.sha256(function.encode()).hexdigest()[:8]}"


def _folders(folder: Path) -> list[Path]:
    return [Path(item.path) for item in _scan(folder) if item.is_dir(follow_symlinks=False)]


def _scan(folder: Path) -> list[os.DirEntry]:
    try:
        with os.scandir(folder) as items:
            return list(items)
    except OSError:
        return []


def _remove(path: Path) -> None:
    try:
        path.unlink()
    except OSError:  # already gone, or not ours to remove: then it is met again
        pass


def _touch(path: Path) -> None:
    """Say that an entry was used, at most once a minute."""
    try:
        if time.time() - path.stat().st_mtime > _TOUCH_S:
            os.utime(path)
    except OSError:
        pass
