"""Errors of control flow and of Python used on run-time values."""

from flydsl.diag.base import UserError

__all__ = ["DynamicAsPython"]


class DynamicAsPython(UserError, RuntimeError):
    code = "FLY_DYNAMIC_AS_PYTHON"
    what = "cannot evaluate dynamic '{dtype}' as Python {wanted} during tracing"
    why = "the value is known only when the kernel runs; Python asks for it while the kernel is being traced"
    fix = "{advice}"
