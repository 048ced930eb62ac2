"""One configuration of a tuned function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_COMPILER_OPTIONS = ("waves_per_eu",)


class Config:
    """Values for keyword parameters of the jit function, and compile hints.

    `num_warps` is a parameter of the function; `waves_per_eu` is a compile hint; `pre_hook(kwargs)` runs before
    each launch.
    """

    def __init__(
        self,
        *,
        num_warps: int | None = None,
        waves_per_eu: Any = None,
        pre_hook: Callable | None = None,
        **kwargs: Any,
    ):
        if "maxnreg" in kwargs:
            raise TypeError(
                "Config(maxnreg=...) has no effect on AMD GPUs; use waves_per_eu to trade registers for occupancy"
            )
        self.kwargs = kwargs
        self.num_warps = num_warps
        self.waves_per_eu = waves_per_eu
        self.pre_hook = pre_hook

    def all_kwargs(self) -> dict[str, Any]:
        """Return the values for parameters of the function."""
        return {**self.kwargs, **({} if self.num_warps is None else {"num_warps": self.num_warps})}

    def compiler_opts(self) -> dict[str, Any]:
        """Return the compile hints."""
        return {n: v for n in _COMPILER_OPTIONS if (v := getattr(self, n)) is not None}

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the hook, for JSON."""
        return {**self.all_kwargs(), **self.compiler_opts()}

    @classmethod
    def from_dict(cls, d: dict[str, Any]) -> Config:
        """Return the configuration of `to_dict`."""
        return cls(**d)

    def __repr__(self) -> str:
        return f"Config({', '.join(f'{n}={v!r}' for n, v in self.to_dict().items())})"
