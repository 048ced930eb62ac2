"""Faults of control flow that users of kernel DSLs reported (kind frontend), as tests in the simulator.

Each test is named after the report's id; `Fails if` names the change to our code that would bring the fault back.
"""

import dataclasses
import linecache
import random
from types import SimpleNamespace

import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.diag import CarryMismatch, CarryNone
from flydsl.expr import const_expr, range_constexpr

LANES = 64


def run(body, n=5, m=3, dtype=np.int32):
    """Run `body(x, out, n, m)` as a kernel of one block of 64 lanes; return `out`, which starts as -1."""
    kernel = flyc.kernel(body)

    @flyc.jit
    def launch(x: fx.Tensor, out: fx.Tensor, n: fx.Int32, m: fx.Int32):
        kernel(x, out, n, m).launch(grid=(1, 1, 1), block=(LANES, 1, 1))

    out = np.full(256, -1, dtype)
    launch(np.arange(256, dtype=dtype), out, n, m)
    return out


@flyc.kernel
def mark(out: fx.Tensor, base: fx.Int32, value: fx.Int32):
    out[base + fx.block_idx.x] = value


@pytest.mark.parametrize("n", [0, 1, 3])
def test_R001_branches_and_loops_in_the_jit_function(n):
    """Fails if `JitFunction` traces the function as it is instead of `frontend.rewritten(fn)`."""

    @flyc.jit
    def launch(out: fx.Tensor, n: fx.Int32):
        if n > 2:
            mark(out, 0, 7).launch(grid=(4, 1, 1), block=(1, 1, 1))
        else:
            mark(out, 0, 5).launch(grid=(2, 1, 1), block=(1, 1, 1))
        for i in range(n):
            mark(out, 8 + i, 100 + i).launch(grid=(1, 1, 1), block=(1, 1, 1))

    out = np.zeros(16, np.int32)
    launch(out, n)
    expected = np.zeros(16, np.int32)
    expected[: 4 if n > 2 else 2] = 7 if n > 2 else 5
    expected[8 : 8 + n] = 100 + np.arange(n)
    assert (out == expected).all()


def sum_to(n):
    s = 0
    for i in range(n):
        s = s + i
    return s


class Summer:
    def sum_to(self, n):
        s = 0
        for i in range(n):
            s = s + i
        return s


