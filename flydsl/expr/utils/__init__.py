"""Old homes of arithmetic helpers; the real ones are `flydsl.expr.arith`, `.numeric`, `.fastmath`."""
