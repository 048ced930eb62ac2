"""The disk cache: which edits recompile, and that nothing that happens to the folder can hurt a compile."""

import importlib.util
import json
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import flydsl.compiler as flyc
from flydsl.diag import FlyError
from flydsl.runtime import disk_cache
from flydsl.runtime.disk_cache import DiskCache, Entry
from flydsl.runtime.stored_artifact import HOST, SIM
from flydsl.utils import logger

SOURCE = """
    import flydsl.compiler as flyc
    import flydsl.expr as fx
    import {settings} as settings

    SCALE = 2
    UNRELATED = 1


    def helper(x):
        return second(x) + 1.0


    def second(x):
        return x * 3.0


    def make(offset):
        @flyc.kernel
        def kernel(a: fx.Tensor, b: fx.Tensor):
            # a comment
            i = fx.thread_idx.x
            b[i] = helper(a[i]) * SCALE + offset + settings.limits.depth

        @flyc.jit
        def run(a: fx.Tensor, b: fx.Tensor):
            kernel(a, b).launch(grid=(1,), block=(64, 1, 1))

        return run


    run = make(5)
"""
SETTINGS = """
    class limits:
        depth = 7
"""
X = np.arange(64, dtype=np.float32)


@pytest.fixture
def cache_dir(tmp_path, monkeypatch):
    """An empty cache in force."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("FLYDSL_RUNTIME_CACHE_DIR", str(folder))
    monkeypatch.setattr(logger, "_said", set())
    return folder


class Program:
    """A module in a file that tests edit; each `load` imports it anew, as another process would."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.settings_name = f"settings_{id(self)}"
        self.write(SOURCE, SETTINGS)

    def write(self, source: str, settings: str) -> None:
        self.source = textwrap.dedent(source).replace("{settings}", self.settings_name)
        self.settings = textwrap.dedent(settings)

    def load(self, **arguments):
        (self.folder / "program.py").write_text(self.source)
        (self.folder / f"{self.settings_name}.py").write_text(self.settings)
        sys.modules.pop(self.settings_name, None)
        settings = _load(self.folder / f"{self.settings_name}.py", self.settings_name)
        sys.modules[self.settings_name] = settings
        return _load(self.folder / "program.py", "program")

    def compiles(self) -> int:
        """Run it; return how often it compiled (0 or 1)."""
        module = self.load()
        out = np.zeros_like(X)
        module.run(X, out)
        return module.run.cache_info().misses


def _load(path: pathlib.Path, name: str):
    import linecache

    linecache.checkcache()
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    exec(compile(path.read_text(), str(path), "exec"), module.__dict__)
    return module


@pytest.fixture
def program(tmp_path, cache_dir):
    """The program, compiled and cached."""
    made = Program(tmp_path / "program")
    assert made.compiles() == 1
    assert made.compiles() == 0
    return made


