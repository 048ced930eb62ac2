"""Structure of `match` patterns while tracing: length, keys and class are Python's, whatever the parts are."""

from collections.abc import Mapping, Sequence
from typing import Any

_ITSELF = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)  # `case int(x)` binds the subject


def is_sequence(subject: Any, count: int, at_least: bool) -> bool:
    """Return whether the subject is a sequence of `count` elements, or of `at_least` so many."""
    if not isinstance(subject, Sequence) or isinstance(subject, (str, bytes, bytearray)):
        return False
    return len(subject) >= count if at_least else len(subject) == count


def rest_of_sequence(subject: Sequence, before: int, after: int) -> list:
    """Return the elements that `*rest` binds."""
    return list(subject[before : len(subject) - after])


def has_keys(subject: Any, *keys: Any) -> bool:
    """Return whether the subject is a mapping with these keys."""
    return isinstance(subject, Mapping) and all(key in subject for key in keys)


def rest_of_mapping(subject: Mapping, *keys: Any) -> dict:
    """Return the items that `**rest` binds."""
    return {k: v for k, v in subject.items() if k not in keys}


def is_instance(subject: Any, cls: type, positions: int, *attributes: str) -> bool:
    """Return whether the subject is of a class and has what the pattern looks at.

    Raises   TypeError: more positions than the class takes
    """
    if not isinstance(subject, cls):
        return False
    names = attributes
    if positions and cls not in _ITSELF:
        known = getattr(cls, "__match_args__", ())
        if positions > len(known):
            raise TypeError(f"{cls.__name__}() accepts {len(known)} positional sub-patterns ({positions} given)")
        names = (*known[:positions], *attributes)
    return all(hasattr(subject, name) for name in names)


def positional(subject: Any, cls: type, position: int) -> Any:
    """Return what the pattern at a position looks at."""
    return subject if cls in _ITSELF else getattr(subject, cls.__match_args__[position])
