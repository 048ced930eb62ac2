"""Errors of decorating, calling, compiling and launching."""

from flydsl.diag.base import InternalError, UserError

__all__ = ["IrSyntax", "KernelOutsideJit", "NoSource", "NotTracing", "PassFailed", "VerifyFailed"]


class NotTracing(UserError, RuntimeError):
    code = "FLY_NOT_TRACING"
    what = "this operation builds GPU code, but no kernel is being traced"
    why = "operations on run-time values exist only while the body of a @flyc.kernel or @flyc.jit function runs"
    fix = "move the call into a @flyc.kernel or @flyc.jit function, or use static Python values"


class KernelOutsideJit(UserError, RuntimeError):
    code = "FLY_KERNEL_OUTSIDE_JIT"
    what = "@kernel can only be called inside @jit function: `{kernel}` was called from plain Python"
    why = "a kernel has no grid of its own; the @flyc.jit function around it computes the grid and launches it"
    fix = "write `@flyc.jit def launch(...): {kernel}(...).launch(grid=..., block=...)` and call `launch`"


class NoSource(UserError, OSError):
    code = "FLY_NO_SOURCE"
    what = "could not get source code of `{function}`"
    why = "the bodies of kernels and jit functions are parsed from their source file"
    fix = "define `{function}` in a file (or a notebook cell), not through exec or the plain interactive prompt"


class IrSyntax(UserError, ValueError):
    code = "FLY_IR_SYNTAX"
    what = "this text is not valid IR: {problem}"
    why = "the text starts with `{text}`"
    fix = "print the op or type once with str() and compare the spelling"


class VerifyFailed(InternalError, RuntimeError):
    code = "FLY_VERIFY_FAILED"
    what = "invalid IR after {stage}: {problem}"
    why = "the op at this place does not fit its operands or types"
    fix = "FLYDSL_DUMP_IR=1 writes every stage; please report this with the kernel"


class PassFailed(InternalError, RuntimeError):
    code = "FLY_PASS_FAILED"
    what = "pass {pass_name} failed: {problem}"
    why = "the op cannot be lowered as it stands"
    fix = "FLYDSL_DUMP_IR=1 writes the IR before the pass; repeat it with `python -m flydsl.tools.opt -p {pass_name}`"
