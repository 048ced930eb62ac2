"""The package's logger, named `flydsl`: silent on the console unless switched on (`FLYDSL_DEBUG_LOG_TO_CONSOLE`, `FLYDSL_DEBUG`)."""

import logging
import sys

from flydsl.utils import env

log = logging.getLogger("flydsl")


def configure() -> logging.Logger:
    """Give the logger the handlers and the level that the environment asks for."""
    for handler in list(log.handlers):
        log.removeHandler(handler)
    handlers: list[logging.Handler] = []
    if env.debug.log_to_console or env.debug.level:
        handlers.append(logging.StreamHandler(sys.stderr))
    if env.debug.log_to_file:
        handlers.append(logging.FileHandler(env.debug.log_to_file))
    for handler in handlers or [logging.NullHandler()]:
        handler.setFormatter(logging.Formatter("[flydsl] %(message)s"))
        log.addHandler(handler)
    log.setLevel(logging.DEBUG if env.debug.level >= 2 else env.debug.log_level)
    log.propagate = False
    return log


configure()
