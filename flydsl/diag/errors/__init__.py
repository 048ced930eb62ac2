"""Every error code, once, by subject. Adding one: a class in the file of its subject, a test in tests/errors/."""

from flydsl.diag.errors import compile as _compile
from flydsl.diag.errors import device as _device
from flydsl.diag.errors import frontend as _frontend
from flydsl.diag.errors import memory as _memory
from flydsl.diag.errors import rocdl as _rocdl
from flydsl.diag.errors import simulator as _simulator
from flydsl.diag.errors import target as _target
from flydsl.diag.errors import tools as _tools
from flydsl.diag.errors import types as _types
from flydsl.diag.errors import warnings as _warnings
from flydsl.diag.errors.compile import *
from flydsl.diag.errors.device import *
from flydsl.diag.errors.frontend import *
from flydsl.diag.errors.memory import *
from flydsl.diag.errors.rocdl import *
from flydsl.diag.errors.simulator import *
from flydsl.diag.errors.target import *
from flydsl.diag.errors.tools import *
from flydsl.diag.errors.types import *
from flydsl.diag.errors.warnings import *

_SUBJECTS = (_compile, _device, _frontend, _memory, _rocdl, _simulator, _target, _tools, _types, _warnings)
__all__ = [name for subject in _SUBJECTS for name in subject.__all__]
