"""From Python source to traced control flow: `rewritten(fn)` is what the compiler runs to trace a kernel."""

from flydsl.frontend.collect import other_errors
from flydsl.frontend.functions import rewritten

__all__ = ["other_errors", "rewritten"]
