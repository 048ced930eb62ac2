"""Errors of tensors, pointers, fragments, copies, matrix operations and LDS."""

__all__: list[str] = []
