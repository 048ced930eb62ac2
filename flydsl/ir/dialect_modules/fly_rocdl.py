"""Marks the dialect `fly_rocdl` as known to the bindings; its classes are registered when the dialect is loaded."""
