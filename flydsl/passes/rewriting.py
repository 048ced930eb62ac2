"""What passes share: building ops before another op, constants, walking, replacing."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from flydsl.ir import Types, ir
from flydsl.ir.trace import constant_attr

_create = ir.Operation.create
Rule = TypeVar("Rule", bound=Callable)
FUNCTIONS = ("gpu.func", "func.func")


class Editor:
    """Builds ops before a given op, with its location; constants go to the entry block of the function."""

    def __init__(self, types: Types):
        self.types = types
        self.ip: ir.InsertionPoint | None = None
        self.loc: ir.Location | None = None
        self._entry: ir.Block | None = None
        self._constants: dict = {}
        self._numbers: dict[int, ir.Attribute] = {}

    def enter_function(self, entry: ir.Block) -> None:
        """Forget the constants of the last function; those of this one go to the start of `entry`."""
        self._entry = entry
        self._constants = {}

    def before(self, op: Any) -> "Editor":
        """Build before `op` from now on."""
        op = op.operation
        self.ip = ir.InsertionPoint(op)
        self.loc = op.location
        return self

    def at_end(self, block: ir.Block, loc: ir.Location) -> "Editor":
        """Build at the end of `block` from now on."""
        self.ip = ir.InsertionPoint(block)
        self.loc = loc
        return self

    def op(
        self,
        name: str,
        results: Sequence[ir.Type] = (),
        operands: Sequence[ir.Value] = (),
        attrs: dict | None = None,
        regions: int = 0,
    ) -> ir.Operation:
        """Build an op."""
        return _create(name, results, operands, attrs, None, regions, self.loc, self.ip)

    def value(
        self, name: str, result: ir.Type, operands: Sequence[ir.Value] = (), attrs: dict | None = None
    ) -> ir.Value:
        """Build an op with one result and return the result."""
        return _create(name, (result,), operands, attrs, None, 0, self.loc, self.ip).result

    def constant(self, type_: ir.Type, value: int | float | bool) -> ir.Value:
        """Return the constant `value : type_`, one per function."""
        key = (type_, value, value.__class__)
        v = self._constants.get(key)
        if v is None:
            attrs = {"value": constant_attr(type_, value)}
            ip = ir.InsertionPoint.at_block_begin(self._entry)
            v = _create("arith.constant", (type_,), (), attrs, None, 0, self.loc, ip).result
            self._constants[key] = v
        return v

    def ints(self, value: int) -> ir.Attribute:
        """Return `[value]`, as the slice ops of the vector dialect take offsets, sizes and strides."""
        known = self._numbers.get(value)
        if known is None:
            known = self._numbers[value] = ir.ArrayAttr.get([ir.IntegerAttr.get(self.types.i64, value)])
        return known

    def i32(self, value: int) -> ir.Value:
        return self.constant(self.types.i32, value)

    def i64(self, value: int) -> ir.Value:
        return self.constant(self.types.i64, value)


def registrar(rules: dict[str, Rule], prefix: str = "") -> Callable[..., Callable[[Rule], Rule]]:
    """Return the decorator that enters a function into `rules` under each of its arguments, with `prefix` before it."""

    def rule(*names: str) -> Callable[[Rule], Rule]:
        def register(fn: Rule) -> Rule:
            for name in names:
                rules[prefix + name] = fn
            return fn

        return register

    return rule


def adjacent(indices: Sequence[Any], widest: int = 1 << 30) -> list[tuple[int, int]]:
    """Return (position, count) of each run of indices that follow each other; one that is not an int stands alone."""
    out: list[tuple[int, int]] = []
    for i, index in enumerate(indices):
        if out:
            first, n = out[-1]
            follows = isinstance(index, int) and isinstance(indices[first], int) and index == indices[first] + n
            if follows and n < widest:
                out[-1] = (first, n + 1)
                continue
        out.append((i, 1))
    return out


def functions(module: Any) -> Iterator[ir.Operation]:
    """Yield the kernels and host functions of a module."""
    for op in module.operation.regions[0].blocks[0].operations:
        op = op.operation
        if op.name == "gpu.module":
            for inner in op.regions[0].blocks[0].operations:
                if inner.operation.name in FUNCTIONS:
                    yield inner.operation
        elif op.name in FUNCTIONS:
            yield op


def entry_block(function: ir.Operation) -> ir.Block | None:
    """Return the entry block of a function, or None for a declaration."""
    blocks = function.regions[0].blocks
    return blocks[0] if len(blocks) else None


def visit(block: ir.Block, fn: Callable[[ir.Operation], None]) -> None:
    """Call `fn` for every op of `block` and, first, for those in its regions; `fn` may erase the op it gets."""
    for op in list(block.operations):
        op = op.operation
        for region in op.regions:
            for inner in region.blocks:
                visit(inner, fn)
        fn(op)


def erase_all(ops: Sequence[ir.Operation]) -> None:
    """Erase ops whose results nobody uses any more; users come before producers when erased from the end."""
    for op in reversed(ops):
        op.erase()


def replace(op: ir.Operation, *values: ir.Value) -> None:
    """Replace the results of `op` and erase it."""
    for result, value in zip(op.results, values, strict=True):
        result.replace_all_uses_with(value)
    op.erase()
