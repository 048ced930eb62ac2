"""Class forms of the raw builders: `AddFOp(lhs, rhs).result`."""

from collections.abc import Callable
from typing import Any

from flydsl.expr.arith import builders as b
from flydsl.expr.arith import functions as f
from flydsl.expr.numeric.raw_value import ArithValue
from flydsl.ir import ir


class RawOp:
    """A built op: `result` is its value, `operation` the op itself."""

    builder: Callable[..., ArithValue]

    def __init__(self, *args: Any, **kwargs: Any):
        result = type(self).builder(*args, **kwargs)
        self.result = result if isinstance(result, ArithValue) else ArithValue(result.ir_value())

    @property
    def results(self) -> list[ArithValue]:
        return [self.result]

    @property
    def operation(self) -> ir.Operation:
        return self.result.owner

    def __extract_to_ir_values__(self) -> list[ir.Value]:
        return [self.result]


def _class(name: str, builder: Callable[..., Any]) -> type[RawOp]:
    doc = f"`{name}(...)`: {builder.__doc__}"
    return type(name, (RawOp,), {"builder": staticmethod(builder), "__doc__": doc, "__module__": __name__})


def _constant(result: Any, value: Any, *, results: Any = None, loc: Any = None, ip: Any = None) -> ArithValue:
    """Return a constant of the type `result`."""
    number = getattr(value, "value", value)
    return b.constant(number, type=result)


AddFOp = _class("AddFOp", b.addf)
AddIOp = _class("AddIOp", b.addi)
AndIOp = _class("AndIOp", b.andi)
BitcastOp = _class("BitcastOp", b.bitcast)
CeilDivSIOp = _class("CeilDivSIOp", b.ceildivsi)
CeilDivUIOp = _class("CeilDivUIOp", b.ceildivui)
CmpFOp = _class("CmpFOp", f.cmpf)
CmpIOp = _class("CmpIOp", f.cmpi)
ConstantOp = _class("ConstantOp", _constant)
DivFOp = _class("DivFOp", b.divf)
DivSIOp = _class("DivSIOp", b.divsi)
DivUIOp = _class("DivUIOp", b.divui)
ExtFOp = _class("ExtFOp", b.extf)
ExtSIOp = _class("ExtSIOp", b.extsi)
ExtUIOp = _class("ExtUIOp", b.extui)
FPToSIOp = _class("FPToSIOp", b.fptosi)
FPToUIOp = _class("FPToUIOp", b.fptoui)
FloorDivSIOp = _class("FloorDivSIOp", b.floordivsi)
IndexCastOp = _class("IndexCastOp", b.index_cast)
IndexCastUIOp = _class("IndexCastUIOp", b.index_castui)
MaxNumFOp = _class("MaxNumFOp", f.maxnumf)
MaxSIOp = _class("MaxSIOp", b.maxsi)
MaxUIOp = _class("MaxUIOp", b.maxui)
MaximumFOp = _class("MaximumFOp", f.maximumf)
MinNumFOp = _class("MinNumFOp", f.minnumf)
MinSIOp = _class("MinSIOp", b.minsi)
MinUIOp = _class("MinUIOp", b.minui)
MinimumFOp = _class("MinimumFOp", f.minimumf)
MulFOp = _class("MulFOp", b.mulf)
MulIOp = _class("MulIOp", b.muli)
NegFOp = _class("NegFOp", b.negf)
OrIOp = _class("OrIOp", b.ori)
RemFOp = _class("RemFOp", b.remf)
RemSIOp = _class("RemSIOp", b.remsi)
RemUIOp = _class("RemUIOp", b.remui)
SIToFPOp = _class("SIToFPOp", b.sitofp)
SelectOp = _class("SelectOp", b.select)
ShLIOp = _class("ShLIOp", b.shli)
ShRSIOp = _class("ShRSIOp", b.shrsi)
ShRUIOp = _class("ShRUIOp", f.shrui)
SubFOp = _class("SubFOp", b.subf)
SubIOp = _class("SubIOp", b.subi)
TruncFOp = _class("TruncFOp", b.truncf)
TruncIOp = _class("TruncIOp", b.trunci)
UIToFPOp = _class("UIToFPOp", b.uitofp)
XOrIOp = _class("XOrIOp", b.xori)
