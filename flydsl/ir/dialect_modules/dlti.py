"""Marks the dialect `dlti` as known to the bindings; its classes are registered when the dialect is loaded."""
