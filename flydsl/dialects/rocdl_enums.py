"""Enumerations of the upstream `rocdl` dialect: the number that an instruction field holds -> the keyword of MLIR's attribute. No MLIR import."""

# kind -> (name of the attribute, keyword per value)
ENUMS: dict[str, tuple[str, tuple[str, ...]]] = {
    "perm_b": (
        "mfma_perm_b",
        (
            "none",
            "bcast_first_32",
            "bcast_second_32",
            "rotate_16_right",
            "bcast_first_16",
            "bcast_second_16",
            "bcast_third_16",
            "bcast_fourth_16",
        ),
    ),
    "format": ("matrix_format", ("fp8_e4m3", "fp8_e5m2", "fp6_e2m3", "fp6_e3m2", "fp4_e2m1")),
    "mod_c": ("wmma_c_modifier", ("none", "neg", "abs", "neg_abs")),
    "scale_row": ("wmma_matrix_scale", ("row0", "row1")),
    "scale_format": ("wmma_matrix_scale_format", ("e8", "e5m3", "e4m3")),
}
# kind -> (name of the attribute, keyword of each bit, lowest first)
FLAGS: dict[str, tuple[str, tuple[str, ...]]] = {
    "sched": (
        "sched_group_mask",
        (
            "non_mem_non_sideeffect",
            "valu",
            "salu",
            "mfma_wmma",
            "all_vmem",
            "vmem_read",
            "vmem_write",
            "all_ds",
            "ds_read",
            "ds_write",
            "transcendental",
            "ldsdma",
        ),
    ),
    "neg": ("mfma_neg_modifier", ("neg_a", "neg_b", "neg_c")),
}


def attribute_text(kind: str, number: int) -> str:
    """Return the text of the attribute of an enumeration or of a set of flags."""
    if kind in ENUMS:
        name, words = ENUMS[kind]
        return f"#rocdl<{name} {words[number]}>"
    name, words = FLAGS[kind]
    return f"#rocdl<{name} {'|'.join(w for i, w in enumerate(words) if number >> i & 1) or 'none'}>"
