"""Facts of ISA text: registers, spills, occupancy, how many instructions of which kind, widths of memory accesses.

Reads what LLVM printed and nothing else, so it works on any `final_isa.s`, of this package or another.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, fields

from flydsl import arch as chips
from flydsl.utils.record import record

# first match wins; the keys are field names of KernelStats
_GROUPS: tuple[tuple[str, str], ...] = (
    ("mfma", r"v_s?mfma(?!c)|v_smfmac"),
    ("wmma", r"v_s?wmma"),
    ("atomics", r"(?:global|flat|buffer|ds)_\w*(?:atomic|_add_|_cmpst|_sub_|_max_|_min_)"),
    ("lds_dma", r"(?:global|buffer)_load_\w*lds|global_load_async_to_lds"),
    ("global_loads", r"(?:global|flat)_load"),
    ("global_stores", r"(?:global|flat)_store"),
    ("buffer_loads", r"buffer_load"),
    ("buffer_stores", r"buffer_store"),
    ("scratch_ops", r"scratch_(?:load|store)"),
    ("lds_reads", r"ds_(?:read|load)"),
    ("lds_writes", r"ds_(?:write|store)"),
    ("lds_other", r"ds_"),
    ("tensor_moves", r"tensor_"),
    ("scalar_loads", r"s_(?:buffer_)?load"),
    ("barriers", r"s_barrier(?!_wait)"),
    ("waits", r"s_wait"),
    ("delays", r"s_(?:nop|delay_alu)"),
    ("branches", r"s_c?branch"),
    ("salu", r"s_"),
    ("valu", r"v_"),
)
_MATCHERS = tuple((name, re.compile(pattern)) for name, pattern in _GROUPS)
_INSTRUCTION = re.compile(r"^\s+((?:s|v|ds|buffer|global|flat|scratch|tensor|cluster|image|tbuffer)_[a-z0-9_]+)")


@record
class Loop:
    """An innermost loop: from its label to the branch back. `lines` are its instructions as LLVM prints them."""

    label: str
    lines: tuple[str, ...] = field(repr=False)
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def instructions(self) -> int:
        """How many instructions one trip has, if no branch inside is taken."""
        return len(self.lines)

    @property
    def matrix(self) -> int:
        """How many of them are MFMA or WMMA."""
        return self.counts["mfma"] + self.counts["wmma"]


@dataclass
class KernelStats:
    """Counts of one kernel; `widths` maps e.g. `global_loads` to a count per access width in bits.

    Units    registers per lane (`sgprs` per wave), `lds_bytes`, `scratch_bytes` in bytes, `occupancy` in waves
    per SIMD
    """

    name: str
    arch: str
    vgprs: int = 0
    agprs: int = 0
    sgprs: int = 0
    vgpr_spills: int = 0
    sgpr_spills: int = 0
    scratch_bytes: int = 0
    lds_bytes: int = 0
    workgroup: int = 0
    wave_size: int = 0
    occupancy: int = 0
    code_bytes: int = 0
    instructions: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    mnemonics: Counter[str] = field(default_factory=Counter)
    loops: tuple[Loop, ...] = ()
    widths: dict[str, Counter[int]] = field(default_factory=dict)

    def __getattr__(self, name: str) -> int:
        """The groups of instructions read as attributes: `stats.mfma`, `stats.global_loads`."""
        if any(name == group for group, _ in _GROUPS):
            return self.counts[name]
        raise AttributeError(f"{type(self).__name__} has no fact {name!r}; known: {', '.join(fact_names())}")

    @property
    def spills(self) -> int:
        """Spilled registers of both kinds."""
        return self.vgpr_spills + self.sgpr_spills

    @property
    def max_blocks_per_cu(self) -> int:
        """How many workgroups one compute unit holds: bounded by registers, LDS and wave slots."""
        chip = chips.get(self.arch)
        waves = -(-(self.workgroup or 256) // (self.wave_size or chip.wave_size))
        return self.occupancy * chip.simds // waves

    @property
    def main_loop(self) -> Loop | None:
        """The loop with the most matrix instructions, else the longest; of nested ones the inner."""
        return max(self.loops, key=lambda loop: (loop.matrix, loop.instructions), default=None)

    @property
    def matrix_share(self) -> float:
        """The part of the main loop's instructions that are MFMA or WMMA, 0 to 1; 0 without a loop."""
        loop = self.main_loop
        return loop.matrix / loop.instructions if loop else 0.0


def fact_names() -> tuple[str, ...]:
    """Return the names that `assert_isa` understands."""
    held = tuple(f.name for f in fields(KernelStats) if f.type == "int")
    return (*held, "spills", "max_blocks_per_cu", "matrix_share", *(name for name, _ in _GROUPS))


def isa_stats(isa_text: str, arch: str | None = None) -> dict[str, KernelStats]:
    """Return the facts of each kernel in ISA text; `arch` is read from the text where it is not given.

    Raises   ValueError: the text names no target
    """
    if arch is None:
        found = re.search(r'\.amdgcn_target "[^"]*?(gfx\w+)', isa_text)
        if found is None:
            raise ValueError("the ISA text has no .amdgcn_target line; pass arch=")
        arch = found[1]
    stats = {
        name: KernelStats(name, arch) for name in re.findall(r"^\s*\.amdhsa_kernel (\S+)", isa_text, re.MULTILINE)
    }
    _count(isa_text, stats)
    _read_metadata(isa_text, stats)
    chip = chips.get(arch)
    for kernel in stats.values():
        vgprs = kernel.vgprs - kernel.agprs if chip.has("agpr") else kernel.vgprs
        kernel.occupancy = chip.occupancy(vgprs, kernel.agprs, kernel.lds_bytes, kernel.workgroup or 256)
    return stats


