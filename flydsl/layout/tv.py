"""Thread-value layouts: which value of which thread holds which element of a tile."""

from __future__ import annotations

from .compose import composition
from .errors import NotStatic
from .int_tuple import int_tuple_product_each
from .inverse import right_inverse
from .layout import Layout, expect_plain
from .measure import size
from .memo import operation
from .product import raked_product


@operation
def make_layout_tv(thr_layout: Layout, val_layout: Layout) -> tuple[tuple, Layout]:
    """Return (tile sizes, tv): tv maps (thread, value) to the column-major index inside the tile.

    Values are contiguous in each mode, threads repeat them: mn = raked_product(thr, val).
    Raises NotStatic: a layout is dynamic
    """
    expect_plain(thr_layout, val_layout)
    for x in (thr_layout, val_layout):
        if not x.is_static:
            raise NotStatic(f"{x} is not static")
    mn = raked_product(thr_layout, val_layout)
    threads, values = size(thr_layout), size(val_layout)
    tv = composition(right_inverse(mn), Layout((threads, values), (1, threads)))
    return int_tuple_product_each(mn.shape), tv