EDITS = {
    "helper": ("+ 1.0", "+ 2.0"),
    "helper of the helper": ("x * 3.0", "x * 4.0"),
    "closure value": ("make(5)", "make(6)"),
    "global": ("SCALE = 2", "SCALE = 3"),
    "kernel": ("a[i]) *", "a[i] + 1.0) *"),
    "nested attribute": ("depth = 7", "depth = 8"),
    "known block size": ("@flyc.kernel", "@flyc.kernel(known_block_size=(64, 1, 1))"),
    "annotation": ("def run(a: fx.Tensor, b: fx.Tensor)", "def run(a: fx.Tensor, b)"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_edit_recompiles(program, edit) -> None:
    before, after = EDITS[edit]
    changed = program.source.replace(before, after), program.settings.replace(before, after)
    assert changed != (program.source, program.settings)
    program.source, program.settings = changed
    assert program.compiles() == 1
    assert program.compiles() == 0


@pytest.mark.parametrize(
    "edit",
    [
        ("# a comment", "# another\n            # comment"),
        ("UNRELATED = 1", "UNRELATED = 2"),
        ("SCALE = 2", "\n\nSCALE = 1 + 1"),
    ],
    ids=["comment", "unrelated global", "moved lines"],
)
def test_edit_does_not_recompile(program, edit) -> None:
    program.source = program.source.replace(*edit)
    assert program.compiles() == 0


def test_findings_name_the_present_line(program) -> None:
    """An entry that was made before lines moved: a fault is reported where the code stands now."""
    program.source = program.source.replace("a[i])", "a[i + 1])")
    lines = []
    for edit in ("", "\n\n# more lines\n"):
        program.source = edit + program.source
        module = program.load()
        with pytest.raises(FlyError) as e:
            module.run(X, np.zeros_like(X))
        lines.append(e.value.span.line)
        assert program.source.splitlines()[e.value.span.line - 1].strip().startswith("b[i] = helper(a[i + 1])")
    assert lines[1] == lines[0] + 3
    assert module.run.cache_info().misses == 0


ENVIRONMENTS = {
    "environment": {"FLYDSL_COMPILE_OPT_LEVEL": "1"},
    "arch": {"ARCH": "gfx950"},
    "arch of the device": {"FLYDSL_GPU_ARCH": "gfx1201"},
    "debug information": {"FLYDSL_DEBUG_ENABLE_DEBUG_INFO": "1"},
}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_environment_recompiles(program, monkeypatch, name) -> None:
    for variable, value in ENVIRONMENTS[name].items():
        monkeypatch.setenv(variable, value)
    assert program.compiles() == 1
    assert program.compiles() == 0


SAME = {
    "the default level": {"FLYDSL_COMPILE_OPT_LEVEL": "2"},
    "the default level in hexadecimal": {"FLYDSL_COMPILE_OPT_LEVEL": "0x2"},
    "no debug information": {"FLYDSL_DEBUG_ENABLE_DEBUG_INFO": "no"},
    "the default backend": {"FLYDSL_COMPILE_BACKEND": " ROCm"},
    "the default depth": {"FLYDSL_DEBUG_MAX_LOC_DEPTH": "5"},
    "an empty text": {"FLYDSL_DEBUG_MAX_LOC_DEPTH": ""},
}


@pytest.mark.parametrize("name", SAME)
def test_other_words_for_the_same_value_do_not_recompile(program, monkeypatch, name) -> None:
    for variable, value in SAME[name].items():
        monkeypatch.setenv(variable, value)
    assert program.compiles() == 0


def test_other_words_for_the_same_value_are_one_specialisation(program, monkeypatch) -> None:
    """In memory as well: the call looks anew, and finds what it has."""
    module = program.load()
    for value in ("1", "0x1", " 1"):
        monkeypatch.setenv("FLYDSL_COMPILE_OPT_LEVEL", value)
        module.run(X, np.zeros_like(X))
    assert module.run.cache_info()[0] == 2 and module.run.cache_info().misses == 1


def test_unrelated_environment_does_not_recompile(program, monkeypatch) -> None:
    monkeypatch.setenv("FLYDSL_SIM_CHECK", "bounds")
    monkeypatch.setenv("USER", "somebody")
    assert program.compiles() == 0


def test_arch_by_variable_or_detected_is_one_entry(program, monkeypatch) -> None:
    monkeypatch.setenv("ARCH", "gfx942")
    assert program.compiles() == 0


def test_option_and_static_shape_recompile(program) -> None:
    for change in ("hint", "shape"):
        module = program.load()
        argument = flyc.from_dlpack(X) if change == "shape" else X
        if change == "hint":
            flyc.compile[{"waves_per_eu": 2}](module.run)
        module.run(argument, np.zeros_like(X))
        assert module.run.cache_info().misses == 1, change
    module = program.load()
    for n, misses in ((64, 0), (128, 1), (64, 1)):
        module.run(flyc.from_dlpack(np.zeros(n, np.float32)), np.zeros_like(X))
        assert module.run.cache_info().misses == misses


def test_toolchain_is_part_of_the_key(program, monkeypatch, tmp_path) -> None:
    from flydsl.compiler import disk

    extra = tmp_path / "extra"
    extra.mkdir()
    (extra / "library.py").write_text("A = 1\n")
    monkeypatch.setenv("FLYDSL_EXTRA_SOURCE_DIRS", str(extra))
    monkeypatch.setattr(disk, "_toolchain", {})
    assert program.compiles() == 1
    (extra / "library.py").write_text("A = 2\n")
    monkeypatch.setattr(disk, "_toolchain", {})
    assert program.compiles() == 1
    monkeypatch.setattr(disk, "version_of", lambda name: "9.9")
    monkeypatch.setattr(disk, "_toolchain", {})
    assert program.compiles() == 1


def test_source_edited_after_import_is_not_stored(program) -> None:
    """The running code is old, the text that would be traced is new: an entry made of both would be wrong for ever."""
    program.source = program.source.replace("SCALE = 2", "SCALE = 9")
    module = program.load()
    (program.folder / "program.py").write_text(program.source.replace("a[i]) *", "a[i] + 7.0) *"))
    before = len(DiskCache(os.environ["FLYDSL_RUNTIME_CACHE_DIR"]).entries())
    module.run(X, np.zeros_like(X))
    assert len(DiskCache(os.environ["FLYDSL_RUNTIME_CACHE_DIR"]).entries()) == before


def test_cached_artifact_computes_the_same(program) -> None:
    module, again = program.load(), program.load()
    results = []
    for m in (module, again):
        out = np.zeros_like(X)
        m.run(X, out)
        results.append(out)
    np.testing.assert_array_equal(*results)
    np.testing.assert_array_equal(results[0], (X * 3 + 1) * 2 + 5 + 7)
    artifact = again.run._last_compiled[1]
    assert "gpu.func" in artifact.source_ir and "llvm" in artifact.ir
    assert artifact.codegen().hsaco[:4] == b"\x7fELF" and artifact.stats


def entry_file(cache_dir) -> pathlib.Path:
    (path,) = cache_dir.rglob("*.flydsl")
    return path


def test_files_hold_no_pickles(program, cache_dir) -> None:
    for path in cache_dir.rglob("*"):
        if path.is_file():
            entry = Entry.from_bytes(path.read_bytes())
            json.dumps(entry.facts)
            assert set(entry.sections) <= {
                "host.py",
                "lowered.mlir",
                "origin.mlir",
                "sim.json",
                "code.hsaco",
                "kernels.json",
                "code.s",
            }
            assert len(path.read_bytes()) < 32768
    assert cache_dir.stat().st_mode & 0o777 == 0o700


DAMAGE = {
    "empty": lambda data: b"",
    "cut": lambda data: data[: len(data) // 2],
    "one bit": lambda data: data[:-100] + bytes([data[-100] ^ 1]) + data[-99:],
    "noise": lambda data: os.urandom(len(data)),
    "pickle": lambda data: b"\x80\x04cos\nsystem\n(S'echo'\ntR.",
    "huge sizes": lambda data: rebuilt(data, lambda h: h.update(sections=[["host.py", 2**60]])),
    "negative sizes": lambda data: rebuilt(data, lambda h: h.update(sections=[["host.py", -5]])),
    "no facts": lambda data: rebuilt(data, lambda h: h.update(facts={})),
    "wrong types": lambda data: rebuilt(data, lambda h: h.update(facts=[1], sections=7)),
    "deep": lambda data: signed(b"[" * 100000 + b"\n"),
    "bad zlib": lambda data: replaced(data, "lowered.mlir", b"no zlib") and replaced(data, SIM, b"no zlib"),
    "hostile host": lambda data: replaced(data, HOST, b"import os\ndef host(launch, *a):\n    os._exit(66)\n"),
    "hostile host builtin": lambda data: replaced(data, HOST, b"def host(launch, *a):\n    open('x', 'w')\n"),
    "hostile host class": lambda data: replaced(data, HOST, b"def host(launch, *a):\n    x = ().__class__.__bases__\n"),
}


def signed(body: bytes) -> bytes:
    import hashlib

    return b"flydsl-entry 1 " + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def rebuilt(data: bytes, change) -> bytes:
    _, _, body = data.partition(b"\n")
    line, _, rest = body.partition(b"\n")
    header = json.loads(line)
    change(header)
    return signed(json.dumps(header).encode() + b"\n" + rest)


def replaced(data: bytes, section: str, content: bytes) -> bytes:
    entry = Entry.from_bytes(data)
    entry.sections[section] = content
    return entry.to_bytes()


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_or_hostile_entry(program, cache_dir, damage) -> None:
    path = entry_file(cache_dir)
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    out = np.zeros_like(X)
    module = program.load()
    module.run(X, out)
    np.testing.assert_array_equal(out, (X * 3 + 1) * 2 + 12)
    assert program.compiles() == 0, "the entry was not replaced"


def test_hostile_simulator_text_is_translated_again(program, cache_dir, tmp_path) -> None:
    import zlib

    path = entry_file(cache_dir)
    entry = Entry.from_bytes(path.read_bytes())
    payload = json.loads(zlib.decompress(entry.sections[SIM]))
    for hostile in ("import os\n", "x = np\n", "T_i32.tofile\n", "h_split.__globals__\n"):
        bad = {**payload, "kernels": [{**k, "source": hostile + k["source"]} for k in payload["kernels"]]}
        path.write_bytes(replaced(entry.to_bytes(), SIM, zlib.compress(json.dumps(bad).encode())))
        out = np.zeros_like(X)
        module = program.load()
        module.run(X, out)
        np.testing.assert_array_equal(out, (X * 3 + 1) * 2 + 12)


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="POSIX owners and modes")
def test_what_others_may_write_is_not_read(program, cache_dir) -> None:
    path = entry_file(cache_dir)
    for where in (path, path.parent, cache_dir):
        mode = where.stat().st_mode
        where.chmod(mode | 0o022)
        assert program.compiles() == 1, where
        where.chmod(mode)
    link = path.with_name("elsewhere")
    path.rename(link)
    path.symlink_to(link)
    assert program.compiles() == 1


def test_folder_that_cannot_be_written(tmp_path, monkeypatch) -> None:
    program = Program(tmp_path / "program")
    blocker = tmp_path / "file"
    blocker.write_text("")
    for folder in (blocker / "cache", pathlib.Path("/proc/flydsl-cache")):
        monkeypatch.setenv("FLYDSL_RUNTIME_CACHE_DIR", str(folder))
        assert program.compiles() == 1


CHILD = """
import os, sys, resource, signal
import numpy as np
sys.path[:0] = [{folder!r}]
import program
X = np.arange(64, dtype=np.float32)
{before}
out = np.zeros_like(X)
program.run(X, out)
assert (out == (X * 3 + 1) * 2 + 12).all()
print("compiled", program.run.cache_info().misses)
"""


def child(program: Program, before: str = "", **env: str) -> subprocess.CompletedProcess:
    program.load()
    code = CHILD.format(folder=str(program.folder), before=before)
    env["PYTHONDONTWRITEBYTECODE"] = "1"  # under a file size limit CPython leaves cut .pyc files
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **env})


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="POSIX limits")
def test_no_file_may_grow(program, cache_dir) -> None:
    for path in cache_dir.rglob("*.flydsl"):
        path.unlink()
    full = "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))"
    out = child(program, full)
    assert out.stdout.strip().endswith("compiled 1"), out.stderr
    assert not [p for p in cache_dir.rglob("*") if p.is_file() and p.suffix in (".flydsl", ".tmp")]


