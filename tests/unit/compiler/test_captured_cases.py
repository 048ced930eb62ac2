"""What a kernel reads, in every form that Python has for it: a change must be seen in the results.

Each case is a module with `value()`, which the kernel stores, and a change of it. The module runs in the simulator: as
it is, after the change in the same process, and changed from the start with a disk cache that the first one filled.
"""

import dataclasses
import importlib.util
import itertools
import linecache
import pathlib
import sys
import textwrap
from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest

from flydsl.utils import logger

HEAD = """
    import enum, dataclasses, functools, operator, types, collections
    import numpy as np
    import flydsl.compiler as flyc
    import flydsl.expr as fx
    import {library} as lib
    from {library} import half, LIMIT
    import {library}_package.inner
"""
TAIL = """
    @flyc.kernel
    def kernel(out: fx.Tensor):
        out[fx.thread_idx.x] = fx.Float32(value())


    @flyc.jit
    def run(out: fx.Tensor):
        kernel(out).launch(grid=(1,), block=(64, 1, 1))
"""
LIBRARY = """
    CONST = 3
    LIMIT = 5
    class Settings:
        depth = 7
        class nested:
            width = 2
    def half(x):
        return x // scale
    scale = 2
    def __getattr__(name):
        if name == "LAZY":
            return hidden
        raise AttributeError(name)
    hidden = 4
"""
_numbers = itertools.count()


@dataclasses.dataclass
class Case:
    """`change(module, library)` takes the stored value from `before` to `after`."""

    body: str
    change: Callable[[ModuleType, ModuleType], object]
    before: float
    after: float


def put(owner: object, name: str, value: object) -> None:
    setattr(owner, name, value)


