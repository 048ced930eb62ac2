"""An example before and after for the most common errors, shown by `flydsl explain` and docs/errors.md.

Each stands in a kernel with tensors `x` and `out` of f32, a run-time `n: fx.Int32` and `i = fx.thread_idx.x`; tests/errors/test_explain.py traces
both sides: the first gives the error, the second none.
"""

EXAMPLES: dict[str, tuple[str, str]] = {
    # control flow
    "FLY_CONDITION_NOT_BOOLEAN": ("if n:\n    out[i] = 1.0", "if n != 0:\n    out[i] = 1.0"),
    "FLY_CARRY_MISMATCH": (
        "total = 0\nfor k in range(n):\n    total = total + x[k]\nout[i] = total",
        "total = fx.Float32(0)\nfor k in range(n):\n    total = total + x[k]\nout[i] = total",
    ),
    "FLY_CARRY_NONE": (
        "best = None\nfor k in range(n):\n    best = x[k]\nout[i] = best",
        'best = fx.Float32(float("-inf"))\nfor k in range(n):\n    best = fx.max(best, x[k])\nout[i] = best',
    ),
    "FLY_CARRY_OPAQUE": (
        'name = "a"\nfor k in range(n):\n    name = "b"',
        'for k in fx.range_constexpr(2):\n    name = "ab"[k]',
    ),
    "FLY_REGION_LOCAL": (
        "if i < n:\n    value = x[i]\nout[i] = value",
        "value = fx.Float32(0)\nif i < n:\n    value = x[i]\nout[i] = value",
    ),
    "FLY_CONST_EXPR_DYNAMIC": (
        "for k in fx.range_constexpr(n):\n    out[k] = 1.0",
        "for k in range(n):\n    out[k] = 1.0",
    ),
    "FLY_DYNAMIC_AS_PYTHON": ("assert i < n", "if i < n:\n    out[i] = 1.0"),
    "FLY_DYNAMIC_AS_INTEGER": (
        "weights = [1.0, 2.0]\nout[i] = weights[i]",
        "weights = fx.make_rmem_tensor(2, fx.Float32)\nweights.store(fx.Vector.from_elements([1.0, 2.0]))\nout[i] = (i == 0).select(weights[0], weights[1])",
    ),
    "FLY_LOOP_STEP": (
        "for k in range(8, 0, -1):\n    out[k] = 1.0",
        "for j in range(8):\n    k = 8 - j\n    out[k] = 1.0",
    ),
    "FLY_LOOP_BOUND_TYPE": (
        "for k in range(fx.Int64(n)):\n    out[k] = 1.0",
        "for k in range(fx.Int32(n)):\n    out[k] = 1.0",
    ),
    "FLY_ENDLESS_LOOP": (
        "while True:\n    i = i + 1",
        "while True:\n    i = i + 1\n    if i > n:\n        break",
    ),
    "FLY_YIELD_MISSING": (
        "for k, state in range(n, init=[i]):\n    state = state[0] + 1",
        "for k, state in range(n, init=[i]):\n    last = yield [state[0] + 1]\nout[last] = 1.0",
    ),
    "FLY_GENERATOR": ("for k in range(n):\n    yield k", "for k in range(n):\n    out[k] = 1.0"),
    "FLY_BOTH_UNROLL_HINTS": (
        "for k in fx.range(n, unroll=4, unroll_full=True):\n    out[k] = 1.0",
        "for k in fx.range(n, unroll=4):\n    out[k] = 1.0",
    ),
    "FLY_TUPLE_TARGET": (
        "for k, total in range(n):\n    out[k] = total",
        "for k, total in range(n, init=[i]):\n    last = yield [total[0] + i]\nout[last] = 1.0",
    ),
    # types
    "FLY_OPERAND_UNSUPPORTED": ("out[0] = x[i] & 3", "out[0] = fx.Int32(x[i]) & 3"),
    "FLY_STATIC_DIVISION_BY_ZERO": ("k = fx.Int32(4) // 0", "k = fx.Int32(4) // fx.max(n, 1)"),
    "FLY_NO_COMMON_FLOAT": (
        "y = fx.Float8E4M3FN(1.0) + fx.Float8E5M2(1.0)",
        "y = fx.Float8E4M3FN(1.0).to(fx.Float32) + fx.Float8E5M2(1.0).to(fx.Float32)",
    ),
    "FLY_VECTOR_INDEX": (
        "out[i] = fx.Vector.from_elements([1.0, 2.0])[2]",
        "out[i] = fx.Vector.from_elements([1.0, 2.0])[1]",
    ),
    "FLY_UNKNOWN_REDUCTION": (
        'out[i] = fx.Vector.from_elements([1.0, 2.0]).reduce("mean")',
        'out[i] = fx.Vector.from_elements([1.0, 2.0]).reduce("add") / 2.0',
    ),
    "FLY_ROUNDING_MODE_TYPES": (
        "y = i.to(fx.Float32, rounding_mode=fx.RoundingMode.downward)",
        "y = x[i].to(fx.Float16, rounding_mode=fx.RoundingMode.downward)",
    ),
    "FLY_NO_OPERANDS": ("y = fx.max()", "y = fx.max(x[i], 0.0)"),
    # layouts
    "FLY_LAYOUT_PROFILE": ("fx.make_layout((4, 8), (1, 2, 3))", "fx.make_layout((4, 8), (1, 4))"),
    "FLY_LEAF_NOT_INTEGER": ("fx.make_shape(4, 2.5)", "fx.make_shape(4, 2)"),
    "FLY_TILE_DYNAMIC": ("fx.make_tile(n, 4)", "fx.make_tile(16, 4)"),
    "FLY_SLICE_FULL": ("fx.slice(x, (1,))", "x[1]"),
    # memory
    "FLY_FRAGMENT_DYNAMIC": ("fx.make_rmem_tensor(n, fx.Float32)", "fx.make_rmem_tensor(16, fx.Float32)"),
    "FLY_VECTOR_DYNAMIC": ("x.load()", "fx.make_view(x.iter, fx.make_layout(4, 1)).load()"),
    "FLY_COPY_SIZES": (
        "a, b = fx.make_rmem_tensor((1, 2), fx.Float32), fx.make_rmem_tensor((1, 3), fx.Float32)\nfx.copy(fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32), a, b)",
        "a = fx.make_rmem_tensor((1, 2), fx.Float32)\nb = fx.make_fragment_like(a)\na.fill(0)\nfx.copy(fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32), a, b)",
    ),
    "FLY_COPY_VALUES": (
        "fx.copy(fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32), fx.make_view(x.iter, fx.make_layout(2, 1)), fx.make_rmem_tensor(2, fx.Float32))",
        "fx.copy(fx.make_copy_atom(fx.UniversalCopy64b(), fx.Float32), fx.make_view(x.iter, fx.make_layout(2, 1)), fx.make_rmem_tensor(2, fx.Float32))",
    ),
    "FLY_COPY_ELEMENT": (
        "fx.copy(fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32), fx.make_view(x.iter, fx.make_layout(1, 1)), fx.make_rmem_tensor(1, fx.Float16))",
        "r = fx.make_rmem_tensor(1, fx.Float32)\nfx.copy(fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32), fx.make_view(x.iter, fx.make_layout(1, 1)), r)\nhalf = r.load().to(fx.Float16)",
    ),
    "FLY_COPY_NOT_CONTIGUOUS": (
        "fx.copy(fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32), fx.make_view(x.iter, fx.make_layout(4, 8)), fx.make_rmem_tensor(4, fx.Float32))",
        "fx.copy(fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32), fx.make_view(x.iter, fx.make_layout((1, 4), (1, 8))), fx.make_rmem_tensor((1, 4), fx.Float32))",
    ),
    "FLY_ATOM_EXPECTED": (
        "fx.copy(fx.UniversalCopy32b(), fx.make_view(x.iter, fx.make_layout(1, 1)), fx.make_rmem_tensor(1, fx.Float32))",
        "fx.copy(fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32), fx.make_view(x.iter, fx.make_layout(1, 1)), fx.make_rmem_tensor(1, fx.Float32))",
    ),
    "FLY_SECOND_ALLOCATOR": (
        "a = fx.SharedAllocator().allocate(1024)\nb = fx.SharedAllocator().allocate(1024)",
        "shared = fx.SharedAllocator()\na, b = shared.allocate(1024), shared.allocate(1024)",
    ),
    "FLY_FIELD_ARGUMENT": (
        "Pair = fx.Struct['a' : fx.Int32, 'b' : fx.Int32]\nPair(a=1, c=2)",
        "Pair = fx.Struct['a' : fx.Int32, 'b' : fx.Int32]\nPair(a=1, b=2)",
    ),
    # matrix instructions, printing, launches
    "FLY_ATOM_SHAPE": (
        "fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 24, fx.Float16))",
        "fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16))",
    ),
    "FLY_ATOM_TYPES": (
        "fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 32, fx.Int8))",
        "fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 32, fx.Int8, fx.Int32))",
    ),
    "FLY_ROCDL_UNKNOWN": ("fx.rocdl.s_sleeep(1)", "fx.rocdl.s_sleep(1)"),
    "FLY_PRINTF_PLACEHOLDERS": ('fx.printf("{} {}", i)', 'fx.printf("{} {}", i, n)'),
    "FLY_NOT_CONVERTIBLE": ('fx.gpu.shuffle_xor("text", 1, 64)', "fx.gpu.shuffle_xor(x[i], 1, 64)"),
}
