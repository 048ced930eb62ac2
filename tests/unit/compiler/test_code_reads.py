"""What bytecode analysis finds, and that digests ignore lines but nothing else."""

import types

from flydsl.compiler.code_reads import code_reads, digests_of_file


def compiled(text: str) -> types.CodeType:
    return next(c for c in compile(text, "<text>", "exec").co_consts if isinstance(c, types.CodeType))


def test_reads() -> None:
    text = """
def f(x):
    import numpy.linalg
    from settings import WIDTH, DEPTH
    y = config.tile.size + helper(x).ignored
    x.stored = len(names)
    def inner():
        return other.deep
    return [inner() for _ in range(LIMIT)]
"""
    reads = code_reads(compiled(text))
    assert {("config", "tile", "size"), ("helper",), ("len",), ("names",), ("other", "deep"), ("LIMIT",)} <= set(
        reads.globals
    )
    assert {("settings", "WIDTH"), ("numpy.linalg",)} <= set(reads.imports)
    assert "stored" not in reads.names and {"tile", "ignored", "helper"} <= reads.names


def test_many_names() -> None:
    """Arguments above 255 need extended instructions."""
    text = "def f():\n" + "".join(f"    a{i} = g{i}.x{i}\n" for i in range(700))
    reads = code_reads(compiled(text))
    assert set(reads.globals) == {(f"g{i}", f"x{i}") for i in range(700)}


def test_digest() -> None:
    one = compiled("def f(x):\n    return x + 1.0\n")
    same = compiled("# comment\n\n\ndef f(x):\n    # more\n    return (x +\n            1.0)\n")
    assert code_reads(one).digest == code_reads(same).digest
    others = [
        "x + 1",
        "x + True",
        "x - 1.0",
        "x + -0.0",
        "x + 0.0",
        "y + 1.0",
        "(x, 1.0)",
        "(lambda: x + 1.0)()",
        "x + 1.0, {1, 2}",
    ]
    digests = {code_reads(compiled(f"def f(x):\n    return {t}\n")).digest for t in others}
    assert len(digests | {code_reads(one).digest}) == len(others) + 1


def test_digests_of_file(tmp_path) -> None:
    path = tmp_path / "module.py"
    path.write_text("class A:\n    def f(self, x):\n        return x + 1.0\n")
    namespace = {}
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    assert code_reads(namespace["A"].f.__code__).digest in digests_of_file(str(path))
    path.write_text("def broken(:\n")
    assert digests_of_file(str(path)) == frozenset()
