"""Element and vector accesses through views: which elements lie side by side, and the loads and stores that move
them.
"""

from functools import lru_cache
from typing import Any, NamedTuple

from flydsl import layout as la
from flydsl.dialects import laws, type_of
from flydsl.ir import ir
from flydsl.layout.view import MemRef, Ptr
from flydsl.passes.fly_layout_lowering.builder import IrBuilder
from flydsl.passes.rewriting import Editor, adjacent


class Run(NamedTuple):
    """`count` adjacent elements in memory: positions `first`... of the vector, starting at `pointer`."""

    first: int
    count: int
    pointer: Ptr


def runs_of(view: MemRef, start: int, count: int, rest: tuple = (), widest: int = 1 << 30) -> list[Run]:
    """Return the runs of adjacent elements among the values `start`... of mode 0 (or of all of a rank-1 view).

    `rest` are the coordinates of the other modes. The values of a linear layout lie alike at all of them; other static
    layouts are looked at element by element; under a swizzle that moves with a run-time offset, runs are as long as the
    swizzle and the layout keep together.
    """
    moves = isinstance(view.layout, la.ComposedLayout) and not la.tuple_is_static(view.layout.offset)
    if moves:
        step = min(_kept_together(view.layout, count), widest)
        return [
            Run(i, min(step, count - i), laws.at(view, _coord(start + i, rest))) for i in range(0, count, step)
        ]
    pattern = _pattern_of(view.layout, bool(rest), start, count, widest)
    if pattern is not None:  # the other modes move all values alike
        base = la.crd2idx(_coord(start, rest), view.layout)
        return [Run(i, n, laws.add_offset(view.ptr, _moved(base, delta))) for i, n, delta in pattern]
    indices = [la.crd2idx(_coord(start + i, rest), view.layout) for i in range(count)]
    return [Run(i, n, laws.add_offset(view.ptr, indices[i])) for i, n in adjacent(indices, widest)]


def _moved(base: Any, delta: int) -> Any:
    return la.int_tuple_add(base, delta) if delta else base


def _pattern_of(
    layout: Any, of_mode_0: bool, start: int, count: int, widest: int
) -> tuple[tuple[int, int, int], ...] | None:
    """Return (first, count, distance from the first value in elements) of each run within mode 0 or the whole layout,
    or None where that is not static or not linear.
    """
    if type(layout) is not la.Layout:
        return None
    shape, stride = layout.shape, layout.stride
    if of_mode_0:
        shape, stride = shape[0], stride[0]
    if not (la.tuple_is_static(shape) and la.tuple_is_static(stride)):
        return None
    return _pattern(shape, stride, start, count, widest)


@lru_cache(maxsize=4096)
def _pattern(shape: Any, stride: Any, start: int, count: int, widest: int) -> tuple[tuple[int, int, int], ...] | None:
    mode = la.Layout(shape, stride)
    indices = [la.crd2idx(start + i, mode) for i in range(count)]
    if not all(type(index) is int for index in indices):
        return None
    return tuple((i, n, indices[i] - indices[0]) for i, n in adjacent(indices, widest))


def _coord(value: int, rest: tuple) -> Any:
    return (value, *rest) if rest else value


def _kept_together(layout: la.ComposedLayout, count: int) -> int:
    """Return how many values from an aligned start stay adjacent whatever the dynamic offset is."""
    run = 1
    outer = [la.crd2idx(i, layout.outer) for i in range(count)]
    while run < count and count % (run * 2) == 0 and all(
        outer[i + j] == outer[i] + j for i in range(0, count, run * 2) for j in range(run * 2)
    ):
        run *= 2
    offset_div = min((leaf.div if isinstance(leaf, la.Sym) else leaf or run for leaf in [layout.offset]), default=1)
    limit = 1 << layout.inner.base if isinstance(layout.inner, la.Swizzle) else 1
    while run > 1 and (run > limit or offset_div % run):
        run //= 2
    return run


class Access:
    """Builds loads and stores of single elements and of vectors."""

    def __init__(self, editor: Editor, builder: IrBuilder):
        self.editor, self.builder = editor, builder

    def load(self, ptr: Ptr, type_: ir.Type) -> ir.Value:
        """Load one value of `type_` at a pointer."""
        return self.editor.value("fly.ptr_load", type_, [self.builder.materialise(ptr)])

    def store(self, value: ir.Value, ptr: Ptr) -> None:
        """Store one value at a pointer."""
        self.editor.op("fly.ptr_store", (), [value, self.builder.materialise(ptr)])

    def load_vector(self, view: MemRef, elem: ir.Type) -> ir.Value:
        """Load all elements of a view in coordinate order."""
        count = la.size(view.layout)
        parts = []
        for run in runs_of(view, 0, count):
            vector = self.editor.types.vector(run.count, elem)
            parts.append((run.first, self.load(run.pointer, vector)))
        if len(parts) == 1:
            return parts[0][1]
        result = self.editor.value("ub.poison", self.editor.types.vector(count, elem))
        for first, part in parts:
            result = self.insert_slice(part, result, first)
        return result

    def store_vector(self, value: ir.Value, view: MemRef, elem: ir.Type) -> None:
        """Store a vector to all elements of a view in coordinate order."""
        count = la.size(view.layout)
        for run in runs_of(view, 0, count):
            self.store(self.slice(value, count, run.first, run.count, elem), run.pointer)

    def insert_slice(self, part: ir.Value, whole: ir.Value, first: int) -> ir.Value:
        """Return `whole` with the elements from `first` on replaced by `part`."""
        attrs = {"offsets": self.editor.ints(first), "strides": self.editor.ints(1)}
        return self.editor.value("vector.insert_strided_slice", whole.type, [part, whole], attrs)

    def slice(self, value: ir.Value, total: int, first: int, count: int, elem: ir.Type) -> ir.Value:
        """Return `count` elements of a vector from `first` on."""
        if count == total:
            return value
        attrs = {"offsets": self.editor.ints(first), "sizes": self.editor.ints(count), "strides": self.editor.ints(1)}
        target = self.editor.types.vector(count, elem)
        return self.editor.value("vector.extract_strided_slice", target, [value], attrs)


def pointer_type(ptr: Ptr) -> ir.Type:
    """Return the type of a pointer that may carry a payload."""
    return type_of(ptr.with_value(None))
