"""Python syntax whose meaning changes on run-time values: one file per construct, see `rewriter` for the order.

Works on syntax only: which values are run-time values is found when the rewritten code runs
(`flydsl.frontend.runtime`).
"""
