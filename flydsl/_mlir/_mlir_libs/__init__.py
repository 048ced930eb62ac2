"""Modules that the reference builds in C++."""
