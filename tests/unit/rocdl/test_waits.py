"""`s_waitcnt`: encodings against the numbers of the reference, and its errors."""

import pytest

from flydsl.expr import rocdl
from flydsl.expr.numeric import Int32

# (arch, counters, word): read from the reference's IR.
ENCODINGS = [
    ("gfx942", {"vmcnt": 0}, 3952),
    ("gfx942", {"lgkmcnt": 0}, 49279),
    ("gfx942", {"vmcnt": 1}, 3953),
    ("gfx942", {"vmcnt": 4}, 3956),
    ("gfx950", {"vmcnt": 0}, 3952),
    ("gfx1201", {"vmcnt": 1}, 2039),
    ("gfx1100", {"vmcnt": 1}, 2039),
]


@pytest.mark.parametrize("arch,counters,word", ENCODINGS)
def test_encoding(body, arch, counters, word):
    with body(arch) as b:
        rocdl.s_waitcnt(**counters)
    assert b.lines() == [f"rocdl.s.waitcnt {word}"]


def test_raw_field_and_fixed_targets(body):
    with body("gfx942") as b:
        rocdl.s_waitcnt(3952)
        rocdl.s_waitcnt(vmcnt=Int32(0))
        rocdl.cdna3.s_waitcnt(1)
        rocdl.rdna3.s_waitcnt(vmcnt=1)
        rocdl.rdna4.s_waitcnt(1)
    assert [line.split()[-1] for line in b.lines()] == ["3952", "3952", "3953", "2039", "2039"]


ERRORS = [
    ("gfx942", lambda i: rocdl.s_waitcnt(vmcnt=64), ValueError, "vmcnt must be in [0, 63] on this target, got 64"),
    ("gfx942", lambda i: rocdl.s_waitcnt(lgkmcnt=16), ValueError, "lgkmcnt must be in [0, 15] on this target, got 16"),
    ("gfx1201", lambda i: rocdl.s_waitcnt(lgkmcnt=64), ValueError, "lgkmcnt must be in [0, 63] on this target, got 64"),
    ("gfx942", lambda i: rocdl.s_waitcnt(vmcnt=-1), ValueError, "vmcnt must be in [0, 63] on this target, got -1"),
    (
        "gfx942",
        lambda i: rocdl.s_waitcnt(3952, vmcnt=0),
        TypeError,
        "legacy raw s_waitcnt bitfield cannot be combined with non-None keyword arguments",
    ),
    (
        "gfx942",
        lambda i: rocdl.s_waitcnt(vmcnt=Int32(i)),
        TypeError,
        "vmcnt must be a static Python int or Integer, got a run-time value",
    ),
    (
        "gfx942",
        lambda i: rocdl.s_waitcnt(vmcnt=2.0),
        TypeError,
        "vmcnt must be a static Python int or Integer, got float",
    ),
    (
        "gfx1250",
        lambda i: rocdl.s_waitcnt(vmcnt=4),
        ValueError,
        "s_waitcnt is not supported on target arch 'gfx1250'; supported: gfx942",
    ),
]


@pytest.mark.parametrize("arch,call,kind,text", ERRORS)
def test_errors(body, arch, call, kind, text):
    with body(arch, "i32") as b:
        with pytest.raises(kind) as caught:
            call(b.args[0])
    assert caught.value.message.startswith(text)


def test_normalize_field():
    assert rocdl.normalize_s_waitcnt_field("vmcnt", None, 63) == 63
    assert rocdl.normalize_s_waitcnt_field("vmcnt", 3, 63) == 3
    assert rocdl.normalize_s_waitcnt_field("vmcnt", True, 63) == 1


def test_separate_counters_and_barriers(body):
    with body("gfx1250") as b:
        rocdl.s_wait_loadcnt(1)
        rocdl.s_wait_storecnt(2)
        rocdl.s_wait_dscnt(3)
        rocdl.s_wait_asynccnt(4)
        rocdl.s_wait_tensorcnt(5)
        rocdl.s_barrier_signal(-1)
        rocdl.s_barrier_wait(-1)
    assert b.lines() == [
        "rocdl.s.wait.loadcnt 1",
        "rocdl.s.wait.storecnt 2",
        "rocdl.s.wait.dscnt 3",
        "rocdl.s.wait.asynccnt 4",
        "rocdl.s.wait.tensorcnt 5",
        "rocdl.s.barrier.signal id = -1",
        "rocdl.s.barrier.wait id = -1",
    ]


def test_asynchronous_groups(body):
    with body("gfx950") as b:
        rocdl.asyncmark()
        rocdl.wait_asyncmark(2)
    assert b.lines() == ["rocdl.asyncmark", "rocdl.wait.asyncmark 2"]
