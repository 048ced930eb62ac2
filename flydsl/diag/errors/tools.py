"""Errors of the commands: `flydsl compile`, `python -m flydsl.tools.opt`."""

from flydsl.diag.base import UserError

__all__ = ["CompileCommandArch", "InputUnreadable", "OutputUnwritable"]


class CompileCommandArch(UserError, ValueError):
    code = "FLY_COMPILE_ARCH"
    what = "`{function}` of {file} was compiled for {compiled}, not for {arch}, which --arch asks for"
    why = "the file names a chip of its own (ARCH, FLYDSL_GPU_ARCH, or the device of its tensors), and that wins"
    fix = "leave --arch out, have the file take its chip from FLYDSL_GPU_ARCH, or pass the arguments with --arg: then the file is not run as a script"


class InputUnreadable(UserError, OSError):
    code = "FLY_INPUT"
    what = "cannot read {path}: {problem}"
    why = "the command works on the content of this file"
    fix = "name a file that exists and may be read{otherwise}"


class OutputUnwritable(UserError, OSError):
    code = "FLY_OUTPUT"
    what = "cannot write {path}: {problem}"
    why = "the result of the command was to go to this file"
    fix = "name a file in a folder that exists and may be written to"
