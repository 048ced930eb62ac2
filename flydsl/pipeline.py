"""The ordered pass list of each target, as data. Names only: ours are in `passes.registry`, the rest are upstream's."""

TO_LOWERED = (
    "fly-rewrite-func-signature",
    "fly-canonicalize",
    "fly-layout-lowering",
    "fly-int-swizzle-simplify",
    "canonicalize",
    "fly-convert-atom-call-to-ssa-form",
    "fly-promote-regmem-to-vectorssa",
    "cse",
    "fly-lower-raw-memref",
    "fly-lower-small-floats",
    "convert-fly-to-rocdl",
    "canonicalize,cse",
)