CASES = {
    "helper in another module": Case("def value(): return half(8)", lambda m, lib: put(m, "half", lambda x: x), 4, 8),
    "its code": Case(
        "def value(): return half(8)", lambda m, lib: put(lib.half, "__code__", (lambda x: x * 3).__code__), 4, 24
    ),
    "what it reads": Case("def value(): return half(8)", lambda m, lib: put(lib, "scale", 4), 4, 2),
    "module constant": Case("def value(): return lib.CONST", lambda m, lib: put(lib, "CONST", 9), 3, 9),
    "imported name": Case("def value(): return LIMIT", lambda m, lib: put(m, "LIMIT", 6), 5, 6),
    "module of a package": Case(
        "def value(): return {library}_package.inner.DEEP", lambda m, lib: put(lib.inner, "DEEP", 12), 11, 12
    ),
    "import inside": Case(
        "def value():\n    from {library} import CONST\n    return CONST", lambda m, lib: put(lib, "CONST", 8), 3, 8
    ),
    "getattr by name": Case("def value(): return getattr(lib, 'CONST')", lambda m, lib: put(lib, "CONST", 8), 3, 8),
    "module __getattr__": Case("def value(): return lib.LAZY", lambda m, lib: put(lib, "hidden", 8), 4, 8),
    "alias of a module": Case(
        "alias = lib\ndef value():\n    l = alias\n    return l.CONST", lambda m, lib: put(lib, "CONST", 8), 3, 8
    ),
    "class attribute": Case("def value(): return lib.Settings.depth", lambda m, lib: put(lib.Settings, "depth", 8), 7, 8),
    "nested class": Case(
        "def value(): return lib.Settings.nested.width", lambda m, lib: put(lib.Settings.nested, "width", 8), 2, 8
    ),
    "base class": Case(
        "class Mine(lib.Settings): pass\ndef value(): return Mine.depth", lambda m, lib: put(lib.Settings, "depth", 8), 7, 8
    ),
    "default argument": Case(
        "def f(x=2): return x\ndef value(): return f()", lambda m, lib: put(m.f, "__defaults__", (9,)), 2, 9
    ),
    "keyword default": Case(
        "def f(*, x=2): return x\ndef value(): return f()", lambda m, lib: put(m.f, "__kwdefaults__", {"x": 9}), 2, 9
    ),
    "keyword default in place": Case(
        "def f(*, x=2): return x\ndef value(): return f()", lambda m, lib: m.f.__kwdefaults__.update(x=9), 2, 9
    ),
    "mutable default": Case(
        "def f(x=[2]): return x[0]\ndef value(): return f()", lambda m, lib: m.f.__defaults__[0].__setitem__(0, 9), 2, 9
    ),
    "partial": Case(
        "def f(x, y): return x * y\ng = functools.partial(f, 3, y=2)\ndef value(): return g()",
        lambda m, lib: m.g.keywords.update(y=5),
        6,
        15,
    ),
    "function of a partial": Case(
        "def f(x): return x * k\nk = 2\ng = functools.partial(f, 3)\ndef value(): return g()",
        lambda m, lib: put(m, "k", 7),
        6,
        21,
    ),
    "method of an object": Case(
        "class C:\n    def __init__(self): self.n = 2\n    def f(self): return self.n * 10\nc = C()\ndef value(): return c.f()",
        lambda m, lib: put(m.c, "n", 3),
        20,
        30,
    ),
    "bound method": Case(
        "class C:\n    n = 2\n    def f(self): return self.n * 10\nf = C().f\ndef value(): return f()",
        lambda m, lib: put(m.f.__self__, "n", 3),
        20,
        30,
    ),
    "property": Case(
        "class C:\n    @property\n    def n(self): return k\nk = 2\nc = C()\ndef value(): return c.n",
        lambda m, lib: put(m, "k", 3),
        2,
        3,
    ),
    "static and class method": Case(
        "class C:\n    k = 2\n    @classmethod\n    def f(cls): return cls.k + cls.g()\n    @staticmethod\n    def g(): return j\n"
        "j = 10\ndef value(): return C.f()",
        lambda m, lib: (put(m, "j", 20), put(m.C, "k", 3)),
        12,
        23,
    ),
    "callable object": Case(
        "class C:\n    n = 2\n    def __call__(self): return self.n\nc = C()\ndef value(): return c()",
        lambda m, lib: put(m.c, "n", 3),
        2,
        3,
    ),
    "operator of an object": Case(
        "class C:\n    n = 2\n    def __add__(self, x): return self.n + x\nc = C()\ndef value(): return c + 1",
        lambda m, lib: put(m.c, "n", 3),
        3,
        4,
    ),
    "index of an object": Case(
        "class C:\n    n = 2\n    def __getitem__(self, i): return self.n * i\nc = C()\ndef value(): return c[4]",
        lambda m, lib: put(m.c, "n", 3),
        8,
        12,
    ),
    "super": Case(
        "class B:\n    def f(self): return 2\nclass C(B):\n    def f(self): return super().f() + 1\nc = C()\ndef value(): return c.f()",
        lambda m, lib: put(m.B, "f", lambda self: 5),
        3,
        6,
    ),
    "slots": Case(
        "class C:\n    __slots__ = ('n',)\nc = C()\nc.n = 2\ndef value(): return c.n", lambda m, lib: put(m.c, "n", 3), 2, 3
    ),
    "metaclass attribute": Case(
        "class M(type):\n    n = 2\nclass C(metaclass=M): pass\ndef value(): return C.n", lambda m, lib: put(m.M, "n", 3), 2, 3
    ),
    "other class of an object": Case(
        "class C:\n    n = 2\nclass D:\n    n = 3\nc = C()\ndef value(): return c.n",
        lambda m, lib: put(m.c, "__class__", m.D),
        2,
        3,
    ),
    "object in an object": Case(
        "a = types.SimpleNamespace(b=types.SimpleNamespace(c=[1, {'d': 2}]))\ndef value(): return a.b.c[1]['d']",
        lambda m, lib: m.a.b.c[1].update(d=3),
        2,
        3,
    ),
    "dict in place": Case("T = {'a': 2}\ndef value(): return T['a']", lambda m, lib: m.T.update(a=3), 2, 3),
    "dict grows": Case("T = {'a': 2}\ndef value(): return len(T)", lambda m, lib: m.T.update(b=3), 1, 2),
    "dict get": Case("T = {}\ndef value(): return T.get('a', 2)", lambda m, lib: m.T.update(a=3), 2, 3),
    "dict with other keys": Case(
        "T = {(1, 2): 2, 1.5: 3}\ndef value(): return T[1, 2]", lambda m, lib: m.T.update({(1, 2): 9}), 2, 9
    ),
    "defaultdict": Case(
        "T = collections.defaultdict(int, a=2)\ndef value(): return T['a']", lambda m, lib: m.T.update(a=3), 2, 3
    ),
    "list in place": Case("T = [1, 2]\ndef value(): return T[1]", lambda m, lib: m.T.__setitem__(1, 3), 2, 3),
    "set in place": Case("T = {1, 2}\ndef value(): return len(T)", lambda m, lib: m.T.add(7), 2, 3),
    "deque in place": Case(
        "T = collections.deque([1, 2])\ndef value(): return T[1]", lambda m, lib: m.T.__setitem__(1, 3), 2, 3
    ),
    "bytearray in place": Case(
        "T = bytearray([1, 2])\ndef value(): return T[1]", lambda m, lib: m.T.__setitem__(1, 3), 2, 3
    ),
    "lambda": Case("f = lambda: 2\ndef value(): return f()", lambda m, lib: put(m, "f", lambda: 3), 2, 3),
    "decorated helper": Case(
        "def twice(f):\n    @functools.wraps(f)\n    def g(*a): return 2 * f(*a) + k\n    return g\nk = 0\n"
        "@twice\ndef f(): return j\nj = 3\ndef value(): return f()",
        lambda m, lib: (put(m, "j", 4), put(m, "k", 1)),
        6,
        9,
    ),
    "decorator": Case(
        "def twice(f):\n    def g(): return n[0] * f()\n    n = [2]\n    return g\n@twice\ndef f(): return 3\ndef value(): return f()",
        lambda m, lib: next(c.cell_contents for c in m.f.__closure__ if isinstance(c.cell_contents, list)).__setitem__(0, 5),
        6,
        15,
    ),
    "closure of a nested function": Case(
        "def make(n):\n    def f():\n        def g(): return n\n        return g()\n    return f\nf = make(2)\ndef value(): return f()",
        lambda m, lib: put(m.f.__closure__[0], "cell_contents", 3),
        2,
        3,
    ),
    "global in a comprehension": Case(
        "k = 2\ndef value(): return sum([k for _ in range(3)])", lambda m, lib: put(m, "k", 3), 6, 9
    ),
    "global in a nested lambda": Case(
        "k = 2\ndef value(): return (lambda: (lambda: k)())()", lambda m, lib: put(m, "k", 3), 2, 3
    ),
    "a global that appears": Case(
        "def value():\n    try: return extra\n    except NameError: return 2", lambda m, lib: put(m, "extra", 3), 2, 3
    ),
    "a builtin that is shadowed": Case("def value(): return abs(-2)", lambda m, lib: put(m, "abs", lambda x: 9), 2, 9),
    "globals()": Case("k = 2\ndef value(): return globals()['k']", lambda m, lib: put(m, "k", 3), 2, 3),
    "attribute that appears": Case(
        "class C: pass\nc = C()\ndef value(): return getattr(c, 'n', 2)", lambda m, lib: put(m.c, "n", 3), 2, 3
    ),
    "attribute that disappears": Case(
        "class C:\n    n = 3\nc = C()\nc.n = 2\ndef value(): return c.n", lambda m, lib: delattr(m.c, "n"), 2, 3
    ),
    "vars of an object": Case(
        "c = types.SimpleNamespace(n=2)\ndef value(): return vars(c)['n']", lambda m, lib: put(m.c, "n", 3), 2, 3
    ),
    "__dict__ of a module": Case("def value(): return lib.__dict__['CONST']", lambda m, lib: put(lib, "CONST", 4), 3, 4),
    "attrgetter": Case(
        "get = operator.attrgetter('n')\nc = types.SimpleNamespace(n=2)\ndef value(): return get(c)",
        lambda m, lib: put(m.c, "n", 3),
        2,
        3,
    ),
    "attrgetter of a class": Case(
        "get = operator.attrgetter('n')\nclass C: pass\nc = C()\nc.n = 2\ndef value(): return get(c)",
        lambda m, lib: put(m.c, "n", 3),
        2,
        3,
    ),
    "numpy scalar": Case("k = np.float32(2)\ndef value(): return float(k)", lambda m, lib: put(m, "k", np.float32(3)), 2, 3),
    "numpy array in place": Case(
        "k = np.array([1, 2])\ndef value(): return int(k[1])", lambda m, lib: m.k.__setitem__(1, 3), 2, 3
    ),
    "enum": Case(
        "class E(enum.Enum):\n    A = 2\n    B = 3\nk = E.A\ndef value(): return k.value", lambda m, lib: put(m, "k", m.E.B), 2, 3
    ),
    "member of an enum": Case(
        "class E(enum.IntEnum):\n    A = 2\n    B = 3\ndef value(): return E.A + 0",
        lambda m, lib: put(m, "E", __import__("enum").IntEnum("E", {"A": 4})),
        2,
        4,
    ),
    "dataclass": Case(
        "@dataclasses.dataclass\nclass C:\n    n: int = 2\nc = C()\ndef value(): return c.n", lambda m, lib: put(m.c, "n", 3), 2, 3
    ),
    "frozen dataclass": Case(
        "@dataclasses.dataclass(frozen=True)\nclass C:\n    n: int = 2\nc = C()\ndef value(): return c.n",
        lambda m, lib: put(m, "c", m.C(3)),
        2,
        3,
    ),
    "fields of a dataclass": Case(
        "@dataclasses.dataclass\nclass C:\n    n: int = 2\n    k: int = 1\nc = C()\n"
        "def value(): return sum(getattr(c, f.name) for f in dataclasses.fields(c))",
        lambda m, lib: put(m.c, "k", 5),
        3,
        7,
    ),
    "namedtuple": Case(
        "C = collections.namedtuple('C', 'n')\nc = C(2)\ndef value(): return c.n", lambda m, lib: put(m, "c", m.C(3)), 2, 3
    ),
    "subclass of a tuple": Case(
        "class C(tuple):\n    n = 2\nc = C((1,))\ndef value(): return c.n", lambda m, lib: put(m.C, "n", 3), 2, 3
    ),
    "subclass of a dict": Case(
        "class C(dict):\n    n = 2\nc = C()\nc.m = 1\ndef value(): return c.n + c.m", lambda m, lib: put(m.c, "m", 3), 3, 5
    ),
    "subclass of an int": Case(
        "class C(int):\n    pass\nc = C(2)\nc.n = 1\ndef value(): return c + c.n", lambda m, lib: put(m.c, "n", 3), 3, 5
    ),
    "value of an int subclass": Case(
        "class C(int):\n    pass\nc = C(2)\ndef value(): return int(c)", lambda m, lib: put(m, "c", m.C(3)), 2, 3
    ),
    "value of a str subclass": Case(
        "class C(str):\n    pass\nc = C('ab')\ndef value(): return len(c)", lambda m, lib: put(m, "c", m.C("abc")), 2, 3
    ),
    "value of a str enum": Case(
        "class E(str, enum.Enum):\n    A = 'ab'\n    B = 'abc'\nk = E.A\ndef value(): return len(k)",
        lambda m, lib: put(m, "k", m.E.B),
        2,
        3,
    ),
    "method of an enum": Case(
        "class E(enum.Enum):\n    A = 2\n    def twice(self): return self.value * k\nk = 2\ndef value(): return E.A.twice()",
        lambda m, lib: put(m, "k", 3),
        4,
        6,
    ),
    "class that is replaced": Case(
        "class C:\n    n = 2\ndef value(): return C().n", lambda m, lib: put(m, "C", type("C", (), {"n": 3})), 2, 3
    ),
    "constructor": Case(
        "class C:\n    def __init__(self): self.n = k\nk = 2\ndef value(): return C().n", lambda m, lib: put(m, "k", 3), 2, 3
    ),
    "__call__ that is replaced": Case(
        "class C:\n    def __call__(self): return 2\nc = C()\ndef value(): return c()",
        lambda m, lib: put(m.C, "__call__", lambda self: 3),
        2,
        3,
    ),
    "array of numbers": Case(
        "import array\nT = array.array('i', [1, 2])\ndef value(): return T[1]", lambda m, lib: m.T.__setitem__(1, 3), 2, 3
    ),
    "ctypes structure": Case(
        "import ctypes\nclass S(ctypes.Structure):\n    _fields_ = [('n', ctypes.c_int)]\ns = S(2)\ndef value(): return s.n",
        lambda m, lib: put(m.s, "n", 3),
        2,
        3,
    ),
    "eval": Case("k = 2\ndef value(): return eval('k + 0')", lambda m, lib: put(m, "k", 3), 2, 3),
    "methodcaller": Case(
        "get = operator.methodcaller('f')\nclass C:\n    def f(self): return k\nk = 2\nc = C()\ndef value(): return get(c)",
        lambda m, lib: put(m, "k", 3),
        2,
        3,
    ),
    "argparse namespace": Case(
        "import argparse\na = argparse.Namespace(n=2)\ndef value(): return a.n", lambda m, lib: put(m.a, "n", 3), 2, 3
    ),
    "partialmethod": Case(
        "class C:\n    def f(self, x): return x * k\n    g = functools.partialmethod(f, 2)\nk = 1\nc = C()\ndef value(): return c.g()",
        lambda m, lib: put(m, "k", 3),
        2,
        6,
    ),
    "cached_property": Case(
        "class C:\n    @functools.cached_property\n    def n(self): return k\nk = 2\ndef value(): return C().n",
        lambda m, lib: put(m, "k", 3),
        2,
        3,
    ),
    "chained helpers in a class body": Case(
        "def f(): return k\nk = 2\nclass C:\n    g = staticmethod(f)\ndef value(): return C.g()", lambda m, lib: put(m, "k", 3), 2, 3
    ),
    "slice and range objects": Case(
        "T = slice(0, 2)\ndef value(): return len([1, 2, 3, 4][T])", lambda m, lib: put(m, "T", slice(0, 3)), 2, 3
    ),
    "jit function inside": Case(
        "@flyc.jit\ndef inner(x): return x * k\nk = 2\ndef value(): return inner(2)", lambda m, lib: put(m, "k", 3), 4, 6
    ),
    "function attribute": Case(
        "def f(): return 1\nf.n = 2\ndef value(): return f.n", lambda m, lib: put(m.f, "n", 3), 2, 3
    ),
    "generator": Case(
        "k = 2\ndef f():\n    yield k\n    yield 1\ndef value(): return sum(f())", lambda m, lib: put(m, "k", 3), 3, 4
    ),
    "singledispatch": Case(
        "@functools.singledispatch\ndef f(x): return 1\n@f.register\ndef g(x: int): return k\nk = 2\ndef value(): return f(5)",
        lambda m, lib: put(m, "k", 3),
        2,
        3,
    ),
    "list of functions": Case(
        "def f(): return k\nk = 2\nT = [f]\ndef value(): return T[0]()", lambda m, lib: put(m, "k", 3), 2, 3
    ),
    "class made in a function": Case(
        "def make():\n    class C:\n        def f(self): return k\n    return C\nk = 2\nC = make()\ndef value(): return C().f()",
        lambda m, lib: put(m, "k", 3),
        2,
        3,
    ),
    "descriptor": Case(
        "class D:\n    def __get__(self, o, t): return k\nk = 2\nclass C:\n    n = D()\nc = C()\ndef value(): return c.n",
        lambda m, lib: put(m, "k", 3),
        2,
        3,
    ),
    "__getattr__ of a class": Case(
        "class C:\n    def __getattr__(self, name): return k\nk = 2\nc = C()\ndef value(): return c.anything",
        lambda m, lib: put(m, "k", 3),
        2,
        3,
    ),
    "mapping proxy": Case(
        "D = {'a': 2}\nT = types.MappingProxyType(D)\ndef value(): return T['a']", lambda m, lib: m.D.update(a=3), 2, 3
    ),
    "mapping of chained dicts": Case(
        "D = {'a': 2}\nT = collections.ChainMap({}, D)\ndef value(): return T['a']", lambda m, lib: m.D.update(a=3), 2, 3
    ),
}


