"""Errors of chips, code generation, linking and devices."""

__all__: list[str] = []
