"""A module of a user that holds state, for `test_state`."""

LIMITS = [0]
level = 0


class Limits:
    high = 0


def raise_level(x):
    global level
    level = level + x
