"""The reference's compile error and excepthook under their names. Our own errors are in `flydsl.diag`; those of the
compiler itself (`InternalError`) are `DSLCompileError`s, too."""

from __future__ import annotations

import sys

from flydsl.diag import FlyError
from flydsl.diag.legacy import DiagRecord, DSLCompileError, SourceFrame
from flydsl.diag.stack import hook

__all__ = ["DSLCompileError", "DiagRecord", "SourceFrame", "install_excepthook"]

_PACKAGE = __file__.rpartition("compiler")[0]
_dsl_excepthook_installed = False


def _is_framework_file(filename: str) -> bool:
    return filename.startswith((_PACKAGE, "<frozen"))


def install_excepthook() -> None:
    """Let uncaught errors of kernels be shown without the package's frames; a second call does nothing."""
    global _dsl_excepthook_installed
    if not _dsl_excepthook_installed:
        _dsl_excepthook_installed = True
        keep = lambda code: not _is_framework_file(code.co_filename)
        sys.excepthook = hook(sys.excepthook, (FlyError, DSLCompileError), keep)
