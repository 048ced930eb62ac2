"""Errors of the simulator: what it cannot run, and what it found while running."""

from flydsl.diag.base import Unsupported, UserError

__all__ = ["SimBadLaunch", "SimBadModule", "SimFindings", "SimUnsupportedOp", "SimUnsupportedType"]


class SimUnsupportedOp(Unsupported, NotImplementedError):
    code = "FLY_SIM_OP"
    what = "the simulator has no rule for `{op}`{detail} in kernel `{kernel}`"
    why = "every op is executed or refused; skipping one would give wrong results silently"
    fix = "{advice_text}"


class SimUnsupportedType(Unsupported, TypeError):
    code = "FLY_SIM_TYPE"
    what = "the simulator has no representation for the type `{type}` of `{op}`"
    why = "it runs lowered IR: i1 to i64, index, f16, bf16, f32, f64, 1-D vectors of these, LLVM pointers and structs"
    fix = "lower the module first (small floats become integers), or keep the value in a supported type"


class SimBadModule(UserError, ValueError):
    code = "FLY_SIM_MODULE"
    what = "the lowered IR cannot be read: {problem}"
    why = "the simulator takes a module of upstream dialects that parses and verifies"
    fix = "dump the stage `lowered` again (FLYDSL_DUMP_IR=1), or correct the text at the place named"


class SimBadLaunch(UserError, ValueError):
    code = "FLY_SIM_LAUNCH"
    what = "kernel `{kernel}` cannot be launched: {problem}"
    why = "{reason_text}"
    fix = "{advice_text}"


class SimFindings(UserError, RuntimeError):
    """Raised at a fault (or at the end of a launch); `findings` holds the records."""

    code = "FLY_SIM_FINDING"
    what = "{text}"
    why = "{why_text}"
    fix = "{fix_text}"

    def __str__(self) -> str:
        return "\n".join(str(f) for f in self.findings)
