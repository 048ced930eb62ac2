"""From Python source to traced control flow: `rewritten(fn)` makes the function that the compiler runs to trace a kernel."""

from flydsl.frontend.functions import rewritten

__all__ = ["rewritten"]