@pytest.mark.parametrize("options", ["ro", "size=4k"], ids=["read-only folder", "full disk"])
def test_mounted_folder(program, tmp_path, options) -> None:
    """A file system of one page, and one that cannot be written, mounted for the child alone."""
    folder = tmp_path / "mount"
    folder.mkdir(mode=0o700)
    program.load()
    mount = f"mount -t tmpfs -o {options},mode=700 tmpfs {folder}"
    if subprocess.run(["unshare", "-m", "sh", "-c", mount], capture_output=True).returncode:
        pytest.skip("this user may not mount")
    script = tmp_path / "child.py"
    script.write_text(CHILD.format(folder=str(program.folder), before=""))
    env = {**os.environ, "FLYDSL_RUNTIME_CACHE_DIR": str(folder), "FLYDSL_DEBUG_LOG_TO_CONSOLE": "1"}
    command = f"{mount} && {sys.executable} {script} && find {folder} -name '*.tmp'"
    out = subprocess.run(["unshare", "-m", "sh", "-c", command], capture_output=True, text=True, env=env)
    assert out.stdout.strip().endswith("compiled 1"), (out.stdout, out.stderr)
    assert "nothing is stored" in out.stderr, out.stderr


STORE_LOOP = """
import os, sys
sys.path.insert(0, {root!r})
from flydsl.runtime.disk_cache import DiskCache, Entry
cache = DiskCache({folder!r})
print("ready", flush=True)
i = 0
while True:
    with cache.lock("f", "key"):
        i += 1
        cache.store("f", "key", Entry({{"i": i}}, {{"data": bytes([i % 251]) * 3_000_000}}))
"""