def _count(isa_text: str, stats: dict[str, KernelStats]) -> None:
    current = last = None
    body: list[str] = []
    for line in isa_text.splitlines():
        if line and not line[0].isspace():
            label = line.split(":", 1)[0]
            if label in stats:
                current = last = stats[label]
                body = []
            elif label.startswith(".Lfunc_end"):
                if current is not None:
                    current.loops = _loops(body)
                current = None
            elif current is not None and line.startswith(".L"):
                body.append(f"{label}:")
            elif line.startswith("; codeLenInByte = ") and last is not None:
                last.code_bytes = int(line.rsplit("=", 1)[1])
        elif current is not None and (found := _INSTRUCTION.match(line)):
            body.append(line.split(";", 1)[0].strip())
            _note(current, found[1])


def _loops(body: list[str]) -> tuple[Loop, ...]:
    """Return the innermost loops of a kernel's instructions and labels."""
    labels = {line[:-1]: i for i, line in enumerate(body) if line.endswith(":")}
    spans: dict[int, int] = {}
    for i, line in enumerate(body):
        if line.startswith(("s_cbranch", "s_branch")) and (start := labels.get(line.split()[-1], i)) < i:
            spans[start] = i  # the last branch back ends the loop
    found = []
    for start, end in spans.items():
        if not any(start < other <= end for other in spans):
            lines = tuple(line for line in body[start : end + 1] if not line.endswith(":"))
            counts = Counter(group for line in lines if (group := group_of(line.split()[0])))
            found.append(Loop(body[start][:-1], lines, counts))
    return tuple(found)


def group_of(mnemonic: str) -> str | None:
    """Return the group that an instruction is counted in."""
    return next((group for group, matcher in _MATCHERS if matcher.match(mnemonic)), None)


def _note(kernel: KernelStats, mnemonic: str) -> None:
    kernel.instructions += 1
    kernel.mnemonics[mnemonic] += 1
    group = group_of(mnemonic)
    if group is not None:
        kernel.counts[group] += 1
        if (bits := access_bits(mnemonic)) and group not in ("valu", "salu", "mfma", "wmma"):
            kernel.widths.setdefault(group, Counter())[bits] += 1


def access_bits(mnemonic: str) -> int:
    """Return the bits one lane (one wave for scalar loads) moves, 0 where the name does not say."""
    pairs = 2 if re.search(r"(?:read|write)2|_2addr_", mnemonic) else 1
    if found := re.search(r"_dwordx(\d+)", mnemonic):
        return 32 * int(found[1])
    if "_dword" in mnemonic:
        return 32
    if re.search(r"_[us]?byte", mnemonic):
        return 8
    if re.search(r"_[us]?short", mnemonic):
        return 16
    if found := re.search(r"_[buif](\d+)(?:_|$)", mnemonic):
        return pairs * int(found[1])
    return 0


_METADATA = {
    "vgprs": "vgpr_count",
    "agprs": "agpr_count",
    "sgprs": "sgpr_count",
    "vgpr_spills": "vgpr_spill_count",
    "sgpr_spills": "sgpr_spill_count",
    "scratch_bytes": "private_segment_fixed_size",
    "lds_bytes": "group_segment_fixed_size",
    "workgroup": "max_flat_workgroup_size",
    "wave_size": "wavefront_size",
}


def _read_metadata(isa_text: str, stats: dict[str, KernelStats]) -> None:
    """The YAML block at the end lists the kernels, one entry each."""
    start = isa_text.find(".amdgpu_metadata")
    for entry in re.split(r"^  - ", isa_text[start:], flags=re.MULTILINE)[1:]:
        name = re.search(r"^    \.name: +(\S+)", entry, re.MULTILINE)
        if name is None or name[1] not in stats:
            continue
        for fact, key in _METADATA.items():
            if found := re.search(rf"^(?:    )?\.{key}: +(\d+)", entry, re.MULTILINE):
                setattr(stats[name[1]], fact, int(found[1]))


_COMPARISONS = {
    "": lambda a, b: a == b,
    "ge": lambda a, b: a >= b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "lt": lambda a, b: a < b,
    "ne": lambda a, b: a != b,
}


def assert_isa(isa_text: str, kernel: str | None = None, arch: str | None = None, **facts: float) -> None:
    """Check facts of ISA text: `assert_isa(isa, spills=0, mfma__ge=32, vgprs__le=128)`.

    Raises   AssertionError: lists each fact that does not hold; KeyError: no such kernel; AttributeError: no
    such fact
    """
    stats = isa_stats(isa_text, arch)
    assert_stats([stats[kernel]] if kernel is not None else list(stats.values()), **facts)


def assert_stats(kernels: list[KernelStats], **facts: float) -> None:
    """Check facts of kernels; the comparison is a suffix: `__ge`, `__le`, `__gt`, `__lt`, `__ne`, none for equality.

    Raises   AssertionError: lists each fact that does not hold; AttributeError: no such fact or comparison
    """
    wrong = []
    for one in kernels:
        for key, wanted in facts.items():
            name, _, comparison = key.partition("__")
            if comparison not in _COMPARISONS:
                known = ", ".join(filter(None, _COMPARISONS))
                raise AttributeError(f"{key!r}: no comparison {comparison!r}; known: {known}")
            value = getattr(one, name)
            if not _COMPARISONS[comparison](value, wanted):
                wrong.append(f"{one.name}: {name} is {value}, wanted {comparison or '=='} {wanted}")
    if wrong:
        raise AssertionError("; ".join(wrong))
