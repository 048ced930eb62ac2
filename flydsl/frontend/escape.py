"""Values that do not leave a region: variables bound only inside, and contents of objects that cannot be merged.

Rewritten code unbinds such variables, so that Python raises NameError where they are read; `explain_name_error`
tells why.
"""

import re
import threading
from typing import Any, NoReturn

from flydsl.diag import EscapedValue, RegionLocal, Span, position
from flydsl.frontend.site import Site

_REASONS = {
    "then": "when the condition is false it is never bound, and the condition is known only when the kernel runs",
    "else": "when the condition is true it is never bound, and the condition is known only when the kernel runs",
    "loop": "each iteration binds its own, and the loop may run no iteration at all",
}
_REGIONS = {"then": "the first branch of", "else": "the else branch of"}


class _Noted(threading.local):
    def __init__(self):
        self.names: dict[str, tuple[Site, str]] = {}


_noted = _Noted()


def note_region_local(site: Site, name: str, in_then: bool) -> None:
    """Note that a variable lost its value at the end of a region."""
    _noted.names[name] = (site, ("then" if in_then else "else") if site.construct == "if" else "loop")


def explain_name_error(error: NameError, code: Any) -> BaseException:
    """Return our error for a variable that a region kept, or the error itself."""
    found = re.search(r"'(\w+)'", str(error))
    noted = _noted.names.get(found.group(1)) if found else None
    tb = error.__traceback__
    while tb is not None and tb.tb_frame.f_code is not code:
        tb = tb.tb_next
    if noted is None or tb is None or tb.tb_next is not None or isinstance(error, RegionLocal):
        return error
    site, where = noted
    line, column, end = position(code, tb.tb_lasti)
    loop = where == "loop"
    construct = f"the {site.construct} loop at line {site.span.line}" if loop else f"the if at line {site.span.line}"
    region = construct if loop else f"{_REGIONS[where]} {construct}"
    at = Span(code.co_filename, line, column, end, code.co_name)
    explained = RegionLocal(at=at, name=found.group(1), region=region, construct=construct, reason=_REASONS[where])
    explained.__suppress_context__ = True
    return explained


class Escaped:
    """Stands in a list, dict or object for what the branches of an `if` left there and no value can stand for."""

    __slots__ = ("_name", "_site")

    def __init__(self, name: str, site: Site):
        object.__setattr__(self, "_name", name)
        object.__setattr__(self, "_site", site)

    def _raise(self, *_: Any) -> NoReturn:
        site = object.__getattribute__(self, "_site")
        name = object.__getattribute__(self, "_name")
        raise EscapedValue(region=f"the {site.construct} at line {site.span.line}", variable=f" through '{name}'")

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__") and name.endswith("__") and "ir_values" not in name:
            raise AttributeError(name)
        self._raise()

    __setattr__ = __call__ = __bool__ = __iter__ = __len__ = __getitem__ = __setitem__ = __index__ = __float__ = _raise
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __floordiv__ = _raise
    __rfloordiv__ = __mod__ = __rmod__ = __and__ = __or__ = __xor__ = __lshift__ = __rshift__ = __neg__ = __invert__ = (
        _raise
    )
    __lt__ = __le__ = __gt__ = __ge__ = _raise