@pytest.mark.skipif(disk_cache.fcntl is None, reason="POSIX locks")
def test_kill_at_any_moment(tmp_path) -> None:
    folder = tmp_path / "cache"
    root = str(pathlib.Path(disk_cache.__file__).parents[2])
    cache = DiskCache(folder)
    whole = 0
    for round_ in range(12):
        code = STORE_LOOP.format(root=root, folder=str(folder))
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        process.stdout.readline()
        time.sleep(0.02 * round_)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        path = cache.path("f", "key")
        if path.exists():
            entry = Entry.from_bytes(path.read_bytes())
            assert entry.sections["data"] == bytes([entry.facts["i"] % 251]) * 3_000_000
            whole += 1
        with cache.lock("f", "key", timeout_s=5) as held:
            assert held, "the lock of a dead process is still held"
    assert whole
    for left in folder.rglob("*.tmp"):
        os.utime(left, (0, 0))
    cache.trim()
    assert not list(folder.rglob("*.tmp"))


RACE = """
import os, sys
import numpy as np
sys.path[:0] = [{folder!r}]
import program
X = np.arange(64, dtype=np.float32)
ready, start = os.pipe(), os.pipe()
children = []
for _ in range(8):
    pid = os.fork()
    if pid == 0:
        os.close(start[1])
        os.write(ready[1], b"r")
        os.read(start[0], 1)
        try:
            out = np.zeros_like(X)
            program.run(X, out)
            assert (out == (X * 3 + 1) * 2 + 12).all()
            os._exit(program.run.cache_info().misses)
        except BaseException as e:
            sys.stderr.write(repr(e))
            os._exit(99)
    children.append(pid)
os.close(start[0])
for _ in range(8):
    os.read(ready[0], 1)
os.close(start[1])
print(sorted(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children))
"""