def test_R002_range_in_helpers():
    """Fails if calls do not go through `dispatch.call`, or if it leaves methods or closures alone."""
    start = 0

    def closure(n):
        s = start
        for i in range(n):
            s = s + i
        return s

    summer = Summer()

    def kernel(x: fx.Tensor, out: fx.Tensor, n: fx.Int32, m: fx.Int32):
        s = 0
        for i in range(n):
            s = s + i
        out[0] = s
        out[1] = sum_to(n)
        out[2] = summer.sum_to(n)
        out[3] = closure(n)

    for n in (0, 1, 6):
        assert run(kernel, n)[:4].tolist() == [n * (n - 1) // 2] * 4


def test_R003_conditions_in_variables():
    """Fails if `truth.condition` takes a run-time Boolean for an ordinary (truthy) Python object."""

    def kernel(x: fx.Tensor, out: fx.Tensor, n: fx.Int32, m: fx.Int32):
        lane = fx.thread_idx.x
        inside = lane < n
        both = inside and lane > 1
        pair = (inside, not inside)
        if inside:
            out[lane] = 1
        if not (lane >= n):
            out[lane + 64] = 1
        if both or lane == 0 or (lane == 1 and inside):
            out[lane + 128] = 1
        if pair[0]:
            out[lane + 192] = 1

    out = run(kernel).reshape(4, LANES)
    assert (out == np.where(np.arange(LANES) < 5, 1, -1)).all()


def test_R004_accumulators_used_after_the_loop():
    """Fails if `LoopCarry.leave` does not hand out the loop's results."""

    def kernel(x: fx.Tensor, out: fx.Tensor, n: fx.Int32, m: fx.Int32):
        a, b = fx.Int32(0), fx.Int32(1)
        for k in range(n - 1):
            a = a + x[k]
            b = b + a
        a = a + x[n - 1]
        b = b + a
        out[0] = a
        out[1] = b

    a = b = 0
    b = 1
    for k in range(9):
        a += k
        b += a
    assert run(kernel, 9)[:2].tolist() == [a, b]


@dataclasses.dataclass
class Pair:
    a: object
    b: object


def test_R005_containers_rebound_under_a_run_time_if():
    """Fails if `carry.take_apart` loses a kind of container."""

    def kernel(x: fx.Tensor, out: fx.Tensor, n: fx.Int32, m: fx.Int32):
        lane = fx.thread_idx.x
        values = [x[i] for i in range(16)]
        data = {"t": (values[0], [values[1]]), "p": Pair(values[2], SimpleNamespace(q=values[3]))}
        for i in range_constexpr(16):
            if lane + i >= n:
                values = [v if j != i else fx.Int32(0) for j, v in enumerate(values)]
        if lane > m:
            data = {"t": (fx.Int32(100), [fx.Int32(101)]), "p": Pair(fx.Int32(102), SimpleNamespace(q=fx.Int32(103)))}
        if lane == 2:
            for i in range_constexpr(16):
                out[i] = values[i]
        if lane == 4:
            out[16] = data["t"][0]
            out[17] = data["t"][1][0]
            out[18] = data["p"].a
            out[19] = data["p"].b.q

    out = run(kernel, n=9)
    assert out[:16].tolist() == [i if 2 + i < 9 else 0 for i in range(16)]
    assert out[16:20].tolist() == [100, 101, 102, 103]


def test_R006_changes_in_one_branch_do_not_leak_into_the_other():
    """Fails if `Branch.middle` does not restore the heap before the else branch."""

    def kernel(x: fx.Tensor, out: fx.Tensor, n: fx.Int32, m: fx.Int32):
        lane = fx.thread_idx.x
        xs = [fx.Int32(1), fx.Int32(2)]
        total = fx.Int32(0)
        if lane < n:
            xs.append(fx.Int32(30))
            xs[0] = fx.Int32(10)
            total = xs[0] + xs[1] + len(xs)
        else:
            total = xs[0] + xs[1] + len(xs)
            xs.append(lane)
        out[lane] = total + xs[2]

    lanes = np.arange(LANES)
    assert (run(kernel)[:LANES] == np.where(lanes < 5, 10 + 2 + 3 + 30, 1 + 2 + 2 + lanes)).all()


def test_R007_none_before_a_run_time_region():
    """Fails if `carry.unify` takes None for a value that may change."""

    def branch(x: fx.Tensor, out: fx.Tensor, n: fx.Int32, m: fx.Int32):
        best = None
        if n > m:
            best = n
        out[0] = best

    def loop(x: fx.Tensor, out: fx.Tensor, n: fx.Int32, m: fx.Int32):
        best = None
        for i in range(n):
            best = i
        out[0] = best

    for kernel in (branch, loop):
        with pytest.raises(CarryNone, match="'best' is None before .* becomes Int32") as caught:
            run(kernel)
        assert caught.value.span.line == kernel.__code__.co_firstlineno + 3

    def temporary(x: fx.Tensor, out: fx.Tensor, n: fx.Int32, m: fx.Int32):
        best = None
        for i in range(n):
            best = i * 2
            out[i] = best

    assert run(temporary, 3)[:4].tolist() == [0, 2, 4, -1]


def test_R008_while_loops():
    """Fails if `WhileRegion` computes its condition from values that are not carried."""

    def compound(x: fx.Tensor, out: fx.Tensor, n: fx.Int32, m: fx.Int32):
        lane = fx.thread_idx.x
        i, s = lane, fx.Int32(0)
        v = fx.Vector.filled(4, 0, fx.Int32)
        while i < n and (s < 6 or i == m):
            if i % 2 == 0:
                s = s + i
            else:
                v = v + fx.Vector.filled(4, 1, fx.Int32)
            i = i + 1
        out[lane] = s
        out[lane + 64] = v[3]
        out[lane + 128] = i

    out = run(compound, 9, 7).reshape(4, LANES)
    for lane in range(LANES):
        i, s, v = lane, 0, 0
        while i < 9 and (s < 6 or i == 7):
            if i % 2 == 0:
                s += i
            else:
                v += 1
            i += 1
        assert out[:3, lane].tolist() == [s, v, i]


def test_R009_closures_of_nested_kernels():
    """Fails if `functions._bind` passes cells by position instead of by name."""

    def build(first, flag, last):
        @flyc.kernel
        def kernel(out: fx.Tensor):
            if const_expr(flag):
                out[0] = first + last
            else:
                out[0] = last

        @flyc.jit
        def launch(out: fx.Tensor):
            kernel(out).launch(grid=(1, 1, 1), block=(1, 1, 1))

        out = np.zeros(1, np.int32)
        launch(out)
        return int(out[0])

    assert [build(10, True, 3), build(20, True, 4), build(20, False, 5)] == [13, 24, 5]


@pytest.mark.parametrize("jit_first", [True, False])
def test_R010_one_helper_in_launcher_and_kernel(jit_first):
    """Fails if a mark on the function, not the code of its twin, decides that it was rewritten."""

    def clamp(v, high):
        if v > high:
            return high
        return v

    @flyc.kernel
    def kernel(out: fx.Tensor, n: fx.Int32):
        out[0] = clamp(n, 3)

    @flyc.jit
    def launch(out: fx.Tensor, n: fx.Int32):
        if const_expr(jit_first):
            kernel(out, clamp(n, 5)).launch(grid=(1, 1, 1), block=(1, 1, 1))
        else:
            kernel(out, n).launch(grid=(1, 1, 1), block=(1, 1, 1))
            mark(out, 1, clamp(n, 5)).launch(grid=(1, 1, 1), block=(1, 1, 1))

    out = np.zeros(2, np.int32)
    launch(out, 9)
    assert out.tolist() == [3, 0 if jit_first else 5]


def test_R094_dead_statements_change_nothing():
    """Fails if liveness counts an unread temporary of another type as carried."""
    lines = [
        "lane = fx.thread_idx.x",
        "acc = fx.Int32(0)",
        "for i in range(n):",
        "    if i > lane:",
        "        acc = acc + i",
        "    else:",
        "        acc = acc - 1",
        "while acc > 20:",
        "    acc = acc - n",
        "out[lane] = acc",
    ]
    dead = ["t = 1.5 + {k}", "t = 'text'", "t = [n, {k}]", "t = fx.make_layout(4, 1)", "t = lane if {k} else None"]
    results = []
    for seed in range(8):
        rng = random.Random(seed)
        body = []
        for k, line in enumerate(lines):
            indent = line[: len(line) - len(line.lstrip())]
            if seed and k not in (0, 5) and rng.random() < 0.6:
                body.append(indent + rng.choice(dead).format(k=k) + "\n" + indent + "repr(t)")
            body.append(line)
        text = "def kernel(x, out, n, m):\n" + "".join(f"    {part}\n" for b in body for part in b.split("\n"))
        file = f"<dead {seed}>"
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        scope = {"fx": fx, "__name__": "dead"}
        exec(compile(text, file, "exec"), scope)
        kernel = scope["kernel"]
        kernel.__annotations__ = {"x": fx.Tensor, "out": fx.Tensor, "n": fx.Int32, "m": fx.Int32}
        results.append(run(kernel).tolist())
    assert all(r == results[0] for r in results)


def test_R095_list_rebound_under_a_run_time_if_is_explained():
    """Fails if the error talks about converting a list instead of the branch, the variable and its two kinds."""

    def kernel(x: fx.Tensor, out: fx.Tensor, n: fx.Int32, m: fx.Int32):
        xs = [n, m]
        if n > m:
            xs = n
        out[0] = xs

    with pytest.raises(CarryMismatch) as caught:
        run(kernel)
    text = str(caught.value)
    assert "if: then-branch: carried variable 'xs'" in text and "list of length 2" in text and "Int32" in text
    assert "compile-time condition" in text
    assert caught.value.span.line == kernel.__code__.co_firstlineno + 3


def test_R096_views_of_shared_memory_in_branches():
    """Fails if `Branch` treats making a view as a change of a variable that must leave the branch."""

    def kernel(x: fx.Tensor, out: fx.Tensor, n: fx.Int32, m: fx.Int32):
        lane = fx.thread_idx.x
        half = lane % 32
        base = fx.get_iter(out)
        if lane < 32:
            mine = fx.make_view(base, fx.make_layout(32, 1))
            mine[half] = half
        else:
            mine = fx.make_view(base + 32, fx.make_layout((32, 2), (1, 32)))
            mine[half, 0] = half + 100

    out = run(kernel)
    assert out[:64].tolist() == [*range(32), *range(100, 132)]


def refuse(*_):
    raise AssertionError("the dead side was executed")


def test_R097_static_conditions_inside_run_time_branches():
    """Fails if `branch()` traces both sides of a condition that is a Python value."""

    def kernel(x: fx.Tensor, out: fx.Tensor, n: fx.Int32, m: fx.Int32):
        lane = fx.thread_idx.x
        static = True
        if lane < n:
            if static:
                out[lane] = 1
            else:
                refuse(lane)
        elif lane < n + m:
            if const_expr(not static):
                refuse(lane)
            else:
                out[lane] = 2
        else:
            for i in range(2):
                if not static or (False and refuse()):
                    refuse(i)
                elif static and lane > 60:
                    out[lane] = 3 if static else refuse()

    expected = [1] * 5 + [2] * 3 + [-1] * 53 + [3] * 3
    assert run(kernel)[:LANES].tolist() == expected


def test_R098_conditions_on_properties_are_decided_while_tracing():
    """Fails if `truth.condition` turns Python values into run-time conditions."""

    def kernel(x: fx.Tensor, out: fx.Tensor, n: fx.Int32, m: fx.Int32):
        r = fx.make_rmem_tensor(4, fx.Int32)
        for k, t in enumerate((x, r)):
            if t.element_type == fx.Float32:
                refuse()
            elif t.memspace == r.memspace:
                out[k] = 2
            elif fx.rank(t.layout) == 1:
                out[k] = 1
            else:
                refuse()

    assert run(kernel)[:2].tolist() == [1, 2]


def test_R099_variables_assigned_in_a_branch_before_a_while():
    """Fails if the while loop takes as initial value what one branch left, instead of the merged value."""

    def unused(x: fx.Tensor, out: fx.Tensor, n: fx.Int32, m: fx.Int32):
        i = fx.thread_idx.x
        k = fx.Int32(0)
        if i > n:
            k = i
        while i < 9:
            k = k + i
            i = i + 1
        out[fx.thread_idx.x] = i

    def used(x: fx.Tensor, out: fx.Tensor, n: fx.Int32, m: fx.Int32):
        i = fx.thread_idx.x
        k = fx.Int32(0)
        if i > n:
            k = i
        while i < 9:
            k = k + i
            i = i + 1
        out[fx.thread_idx.x] = k

    assert run(unused)[:12].tolist() == [max(9, lane) for lane in range(12)]
    assert run(used)[:12].tolist() == [(lane if lane > 5 else 0) + sum(range(lane, 9)) for lane in range(12)]


@pytest.mark.parametrize("depths", [(2, 4), (4, 2), (2, 2)])
def test_R137_two_pipelined_loops_over_one_buffer(depths):
    """Fails if the carry of one loop's stage index or LDS view leaks into the next loop over the same buffer."""

    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32, m: fx.Int32):
        lds = fx.SharedAllocator().allocate(fx.Array[fx.Int32, 4 * LANES]).peek()
        tid = fx.thread_idx.x
        total = fx.Int32(0)
        for depth in depths:
            view = lds.view(fx.make_layout((LANES, depth), (1, LANES)))
            for stage in range_constexpr(depth - 1):  # fill the pipeline
                view[tid, stage] = x[tid] + stage
            for k in range(n):
                fx.barrier()
                ahead = k + depth - 1
                view[tid, ahead % depth] = x[tid] + ahead
                total = total + view[(tid + 1) % LANES, k % depth] * (k + 1)
            fx.barrier()
        out[tid] = total

    lanes = np.arange(LANES)
    expected = 2 * sum(((lanes + 1) % LANES + k) * (k + 1) for k in range(7))
    assert (run(body, n=7)[:LANES] == expected).all()