class Modules:
    """Modules of a case in files of their own."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.name = f"captured_{next(_numbers)}"

    def load(self, case: Case, names: list[str]) -> tuple[ModuleType, ModuleType]:
        """Import both modules anew, as another process would."""
        library = f"{self.name}_library"
        self.folder.mkdir(exist_ok=True)
        package = self._import(f"{library}_package", "", names, is_package=True)
        package.inner = self._import(f"{library}_package.inner", "DEEP = 11\n", names)
        lib = self._import(library, textwrap.dedent(LIBRARY), names)
        lib.inner = package.inner
        parts = [textwrap.dedent(HEAD), case.body, "\n", textwrap.dedent(TAIL)]
        return self._import(self.name, "\n".join(parts).replace("{library}", library), names), lib

    def _import(self, name: str, text: str, names: list[str], is_package: bool = False) -> ModuleType:
        path = self.folder / f"{name.replace('.', '_')}.py"
        path.write_text(text)
        linecache.checkcache()
        spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=[] if is_package else None)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        names.append(name)
        exec(compile(text, str(path), "exec"), module.__dict__)
        return module


@pytest.fixture
def names():
    """Names of modules that are forgotten after the test."""
    found: list[str] = []
    yield found
    for name in found:
        sys.modules.pop(name, None)


def stored(module: ModuleType) -> float:
    out = np.zeros(64, np.float32)
    module.run(out)
    return float(out[5])


@pytest.mark.parametrize("name", CASES)
def test_change_is_seen(name, names, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("FLYDSL_RUNTIME_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(logger, "_said", set())
    case, modules = CASES[name], Modules(tmp_path / "modules")
    module, library = modules.load(case, names)
    assert stored(module) == stored(module) == case.before
    case.change(module, library)
    assert name == "jit function inside" or module.value() == case.after, "the case itself"
    assert stored(module) == stored(module) == case.after, "not seen in the process"
    module, library = modules.load(case, names)
    assert stored(module) == case.before
    module, library = modules.load(case, names)
    case.change(module, library)
    assert stored(module) == case.after, "not seen by the disk cache"


def test_moved_file_is_the_same_entry(names, tmp_path, monkeypatch) -> None:
    """The key holds no paths: a checkout elsewhere finds what is stored."""
    monkeypatch.setenv("FLYDSL_RUNTIME_CACHE_DIR", str(tmp_path / "cache"))
    case, modules = CASES["module constant"], Modules(tmp_path / "modules")
    module, _ = modules.load(case, names)
    assert stored(module) == 3 and module.run.cache_info().misses == 1
    modules.folder = tmp_path / "elsewhere"
    module, _ = modules.load(case, names)
    assert str(tmp_path / "elsewhere") in module.run.func.__code__.co_filename
    assert stored(module) == 3 and module.run.cache_info().misses == 0


def test_value_that_depends_on_its_file(names, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("FLYDSL_RUNTIME_CACHE_DIR", str(tmp_path / "cache"))
    body = "import os\ndef value(): return len(os.path.basename(os.path.dirname(__file__)))"
    case, modules = Case(body, lambda m, lib: None, 7, 9), Modules(tmp_path / "modules")
    assert stored(modules.load(case, names)[0]) == 7
    modules.folder = tmp_path / "elsewhere"
    assert stored(modules.load(case, names)[0]) == 9


def test_torch_tensor_in_place(names, tmp_path, monkeypatch) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    monkeypatch.setenv("FLYDSL_RUNTIME_CACHE_DIR", str(tmp_path / "cache"))
    body = "import torch\nT = torch.tensor([1.0, 2.0])\ndef value(): return T[1].item()"
    case, modules = Case(body, lambda m, lib: m.T.__setitem__(1, 3.0), 2, 3), Modules(tmp_path / "modules")
    module, library = modules.load(case, names)
    assert stored(module) == stored(module) == 2
    case.change(module, library)
    assert stored(module) == 3
    module, library = modules.load(case, names)
    case.change(module, library)
    assert stored(module) == 3 and module.run.cache_info().misses == 0


# --- constants that a call passes ------------------------------------------------------------------------------------

CONSTANTS = """
    @flyc.kernel
    def kernel(out: fx.Tensor, c: fx.Constexpr):
        out[fx.thread_idx.x] = fx.Float32(value(c))


    @flyc.jit
    def run(out: fx.Tensor, c: fx.Constexpr):
        kernel(out, c).launch(grid=(1,), block=(64, 1, 1))
