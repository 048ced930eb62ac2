"""Warnings about code that works and is probably not meant, or slow without need. Issued with `diag.warn`; `-W error` makes them errors."""

from flydsl.diag.base import FlyWarning

__all__ = [
    "BarrierDiverges",
    "PythonSideEffect",
    "RegisterIndexDynamic",
    "ScalarClassKept",
    "SwitchUnused",
    "Uncoalesced",
    "VectorMisaligned",
    "YieldUnused",
]


class YieldUnused(FlyWarning):
    code = "FLY_WARN_YIELD_UNUSED"
    what = "element {index} of the loop's `init=` state is never read, neither in the loop nor after it"
    why = "each element of the state occupies a register in every iteration"
    fix = "drop it from `init=` and `yield`, or read the loop's result"
    example = (
        "for i, state in range(n, init=[a, b]):\n    yield [state[0] + x[i], b]\nout[0] = a",
        "for i, state in range(n, init=[a]):\n    total = yield [state[0] + x[i]]\nout[0] = total",
    )


class RegisterIndexDynamic(FlyWarning):
    code = "FLY_WARN_REGISTER_INDEX"
    what = "a register tensor is indexed with a run-time value"
    why = "registers have no addresses: the tensor is kept in scratch memory instead, which is slow"
    fix = "unroll the loop with fx.range_constexpr so that the index is static, or use shared memory"
    example = (
        "for k in range(4):\n    total = total + frag[k]",
        "for k in fx.range_constexpr(4):\n    total = total + frag[k]",
    )


class Uncoalesced(FlyWarning):
    code = "FLY_WARN_UNCOALESCED"
    what = "neighbouring lanes access global memory {stride} bytes apart, {bytes} bytes each"
    why = "every lane touches a cache line of its own: {lines} lines for one instruction of a wave"
    fix = "let neighbouring lanes access neighbouring elements, or go through shared memory"
    example = (
        "out[tid * 64 + k] = v",
        "out[k * 64 + tid] = v",
    )


class VectorMisaligned(FlyWarning):
    code = "FLY_WARN_MISALIGNED"
    what = "a {bits}-bit access of LDS starts at an address that is only known to be a multiple of {align} bytes"
    why = "LDS serves a wide access at once where its start is aligned; elsewhere it may take several passes"
    fix = "align the start: fx.int_tuple_mul(n, k) keeps what is known of a product, `assumed_align=` states it for a tensor"
    example = (
        "fx.copy(copy_128b, fx.make_view(lds + 4 * i, fx.make_layout(4, 1)), frag)",
        "fx.copy(copy_128b, fx.make_view(lds + fx.int_tuple_mul(i, 4), fx.make_layout(4, 1)), frag)",
    )


class BarrierDiverges(FlyWarning):
    code = "FLY_WARN_BARRIER_DIVERGES"
    what = "a barrier under a condition that depends on the thread"
    why = "all waves of the workgroup must reach the same barrier; those that skip it leave the others waiting, or meet another barrier"
    fix = "put the barrier after the `if`, or make the condition the same for all threads"
    example = (
        "if tid < 64:\n    lds[tid] = x[tid]\n    fx.barrier()",
        "if tid < 64:\n    lds[tid] = x[tid]\nfx.barrier()",
    )


class PythonSideEffect(FlyWarning):
    code = "FLY_WARN_SIDE_EFFECT"
    what = "`{call}` stands in a branch that is decided when the kernel runs"
    why = "both branches are traced, so Python runs it once while tracing, whatever the condition will be"
    fix = "use fx.printf for what the kernel should print, or move the Python call out of the branch"
    example = (
        'if x[i] > 1.0:\n    print("large")',
        'if x[i] > 1.0:\n    fx.printf("large: {}", x[i])',
    )


class ScalarClassKept(FlyWarning):
    code = "FLY_WARN_SCALAR_CLASS"
    what = "`{parameter}` of `{function}` is annotated as fx.{declared} and gets a {got}, which it stays: the annotation is not enforced"
    why = "a conversion could lose digits, so a scalar that has a class keeps it; arithmetic follows that class"
    fix = "pass `x.to(fx.{declared})`, or annotate the parameter as fx.{got}"
    example = (
        "scale(out, fx.Int64(n)).launch(...)  # def scale(out: fx.Tensor, n: fx.Int32)",
        "scale(out, fx.Int32(n)).launch(...)",
    )


class SwitchUnused(FlyWarning):
    code = "FLY_WARN_SWITCH_UNUSED"
    what = "{switch} is set and has no effect"
    why = "{reason}"
    fix = "leave it out"
