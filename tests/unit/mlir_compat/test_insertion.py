"""Raw ops and DSL ops go to one place: in a function being traced, and in a module made by hand."""

import re

import pytest

from flydsl._mlir import ir
from flydsl._mlir.dialects import arith, func, llvm, scf
from flydsl._mlir.extras import types as T
from flydsl.expr import rocdl
from flydsl.expr.numeric import Float32, Int32
from flydsl.expr.numeric.raw_value import ArithValue
from flydsl.ir import Trace, emit, print_op
from flydsl.ir import ir as bindings


@pytest.fixture
def traced():
    """A kernel function being traced, with arguments i32, i1 and a pointer; `text()` ends it and verifies the module."""
    trace = Trace("gfx942")

    class Kernel:
        def text(self):
            emit("func.return")
            assert trace.module.operation.verify()
            return print_op(trace.module)

        def located(self):
            return print_op(trace.module, locations=True)

    kernel = Kernel()
    with trace:
        inputs = [trace.types.i32, trace.types.i1, trace.types.llvm_ptr(1)]
        type_ = bindings.FunctionType.get(inputs, [])
        attrs = {"sym_name": bindings.StringAttr.get("f"), "function_type": bindings.TypeAttr.get(type_)}
        op = emit("func.func", (), (), attrs, 1)
        block = op.regions[0].blocks.append(*inputs, arg_locs=[trace.unknown_loc] * 3)
        with trace.in_function(block, "kernel", None):
            kernel.args, kernel.trace = list(block.arguments), trace
            yield kernel


def _body(text):
    return [line.strip() for line in text.splitlines() if "arith.constant" not in line]


def test_raw_ops_follow_the_trace(traced):
    i = Int32(traced.args[0])
    a = arith.AddIOp(i, i).result
    b = a + 1
    arith.MulIOp(b, i)
    ops = [re.sub(r".*(arith\.\w+).*", r"\1", line) for line in _body(traced.text()) if "arith." in line]
    assert ops == ["arith.addi", "arith.addi", "arith.muli"]


def test_dsl_ops_follow_an_entered_point(traced):
    i, cond, p = traced.args
    x = Int32(i) + 1
    op = scf.IfOp(cond)
    with ir.InsertionPoint(op.then_block):
        y = x * 5
        llvm.StoreOp(y, p)
        rocdl.s_barrier()
        scf.YieldOp([])
    x * 7
    lines = _body(traced.text())
    inside = lines[next(n for n, line in enumerate(lines) if "scf.if" in line) + 1 :]
    close = inside.index("}")
    assert [re.sub(r"^%\S+ = ", "", line).split()[0] for line in inside[:close]] == [
        "arith.muli",
        "llvm.store",
        "rocdl.s.barrier",
    ]
    assert "arith.muli" in inside[close + 1]


def test_point_is_restored_after_an_exception(traced):
    op = scf.IfOp(traced.args[1])
    before = traced.trace.ip
    with pytest.raises(RuntimeError):
        with ir.InsertionPoint(op.then_block):
            raise RuntimeError
    assert traced.trace.ip is before
    with ir.InsertionPoint(op.then_block):
        scf.YieldOp([])
    traced.text()


def test_current_point(traced):
    op = scf.IfOp(traced.args[1])
    assert ir.InsertionPoint.current.block == traced.trace.ip.block
    with ir.InsertionPoint(op.then_block):
        assert ir.InsertionPoint.current.block == op.then_block
        scf.YieldOp([])
    traced.text()


def test_results_of_branches_and_loops_have_operators(traced):
    i = Int32(traced.args[0])
    op = scf.IfOp(i > 3, [T.i32()], has_else=True)
    with ir.InsertionPoint(op.then_block):
        scf.YieldOp([i + 1])
    with ir.InsertionPoint(op.else_block):
        scf.YieldOp([i])
    loop = scf.ForOp(0, 10, 1, [op.results[0]])
    with ir.InsertionPoint(loop.body):
        (acc,) = loop.inner_iter_args
        assert isinstance(acc, ArithValue) and isinstance(loop.induction_variable, ArithValue)
        scf.YieldOp([acc + 1])
    assert isinstance(loop.results[0], ArithValue) and isinstance(op.result, ArithValue)
    for iv, acc, result in scf.for_(0, 4, 1, iter_args=[loop.results[0]]):
        scf.yield_([acc * 2])
    llvm.store(result, traced.args[2], alignment=4)
    text = traced.text()
    assert text.count("scf.for") == 2 and "scf.if" in text and "llvm.store %" in text


def test_while_loop(traced):
    loop = scf.WhileOp([T.i32()], [Int32(traced.args[0])])
    before = ir.Block.create_at_start(loop.before, [T.i32()])
    after = ir.Block.create_at_start(loop.after, [T.i32()])
    with ir.InsertionPoint(before):
        scf.ConditionOp(Int32(before.arguments[0]) < 10, [before.arguments[0]])
    with ir.InsertionPoint(after):
        scf.YieldOp([Int32(after.arguments[0]) + 1])
    assert "scf.while" in traced.text()


def test_raw_ops_have_the_users_location(traced):
    arith.AddIOp(Int32(traced.args[0]), Int32(traced.args[0]))
    traced.text()
    line = next(line for line in traced.located().splitlines() if "arith.addi" in line)
    assert "test_insertion.py" in line


def test_dsl_in_a_module_made_by_hand():
    with ir.Context() as ctx, ir.Location.unknown(ctx):
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            f = func.FuncOp("f", ir.FunctionType.get([T.i32(), T.f32()], []))
            entry = f.add_entry_block()
            with ir.InsertionPoint(entry):
                x = Int32(entry.arguments[0]) + 2
                op = scf.IfOp(x > 1)
                with ir.InsertionPoint(op.then_block):
                    x * 3
                    scf.YieldOp([])
                Float32(arith.ConstantOp(T.f32(), 1.5).result) + entry.arguments[1]
                func.ReturnOp([])
        assert module.operation.verify()
        text = str(module)
    lines = _body(text)
    assert (
        lines.index("scf.if %1 {") < next(n for n, line in enumerate(lines) if "arith.muli" in line) < lines.index("}")
    )
    with pytest.raises(Exception, match="trac"):
        Int32(1).ir_value()


def test_two_functions_by_hand_do_not_share_constants():
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            for name in ("f", "g"):
                f = func.FuncOp(name, ir.FunctionType.get([T.i32()], []))
                with ir.InsertionPoint(f.add_entry_block()):
                    Int32(f.arguments[0]) + 41
                    func.ReturnOp([])
        assert module.operation.verify()
        assert str(module).count("arith.constant 41") == 2
