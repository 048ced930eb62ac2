"""Every error code, once, by subject. Adding one: a class in the file of its subject, a test in tests/errors/."""

from flydsl.diag.errors import compile as _compile
from flydsl.diag.errors import device as _device
from flydsl.diag.errors import frontend as _frontend
from flydsl.diag.errors import memory as _memory
from flydsl.diag.errors import rocdl as _rocdl
from flydsl.diag.errors import simulator as _simulator
from flydsl.diag.errors import target as _target
from flydsl.diag.errors import types as _types
from flydsl.diag.errors import warnings as _warnings
from flydsl.diag.errors.compile import *  # noqa: F403
from flydsl.diag.errors.device import *  # noqa: F403
from flydsl.diag.errors.frontend import *  # noqa: F403
from flydsl.diag.errors.memory import *  # noqa: F403
from flydsl.diag.errors.rocdl import *  # noqa: F403
from flydsl.diag.errors.simulator import *  # noqa: F403
from flydsl.diag.errors.target import *  # noqa: F403
from flydsl.diag.errors.types import *  # noqa: F403
from flydsl.diag.errors.warnings import *  # noqa: F403

__all__ = [*_compile.__all__, *_device.__all__, *_frontend.__all__, *_memory.__all__, *_rocdl.__all__, *_simulator.__all__, *_target.__all__, *_types.__all__, *_warnings.__all__]
