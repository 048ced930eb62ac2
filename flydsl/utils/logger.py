"""The package's logger, named `flydsl`. Its notices (where kernels run) go to standard error, once each; the rest of it
does so where that is switched on (`FLYDSL_DEBUG_LOG_TO_CONSOLE`, `FLYDSL_DEBUG`). `FLYDSL_DEBUG_LOG_LEVEL=ERROR` silences notices.
"""

import logging
import sys

from flydsl.utils import env

log = logging.getLogger("flydsl")
_said: set[str] = set()


class _Console(logging.StreamHandler):
    """Writes to what `sys.stderr` is at the time: test runners replace and close it."""

    def __init__(self):
        logging.Handler.__init__(self)

    @property
    def stream(self):
        return sys.stderr


def say_once(text: str, notice: bool = True) -> None:
    """Log a line, the first time only."""
    if text not in _said:
        _said.add(text)
        log.warning(text, extra={"notice": notice})


def configure() -> logging.Logger:
    """Give the logger the handlers and the level that the environment asks for."""
    for handler in list(log.handlers):
        log.removeHandler(handler)
    console = _Console()
    handlers: list[logging.Handler] = [console]
    if not (env.debug.log_to_console or env.debug.level):
        console.addFilter(lambda entry: getattr(entry, "notice", False))
    if env.debug.log_to_file:
        handlers.append(logging.FileHandler(env.debug.log_to_file))
    for handler in handlers:
        handler.setFormatter(logging.Formatter("[flydsl] %(message)s"))
        log.addHandler(handler)
    log.setLevel(logging.DEBUG if env.debug.level >= 2 else env.debug.log_level)
    log.propagate = False
    return log


configure()
