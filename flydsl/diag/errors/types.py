"""Errors of scalar, vector and layout types."""

__all__: list[str] = []
