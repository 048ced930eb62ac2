"""The names that generated code may use: `h_` helpers, `T_` types, constants."""

from __future__ import annotations

from typing import Any

from flydsl.targets.sim import buffer, convert, floats, mask, matrix, numeric, wave

_MODULES = (mask, numeric, floats, wave, buffer, matrix, convert)


def _collect() -> dict[str, Any]:
    names: dict[str, Any] = {f"T_{k}": v for k, v in numeric.TYPES.items()}
    for module in _MODULES:
        for name, value in vars(module).items():
            if name.startswith("h_"):
                assert names.get(name, value) is value, name
                names[name] = value
    return names


NAMESPACE = _collect()
