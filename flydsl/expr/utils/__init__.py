"""`print_typst`, and old homes of arithmetic helpers; the real ones are `flydsl.expr.arith`, `.numeric`, `.fastmath`."""

from flydsl.expr.utils.print_typst import print_typst

__all__ = ["print_typst"]
