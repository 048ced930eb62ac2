"""Locations of ops: the user's file, line and column.

The location of an op is the innermost frame outside the package; if that frame is a helper that a kernel calls, it is a
call-site chain up to the frame that runs the kernel's body. Locations are cached by (id(code), f_lasti) and belong to one context.
"""

from types import CodeType, FrameType

from flydsl.diag.source import Span, is_internal, position
from flydsl.diag.source import _internal as _known  # the dict itself: this is the hottest line of tracing
from flydsl.ir.bindings import ir
from flydsl.utils import env


class LocationCache:
    """Locations of one context."""

    __slots__ = ("_cache", "_codes", "_context", "_unknown", "most")

    def __init__(self, context: ir.Context):
        self._context = context
        self._cache: dict = {}
        self._codes: dict[int, CodeType] = {}
        self._unknown = ir.Location.unknown(context)
        self.most = env.debug.max_loc_depth  # frames of a chain

    def at(self, frame: FrameType | None, root: CodeType | None) -> ir.Location:
        """Return the location of the innermost user frame at or outside `frame`.

        `root` is the code of the traced body, where a chain ends; None means no chains.
        """
        while frame is not None:
            code = frame.f_code
            known = _known.get(id(code))
            if known is None:
                known = is_internal(code)
            if not known:
                break
            frame = frame.f_back
        if frame is None:
            return self._unknown
        if code is not root and root is not None:
            return self._chain(frame, root)
        key = (id(code), frame.f_lasti)
        loc = self._cache.get(key)
        if loc is None:
            loc = self._cache[key] = self._file(code, frame.f_lasti)
        return loc

    def of_code(self, code: CodeType) -> ir.Location:
        """Return the location of a function's definition."""
        return ir.Location.file(code.co_filename, code.co_firstlineno, 1, self._context)

    def _chain(self, frame: FrameType, root: CodeType) -> ir.Location:
        code, lasti = frame.f_code, frame.f_lasti
        places = [(code, lasti)]
        key = [id(code), lasti]
        outer, most = frame.f_back, self.most
        while outer is not None and len(places) < most and code is not root:
            candidate = outer.f_code
            known = _known.get(id(candidate))
            if known is False or (known is None and not is_internal(candidate)):
                code, lasti = candidate, outer.f_lasti
                places.append((code, lasti))
                key += (id(code), lasti)
            outer = outer.f_back
        if outer is None and code is not root:
            del places[1:], key[2:]
        chain = tuple(key)
        loc = self._cache.get(chain)
        if loc is None:
            parts = [self._file(code, lasti) for code, lasti in places]
            loc = parts[0] if len(parts) == 1 else ir.Location.callsite(parts[0], parts[1:], self._context)
            self._cache[chain] = loc
        return loc

    def _file(self, code: CodeType, lasti: int) -> ir.Location:
        self._codes[id(code)] = code
        line, column, _ = position(code, lasti)
        return ir.Location.file(code.co_filename, line, column, self._context)


def span_of_location(location: ir.Location) -> Span | None:
    """Return the innermost source place that a location names, or None."""
    if location.__class__ is ir.Location:  # of a diagnostic: the bindings do not say which kind it is
        location = ir.Location.from_attr(location.attr, location.context)
    while isinstance(location, (ir.CallSiteLoc, ir.NameLoc, ir.FusedLoc)):
        if isinstance(location, ir.CallSiteLoc):
            location = location.callee
        elif isinstance(location, ir.NameLoc):
            location = location.child_loc
        else:
            location = location.locations[0]
    if isinstance(location, ir.FileLineColLoc):
        return Span(location.filename, location.start_line, location.start_col)
    return None