def race(program: Program, rounds: int) -> None:
    for _ in range(rounds):
        DiskCache(os.environ["FLYDSL_RUNTIME_CACHE_DIR"]).clear()
        code = RACE.format(folder=str(program.folder))
        out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert out.stdout.strip() == "[0, 0, 0, 0, 0, 0, 0, 1]", (out.stdout, out.stderr)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork")
def test_eight_processes_compile_once(program) -> None:
    race(program, 5)


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork")
def test_eight_processes_compile_once_fifty_times(program) -> None:
    race(program, 50)


def test_size_limit_drops_the_least_recently_used(tmp_path) -> None:
    cache = DiskCache(tmp_path / "cache", limit_bytes=10_000)
    for i in range(6):
        cache.store("f", f"{i}", Entry({}, {"data": bytes(3000)}))
        os.utime(cache.path("f", f"{i}"), (1000 + i, 1000 + i))
    assert [s.key for s in cache.entries()] == ["3", "4", "5"]
    assert cache.load("f", "3") is not None  # is now the most recently used
    cache.store("f", "6", Entry({}, {"data": bytes(3000)}))
    assert "3" in [s.key for s in cache.entries()] and "4" not in [s.key for s in cache.entries()]


def test_function_names_are_safe_paths(tmp_path) -> None:
    cache = DiskCache(tmp_path / "cache")
    for name in ("<lambda>", "../../etc", "a" * 300, "f"):
        assert cache.store(name, "key", Entry({}))
        assert cache.path(name, "key").parent.parent == tmp_path / "cache"
        assert cache.load(name, "key") is not None


def test_dumping_bypasses_the_cache(program, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("FLYDSL_DUMP_IR", "1")
    monkeypatch.setenv("FLYDSL_DUMP_DIR", str(tmp_path / "dump"))
    assert program.compiles() == 1
    assert list((tmp_path / "dump").rglob("*final_isa.s"))


def test_run_only(program, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("FLYDSL_RUNTIME_RUN_ONLY", "1")
    assert program.compiles() == 0
    monkeypatch.setenv("FLYDSL_RUNTIME_ENABLE_CACHE", "0")
    program.load().run(X, np.zeros_like(X))
    monkeypatch.setenv("ARCH", "gfx950")
    with pytest.raises(RuntimeError, match="`run` is not in the disk cache") as e:
        program.compiles()
    assert os.environ["FLYDSL_RUNTIME_CACHE_DIR"] in str(e.value)
    monkeypatch.setenv("FLYDSL_DUMP_IR", "1")
    with pytest.raises(ValueError, match="FLYDSL_RUNTIME_RUN_ONLY forbids compiling"):
        program.compiles()
    monkeypatch.delenv("FLYDSL_DUMP_IR")
    monkeypatch.setenv("FLYDSL_RUNTIME_CACHE_DIR", "")
    with pytest.raises(RuntimeError, match="(?s)FLY_RUN_ONLY_FOLDER.*FLYDSL_RUNTIME_CACHE_DIR is empty"):
        program.compiles()
