"""Translate one `gpu.func` into the text of a Python generator over NumPy arrays.

Lanes are a NumPy axis pair (workgroups, threads). The shape of an array says how uniform it is: `(G, 1)`, `(1, B)`,
`(G, B)`, or a NumPy
scalar; vectors have one more axis at the end. Control flow tests at run time whether it is uniform, so the text has
one form.

Names in the text: `v` values, `c` constants, `m` masks, `h_` helpers of `runtime`, `M` the machine, `T_` element types.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from flydsl.diag import Span
from flydsl.diag.errors.simulator import SimUnsupportedOp, SimUnsupportedType
from flydsl.targets.sim.trace import lines_of
from flydsl.targets.sim.translate.locate import Frame, frames_of
from flydsl.targets.sim.translate.poison import MOVES, Poisons, uses_values
from flydsl.targets.sim.translate.rules import find_rule
from flydsl.targets.sim.translate.types import IrType, UnsupportedType, parse_type
from flydsl.targets.sim.translate.value_checks import check_value
from flydsl.targets.sim.translate.values import Piece, Scalar, Struct, Value, Vector, join

if TYPE_CHECKING:
    from flydsl.targets.sim.translate.module import ModuleFacts

INDENT = "    "


class Accesses:
    """What a kernel accesses, as far as it is known before running: cell sizes and the pointer arguments that it
    writes.

    Arguments are numbers; None stands for pointers of unknown origin.
    """

    def __init__(self) -> None:
        self.lds_cell = self.private_cell = 16
        self.global_reads: dict[int | None, int] = {}
        self.global_write_cell = 16
        self.reads: set[int | None] = set()
        self.writes: set[int | None] = set()
        self.has_sync = False

    def note(self, space: str, kind: str, base: str | None, nbytes: int) -> None:
        """Record an access of `nbytes` bytes; `kind` is read, write or atomic (which is both)."""
        letters = "glp" if space == "f" else space
        width = (nbytes | 16) & -(nbytes | 16)
        if "l" in letters:
            self.lds_cell = min(self.lds_cell, width)
        if "p" in letters:
            self.private_cell = min(self.private_cell, width)
        if "g" in letters:
            origin = int(base[1:]) if base and base[0] == "a" and base[1:].isdigit() else None
            if kind != "write":
                self.reads.add(origin)
                self.global_reads[origin] = min(self.global_reads.get(origin, 16), width)
            if kind != "read":
                self.writes.add(origin)
                self.global_write_cell = min(self.global_write_cell, width)

    def cell_bytes(self) -> dict[str, int]:
        """Return, per memory letter, the narrowest access that the checks look at; reads of tensors that nothing
        writes do not count."""
        tracked = [
            w for base, w in self.global_reads.items() if base in self.writes or base is None or None in self.writes
        ]
        return {"g": min([self.global_write_cell, *tracked]), "l": self.lds_cell, "p": self.private_cell}


PIECEWISE_MIN = 4  # shorter pieces cost more statements than one concatenation saves (measured on f32 vectors)


class FunctionTranslator:
    """State of one translation: emitted lines, the map from SSA values, the current mask, the constants."""

    def __init__(self, module: ModuleFacts, name: str, value_checks: frozenset[str] = frozenset()):
        self.value_checks = value_checks
        self.traced = lines_of(value_checks)
        self.module = module
        self.name = name
        self.lines: list[str] = []
        self.depth = 1
        self.mask = "m0"
        self.values: dict[Any, Value] = {}
        self.constants: dict[tuple[str, str], str] = {}
        self.sites: list[tuple[str, tuple[Frame, ...]]] = []
        self._site_of: dict[tuple[str, str], int] = {}
        self.scopes: list[dict[Any, str]] = [{}]
        self.accs: set[str] = set()
        self.private_bytes = 0
        self.private_arrays: list[tuple[int, int, int]] = []
        self.widest_bytes = 4
        self.has_barrier = False
        self.uses_dma = False
        self.accesses = Accesses()
        self.poisons = Poisons()
        self.counter = 0
        self.op: Any = None
        self._types: dict[Any, IrType] = {}

    # --- names and lines -------------------------------------------------------------------------------------------

    def fresh(self, prefix: str = "v") -> str:
        """Return a new name."""
        self.counter += 1
        return f"{prefix}{self.counter}"

    def emit(self, line: str) -> None:
        """Append a line at the current depth."""
        self.lines.append(INDENT * self.depth + line)

    def let(self, expr: str, prefix: str = "v") -> str:
        """Emit an assignment to a new name and return the name."""
        name = self.fresh(prefix)
        self.emit(f"{name} = {expr}")
        return name

    @contextmanager
    def block(self) -> Iterator[None]:
        """Indent; what is cached inside is forgotten outside, where it may not have run."""
        self.depth += 1
        self.scopes.append({})
        yield
        self.scopes.pop()
        self.depth -= 1

    @contextmanager
    def captured(self, mask: str) -> Iterator[list[str]]:
        """Collect the lines of a region, run under `mask`, one level deeper, instead of emitting them."""
        lines, self.lines = self.lines, []
        old_mask, self.mask = self.mask, mask
        inner = self.lines
        with self.block():
            yield inner
        self.lines, self.mask = lines, old_mask

    def cached(self, key: Any, make: Callable[[], str]) -> str:
        """Return the name cached under `key` in an enclosing scope, else make it here."""
        for scope in reversed(self.scopes):
            if key in scope:
                return scope[key]
        name = self.scopes[-1][key] = make()
        return name

    # --- sites and refusals ----------------------------------------------------------------------------------------

    def site(self) -> int:
        """Return the index of the current op in the table of source places."""
        key = (self.op.name, str(self.op.location))
        index = self._site_of.get(key)
        if index is None:
            index = self._site_of[key] = len(self.sites)
            self.sites.append((key[0], frames_of(key[1])))
        return index

    def refuse(self, what: str = "", fix: str = "") -> SimUnsupportedOp:
        """Return the error for an op (or form of it) that has no rule; the caller raises it."""
        frames = frames_of(str(self.op.location))
        at = Span(*frames[0]) if frames else None
        detail = f" ({what})" if what else ""
        fix = fix or (
            "write it with ops that have a rule (see `flydsl.targets.sim.translate.module.supported_ops`), or add a "
            f"rule in flydsl/targets/sim/translate for `{self.op.name}`"
        )
        return SimUnsupportedOp(at=at, op=self.op.name, detail=detail, kernel=self.name, advice_text=fix)

    # --- types, operands, results ------------------------------------------------------------------------------------

    def type_of(self, value: Any) -> IrType:
        """Return the `IrType` of an SSA value."""
        key = value.type
        found = self._types.get(key)
        if found is None:
            found = self._types[key] = self._parse_type(key)
        return found

    def _parse_type(self, type_: Any) -> IrType:
        try:
            return parse_type(str(type_))
        except UnsupportedType as e:
            frames = frames_of(str(self.op.location)) if self.op is not None else ()
            at = Span(*frames[0]) if frames else None
            raise SimUnsupportedType(at=at, type=str(e), op=self.op.name if self.op else "gpu.func") from None

    def get(self, value: Any) -> Value:
        """Return what an SSA value was translated to."""
        return self.values[value]

    def define(self, value: Any, result: Value) -> None:
        """Bind an SSA value."""
        self.values[value] = result

    def scalar(self, value: Any) -> str:
        """Return the name of a scalar operand."""
        v = self.values[value]
        assert isinstance(v, Scalar), (self.op.name, v)
        return v.text

    def const_of(self, value: Any) -> int | float | None:
        """Return the Python value of a static scalar or splat, else None."""
        v = self.values[value]
        if isinstance(v, Scalar):
            return v.const
        if isinstance(v, Vector) and v.splat:
            return v.splat.const
        return None

    def constant(self, elem: str, value: int | float | bool) -> Scalar:
        """Return a typed constant, defined once per function."""
        key = (elem, const_text(elem, value))
        name = self.constants.get(key)
        if name is None:
            name = self.constants[key] = f"c{len(self.constants)}"
        return Scalar(name, IrType(elem), value)

    def constant_text(self, scalar: Scalar) -> str:
        """Return the expression of a constant."""
        return next(text for (_, text), name in self.constants.items() if name == scalar.text)

    def module_constant(self, expr: str) -> str:
        """Return the name of a value that is made once, when the text is loaded."""
        key = ("", expr)
        name = self.constants.get(key)
        if name is None:
            name = self.constants[key] = f"c{len(self.constants)}"
        return name

    def set_scalar(self, result: Any, expr: str, base: str | None = None, const: Any = None) -> Scalar:
        """Emit `expr` and bind it to the scalar SSA value `result`."""
        value = Scalar(self.let(expr), self.type_of(result), const, base)
        self.values[result] = value
        return value

    def set_array(self, result: Any, expr: str) -> Vector:
        """Emit `expr`, an array of the whole vector, and bind it to the SSA value `result`."""
        t = self.type_of(result)
        value = Vector(t, [Piece(self.let(expr), 0, t.n, t.n)])
        self.values[result] = value
        return value

    def set(self, result: Any, expr: str) -> None:
        """Bind a scalar or a whole vector, by the type of `result`."""
        (self.set_array if self.type_of(result).is_vector else self.set_scalar)(result, expr)

    # --- vectors as text ---------------------------------------------------------------------------------------------

    def lanes(self, text: str) -> str:
        """Return `text` in lane form: matrix accumulators are unpacked once per scope."""
        if text not in self.accs:
            return text
        return self.cached(("lanes", text), lambda: self.let(f"h_lanes({text})"))

    def piece_text(self, p: Piece) -> str:
        """Return an expression for an array piece, or, for a splat, one that broadcasts against vectors."""
        if p.is_splat:
            return p.text if p.const is not None else f"{p.text}[..., None]"
        text = self.lanes(p.text)
        if p.off == 0 and p.length == p.total:
            return text
        return f"{text}[..., {p.off}:{p.off + p.length}]"

    def element(self, v: Vector, i: int) -> Scalar:
        """Return element `i` of a vector."""
        (p,) = v.slice(i, 1)
        if p.is_splat:
            return Scalar(p.text, v.type.scalar(), p.const)
        text = self.lanes(p.text)
        name = self.cached(("elem", text, p.off), lambda: self.let(f"{text}[..., {p.off}]"))
        return Scalar(name, v.type.scalar())

    def array(self, v: Vector) -> str:
        """Return the name of one array that holds the whole vector, concatenating pieces once per scope."""
        if len(v.pieces) == 1 and not v.pieces[0].is_splat:
            return self.piece_text(v.pieces[0])
        return self.cached(("array", id(v), id(v.pieces)), lambda: self.let(self._concat(v)))

    def _concat(self, v: Vector) -> str:
        if v.splat:
            return f"h_splat({v.splat.text}, {v.n})"
        parts = ", ".join(f"({self._concat_part(p)}, {p.length})" for p in v.pieces)
        return f"h_concat(T_{v.type.elem}, {v.n}, ({parts},))"

    def _concat_part(self, p: Piece) -> str:
        return f"h_col({p.text})" if p.is_splat else self.piece_text(p)

    def operand_array(self, value: Any) -> str:
        """Return one array for a vector operand, or the name of a scalar operand."""
        v = self.values[value]
        return self.array(v) if isinstance(v, Vector) else v.text

    # --- elementwise -------------------------------------------------------------------------------------------------

    def elementwise(self, result: Any, operands: list[Any], make: Callable[..., str]) -> None:
        """Bind `result` to `make(texts...)` applied per element, piece by piece where the operands are cut alike."""
        vals = [self.values[o] for o in operands]
        if not isinstance(vals[0], Vector):
            texts = [v.text for v in vals]
            self.check_value(result, self.set_scalar(result, make(*texts)).text, texts, False)
            return
        pieces = []
        for texts, n, splat in self.aligned(vals):
            name = self.let(make(*texts))
            self.check_value(result, name, texts, not splat)
            pieces.append(Piece(name, 0, n, 0 if splat else n))
        self.values[result] = Vector(self.type_of(result), pieces)

    def check_value(self, result: Any, name: str, operands: list[str], has_elements: bool) -> None:
        """Emit the opt-in checks of a result; `has_elements`: its array has a last axis of elements."""
        if self.value_checks:
            check_value(self, result, name, operands, has_elements)

    def aligned(self, vals: list[Vector]) -> Iterator[tuple[list[str], int, bool]]:
        """Yield (texts, length, all are splats) per common piece of the operands."""
        if all(v.splat for v in vals):
            yield [v.splat.text for v in vals], vals[0].n, True
            return
        cuts = {v.cuts() for v in vals if not v.splat}
        n = vals[0].n
        if len(cuts) == 1 and n // (len(next(iter(cuts))) + 1) >= PIECEWISE_MIN:
            bounds = (0, *next(iter(cuts)), n)
            for lo, hi in zip(bounds, bounds[1:]):
                yield [self.vector_text(v, lo, hi - lo) for v in vals], hi - lo, False
            return
        yield [self.vector_text(v, 0, n) for v in vals], n, False

    def vector_text(self, v: Vector, off: int, length: int) -> str:
        """Return an expression for elements `off ..` of `v` that has (or broadcasts to) `length` elements."""
        pieces = v.slice(off, length)
        if len(pieces) == 1:
            p = pieces[0]
            if p.is_splat and not v.splat:
                return f"h_splat({p.text}, {length})"
            return self.piece_text(p)
        if length == v.n:
            return self.array(v)
        return self._concat(Vector(IrType(v.type.elem, length), pieces))

    def set_pieces(self, result: Any, pieces: list[Piece]) -> None:
        """Bind a vector SSA value to pieces."""
        self.values[result] = Vector(self.type_of(result), join(pieces))

    # --- walking -----------------------------------------------------------------------------------------------------

    def run_block(self, block: Any) -> Any:
        """Translate the ops of a block; return its terminator."""
        ops = list(block.operations)
        if self.traced is not None:
            return self.run_traced([op.operation for op in ops])
        for op in ops[:-1]:
            self.translate(op.operation)
        return ops[-1].operation

    def run_traced(self, ops: list[Any]) -> Any:
        """Translate ops and show the last value of each run of ops of one source line."""
        *body, terminator = ops
        frames = [self.traced_frame(op) for op in body]
        value = None
        for op, frame, following in zip(body, frames, (*frames[1:], None)):
            self.translate(op)
            if frame is not None and len(op.results) == 1 and isinstance(self.values.get(op.results[0]), (Scalar, Vector)):
                value = op.results[0]
            if frame is not None and value is not None and (following is None or following[:2] != frame[:2]):
                self.emit(f"M.trace({frame!r}, {self.operand_array(value)}, {self.mask})")
                value = None
        return terminator

    def traced_frame(self, op: Any) -> Frame | None:
        """Return the first place of an op that lies in the traced lines."""
        if op.name in ("arith.constant", "llvm.mlir.addressof"):
            return None
        first, last = self.traced
        return next((f for f in frames_of(str(op.location)) if first <= f[1] <= last), None)

    def translate(self, op: Any) -> None:
        """Translate one op by its rule."""
        outer, self.op = self.op, op
        fn = find_rule(op.name)
        if fn is None:
            raise self.refuse()
        guards = self.poisons.guards
        if guards and uses_values(op.name):
            self.poisons.check(self, op)
        fn(self, op)
        if guards and op.name in MOVES:
            self.poisons.follow(self, op)
        self.op = outer

    def flatten(self, values: list[Value]) -> list[Scalar | Vector]:
        """Return the scalars and vectors that `values` consist of, in order."""
        out: list[Scalar | Vector] = []
        for v in values:
            out.extend(self.flatten(v.fields) if isinstance(v, Struct) else [v])
        return out


def call(name: str, *args: object) -> str:
    """Return the text of a call; `args` are texts and numbers."""
    return f"{name}({', '.join(map(str, args))})"


def const_text(elem: str, value: int | float | bool) -> str:
    """Return the Python expression of a typed NumPy constant, exact to the bit."""
    if elem == "i1":
        return "T_i1(True)" if value else "T_i1(False)"
    if elem in ("f32", "f64"):
        fmt, bits = ("<f", "<I") if elem == "f32" else ("<d", "<Q")
        return f"h_bits_{elem}({struct.unpack(bits, struct.pack(fmt, clip_float(elem, value)))[0]:#x})"
    if elem in ("f16", "bf16"):
        return (
            f"T_{elem}({float(value)!r})"
            if value == value and abs(value) != float("inf")
            else f"T_{elem}(float('{value}'))"
        )
    if elem[0] == "p":
        return f"T_i64({int(value)})"
    bits = int(elem[1:])
    wrapped = (int(value) + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
    return f"T_{elem}({wrapped})"


def clip_float(elem: str, value: float) -> float:
    """`struct` refuses f32 overflow instead of rounding to infinity."""
    if elem == "f32" and abs(value) > 3.4028235677973366e38 and value == value:
        return float("inf") if value > 0 else float("-inf")
    return value
