"""The `flydsl` command. Each subcommand is a module with `add_arguments(parser)` and `run(args) -> exit status`."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import traceback

import flydsl

COMMANDS = {
    "compile": ("compile_command", "compile a jit function of a file and print IR, ISA or code"),
    "cache": ("cache_command", "list the disk cache, explain its misses, clear it"),
    "report": ("report_command", "say what code a kernel became: registers, occupancy, spills, instructions, main loop"),
    "sim": ("sim_command", "run a torch program written for a GPU without one"),
    "doctor": ("doctor", "say what is installed, which devices and tools there are, and what is missing"),
    "layout": ("layout_command", "evaluate, print and draw a layout"),
    "explain": ("explain", "explain an error code"),
}


def main(argv: list[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    as_program = argv is None
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="flydsl", description="FlyDSL: GPU kernels in Python, with and without a GPU.")
    parser.add_argument("--version", action="version", version=f"flydsl {flydsl.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    chosen = next((a for a in argv if not a.startswith("-")), "")
    for name, (module, text) in COMMANDS.items():
        sub = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        if name == chosen:
            command = importlib.import_module(f"flydsl.tools.{module}")
            command.add_arguments(sub)
            sub.set_defaults(run=command.run)
    args = parser.parse_args(argv)
    if args.command is None:
        parser.print_help(sys.stderr)
        return 2
    if as_program:
        _hide_callers()
    try:
        return args.run(args) or 0
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as e:
        if not _say(e):
            raise
        return 1


def _hide_callers() -> None:
    """Let no error point at the script that calls `main`: it is not the user's code."""
    from flydsl.diag import mark_internal

    frame = sys._getframe(2)
    while frame is not None:
        mark_internal(frame.f_code, True)
        frame = frame.f_back


def _say(error: Exception) -> bool:
    """Print an error of ours, or one that the user's code raised, with the user's frames; return whether that was done."""
    from flydsl.diag import FlyError
    from flydsl.diag.stack import is_users, shows_internal_frames, without_internal_frames

    if shows_internal_frames() or not is_users(error, error.__traceback__):
        return False
    if isinstance(error, FlyError):
        sys.stderr.write(f"{error}\n")
    else:
        sys.stderr.writelines(traceback.format_exception(type(error), error, without_internal_frames(error.__traceback__)))
    return True


if __name__ == "__main__":
    sys.exit(main())
