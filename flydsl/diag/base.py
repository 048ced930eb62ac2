"""The base of every error that a user can see: a stable code, what, where, why and how to fix.

An error class states its texts once, as `str.format` templates over the fields it is raised with:

    class CopyNotContiguous(UserError, ValueError):
        code = "FLY_COPY_NOT_CONTIGUOUS"
        what = "a {bits}-bit copy needs {count} adjacent {dtype}, but `{operand}` steps by {step}"
        why = "one instruction moves one run of adjacent bytes"
        fix = "order the value layout along the contiguous mode, or use a narrower copy atom"

    raise CopyNotContiguous(bits=128, count=8, dtype="f16", operand="thr_gA", step=4096)

The place is the innermost frame of the user's code unless `at=` names another one.
"""

from typing import ClassVar

from flydsl.diag.legacy import DSLCompileError
from flydsl.diag.source import Span, user_chain

catalogue: dict[str, type["FlyError"]] = {}


class FlyError(Exception):
    """Base class. Fields given to the constructor become attributes and fill the templates."""

    code: ClassVar[str] = ""
    what: ClassVar[str] = ""
    why: ClassVar[str] = ""
    fix: ClassVar[str] = ""
    example: ClassVar[tuple[str, str] | None] = None  # source before and after, for `flydsl explain`

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "code" in cls.__dict__:
            known = catalogue.get(cls.code)
            assert known is None or known.__qualname__ == cls.__qualname__, (cls.code, known, cls)
            catalogue[cls.code] = cls

    def __init__(self, *, at: Span | None = None, notes: tuple[str, ...] = (), **fields):
        self.fields = fields
        for name, value in fields.items():
            setattr(self, f"{name}_" if hasattr(type(self), name) else name, value)
        self.spans = (at,) if at is not None else user_chain()
        self.extra_notes = tuple(notes)
        self.others: tuple[BaseException, ...] = ()  # independent errors of the same kernel
        super().__init__(self.message)

    @property
    def message(self) -> str:
        """One line that says what is wrong."""
        return self.what.format(**self.fields)

    @property
    def reason(self) -> str:
        return self.why.format(**self.fields)

    @property
    def advice(self) -> str:
        return self.fix.format(**self.fields)

    @property
    def span(self) -> Span | None:
        """The place in the user's code, or None where no user code is involved."""
        return self.spans[0] if self.spans else None

    def __str__(self) -> str:
        from flydsl.diag.render import render

        return render(self)


class FlyWarning(FlyError, UserWarning):
    """Code that works and is probably not meant, or slow without need."""


class UserError(FlyError):
    """The author of the kernel wrote something that cannot work."""


class Unsupported(FlyError):
    """A thing that this implementation or the chosen chip does not have; the text says what is supported."""


class MissingTool(FlyError):
    """A program or library that is needed is not installed; the text says how to get it."""


class InternalError(FlyError, DSLCompileError):
    """A fault of this package."""