"""
PASSED = {
    "object": Case("class C:\n    n = 2\nc = C()\ndef value(c): return c.n", lambda m, lib: put(m.c, "n", 3), 2, 3),
    "method of an object": Case(
        "class C:\n    def f(self): return self.n\nc = C()\nc.n = 2\ndef value(c): return c.f()",
        lambda m, lib: put(m.c, "n", 3),
        2,
        3,
    ),
    "dataclass": Case(
        "@dataclasses.dataclass(unsafe_hash=True)\nclass C:\n    n: int\nc = C(2)\ndef value(c): return c.n",
        lambda m, lib: put(m.c, "n", 3),
        2,
        3,
    ),
    "property": Case(
        "class C:\n    @property\n    def n(self): return k\nk = 2\nc = C()\ndef value(c): return c.n",
        lambda m, lib: put(m, "k", 3),
        2,
        3,
    ),
    "class": Case("class C:\n    n = 2\nc = C\ndef value(c): return c.n", lambda m, lib: put(m.C, "n", 3), 2, 3),
    "lambda": Case("k = 2\nc = lambda: k\ndef value(c): return c()", lambda m, lib: put(m, "k", 3), 2, 3),
    "partial": Case(
        "k = 2\ndef f(x): return x * k\nc = functools.partial(f, 1)\ndef value(c): return c()", lambda m, lib: put(m, "k", 3), 2, 3
    ),
    "bound method": Case(
        "class C:\n    n = 2\n    def f(self): return self.n\nc = C().f\ndef value(c): return c()",
        lambda m, lib: put(m.c.__self__, "n", 3),
        2,
        3,
    ),
    "list": Case("c = [1, 2]\ndef value(c): return c[1]", lambda m, lib: m.c.__setitem__(1, 3), 2, 3),
    "dict of functions": Case(
        "k = 2\nc = {'f': lambda: k}\ndef value(c): return c['f']()", lambda m, lib: put(m, "k", 3), 2, 3
    ),
    "tuple of objects": Case(
        "class C:\n    n = 2\nc = (C(), 1)\ndef value(c): return c[0].n", lambda m, lib: put(m.c[0], "n", 3), 2, 3
    ),
    "namespace": Case("c = types.SimpleNamespace(n=2)\ndef value(c): return c.n", lambda m, lib: put(m.c, "n", 3), 2, 3),
    "numpy array": Case("c = np.array([1, 2])\ndef value(c): return int(c[1])", lambda m, lib: m.c.__setitem__(1, 3), 2, 3),
    "module": Case("c = lib\ndef value(c): return c.CONST", lambda m, lib: put(lib, "CONST", 4), 3, 4),
    "set": Case("c = {1, 2}\ndef value(c): return len(c)", lambda m, lib: m.c.add(3), 2, 3),
}


@pytest.mark.parametrize("name", PASSED)
def test_change_of_a_constant_is_seen(name, names, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("FLYDSL_RUNTIME_CACHE_DIR", str(tmp_path / "cache"))
    case, modules = PASSED[name], Modules(tmp_path / "modules")
    monkeypatch.setitem(globals(), "TAIL", CONSTANTS)

    def result(module: ModuleType) -> float:
        out = np.zeros(64, np.float32)
        module.run(out, module.c)
        return float(out[5])

    module, library = modules.load(case, names)
    assert result(module) == result(module) == case.before
    case.change(module, library)
    assert result(module) == result(module) == case.after, "not seen in the process"
    module, library = modules.load(case, names)
    assert result(module) == case.before
    module, library = modules.load(case, names)
    case.change(module, library)
    assert result(module) == case.after, "not seen by the disk cache"
