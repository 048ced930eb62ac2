"""Marks the dialect `ptr` as known to the bindings; its classes are registered when the dialect is loaded."""
