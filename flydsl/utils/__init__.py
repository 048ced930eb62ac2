"""Switches, logging and legacy helpers."""
