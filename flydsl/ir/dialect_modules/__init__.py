"""Modules that the bindings import when they meet an op or type of a Python-defined dialect (see ir/bindings.py)."""
