"""Errors of `fx.rocdl`: AMD instructions called by name."""

import difflib
from collections.abc import Sequence

from flydsl.diag.base import UserError

__all__ = [
    "BufferAccess",
    "BufferSize",
    "BufferSpace",
    "RocdlArguments",
    "RawOperand",
    "RocdlOperand",
    "RocdlStatic",
    "RocdlUnknown",
    "UnknownDialectName",
    "WaitcntLegacy",
    "WaitcntStatic",
]


class RocdlUnknown(UserError, AttributeError):
    """Raised with `name`, `known` and the `module` that was asked."""

    code = "FLY_ROCDL_UNKNOWN"
    what = "`{module}` has no `{name}`{hint}"
    why = "it is neither a helper of this module nor an instruction of MLIR's rocdl dialect"
    fix = "check the spelling; `dir({module})` lists all names"

    def __init__(self, *, name: str, module: str, known: Sequence[str], **rest):
        close = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
        hint = f"; did you mean {' or '.join(f'`{c}`' for c in close)}?" if close else ""
        super().__init__(name=name, module=module, hint=hint, **rest)
        self.obj = None


class RocdlArguments(UserError, TypeError):
    code = "FLY_ROCDL_ARGUMENTS"
    what = "`rocdl.{name}` {problem}"
    why = "it is called as {signature}"
    fix = "give the arguments in this order; those after * by keyword"


class RawOperand(UserError, TypeError):
    code = "FLY_RAW_OPERAND"
    what = "{problem}"
    why = "{reason}"
    fix = "{advice}"


class RocdlOperand(UserError, TypeError):
    code = "FLY_ROCDL_OPERAND"
    what = "argument `{param}` of `rocdl.{name}` must be {expected}, got {got}"
    why = "it is called as {signature}"
    fix = "{advice}"


class RocdlStatic(UserError, TypeError):
    code = "FLY_ROCDL_STATIC"
    what = "argument `{param}` of `rocdl.{name}` must be a compile-time {expected}, got {got}"
    why = "it is encoded in the instruction itself"
    fix = "give a Python number, or a Constexpr parameter"


class WaitcntLegacy(UserError, TypeError):
    code = "FLY_WAITCNT_LEGACY"
    what = "legacy raw s_waitcnt bitfield cannot be combined with non-None keyword arguments"
    why = "the positional integer already holds all counters in the encoding of one chip"
    fix = "name the counters only: s_waitcnt(vmcnt=0, lgkmcnt=0)"


class WaitcntStatic(UserError, TypeError):
    code = "FLY_WAITCNT_STATIC"
    what = "{counter} must be a static Python int or Integer, got {got}"
    why = "the counts are encoded in the instruction itself"
    fix = "give a Python int, or a Constexpr parameter"


class BufferSpace(UserError, ValueError):
    code = "FLY_BUFFER_SPACE"
    what = "{function} needs a {wanted} pointer, got {got}"
    why = "{reason}"
    fix = "{advice}"


class BufferSize(UserError, ValueError):
    code = "FLY_BUFFER_SIZE"
    what = "num_records_bytes must be in [0, 4294967295], got {value}"
    why = "a buffer descriptor holds its size in 32 bits"
    fix = "move the base pointer to the part that is used, and give the size of that part"


class BufferAccess(UserError, ValueError):
    code = "FLY_BUFFER_ACCESS"
    what = "a buffer access of {count} x {elem_bits} = {bits} bits does not exist"
    why = "one instruction moves 8, 16, 32, 64, 96 or 128 bits per lane"
    fix = "split it into several accesses, or change vec_width"


class UnknownDialectName(UserError, AttributeError):
    """Raised with `module`, `name` and the `known` names."""

    code = "FLY_DIALECT_NAME"
    what = "`{module}` has no `{name}`{hint}"
    why = "the MLIR version underneath has no op, function or enum of this name in the dialect"
    fix = "`dir({module})` lists all names"

    def __init__(self, *, module: str, name: str, known: Sequence[str], **rest):
        close = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
        hint = f"; did you mean {' or '.join(f'`{c}`' for c in close)}?" if close else ""
        super().__init__(module=module, name=name, hint=hint, **rest)
