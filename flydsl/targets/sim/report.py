"""Turn faults into findings: where in the source, which block and thread, which tensor and index."""

from __future__ import annotations

import re
import sys
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from flydsl.diag import Span
from flydsl.diag.errors.simulator import SimFindings
from flydsl.targets.sim.findings import Finding
from flydsl.targets.sim.known_memory import known
from flydsl.targets.sim.options import SimOptions

if TYPE_CHECKING:
    from flydsl.targets.sim.machine import Machine
    from flydsl.targets.sim.memory import Region


VECTOR_ALIGNMENT = "vector memory instructions take any address, but run slower below the alignment that they were chosen for"
SCALAR_LOADS = ("llvm.load", "rocdl.ptr.s.buffer.load")
SCALAR_ALIGNMENT = "all lanes load one address, so the compiler may use a scalar load, which ignores the two low address bits"



READ_ONLY = (
    "its library says so (NumPy by `flags.writeable`): a read-only mapping, the memory of an immutable object, or a shared one",
    "pass a writable array: a copy (`numpy.array(a)`), or for numpy.memmap the mode 'r+' or 'c'",
)
PROTECTED = ("the process may only read this memory", "pass the address of memory that may be written")


LOSSY = {
    "float": ("the value is finite and beyond the largest one of the narrower type", "scale or clamp it before the conversion"),
    "to": ("the value is NaN or outside the range of the integer type", "clamp it, or convert to a wider integer"),
    "from": ("the float type has fewer digits than the integer", "convert to a wider float, or keep the integer"),
}


@dataclass
class RunReport:
    """What a launch did: findings in the order they were met, time, amount of work, checks, approximations in words."""

    kernel: str
    findings: list[Finding] = field(default_factory=list)
    seconds: float = 0.0
    lanes: int = 0
    num_ops: int = 0
    slabs: int = 0
    schedule: str = "auto"
    checks: frozenset[str] = frozenset()
    approximated: tuple[str, ...] = ()
    banks: Any = None


class Reporter:
    """Collects the findings of a launch, or raises the first."""

    def __init__(self, kernel: str, sites: list, options: SimOptions):
        self.kernel = kernel
        self.sites = sites
        self.options = options
        self.findings: dict[tuple, Finding] = {}

    # --- sink --------------------------------------------------------------------------------------------------------

    def add(self, finding: Finding) -> None:
        """Record a finding; raise it if faults stop the launch."""
        known = self.findings.get(finding.key())
        if known is not None:
            known.count += finding.count
            return
        finding.kernel = self.kernel
        if len(self.findings) < self.options.max_findings:
            self.findings[finding.key()] = finding
        if finding.severity != "error":
            return
        if self.options.on_finding == "raise":
            raise failure([finding])
        if self.options.on_finding == "warn":
            warnings.warn(str(finding), RuntimeWarning, stacklevel=2)

    def span(self, site: int) -> Span | None:
        """Return the source place of a site."""
        frames = self.sites[site][1]
        return Span(*frames[0]) if frames else None

    def line(self, site: int) -> tuple:
        """Return file and line of a site and of the calls that inlined it; the accesses of one line belong together."""
        return tuple(frame[:2] for frame in self.sites[site][1])

    def callers(self, site: int) -> tuple[Span, ...]:
        """Return the places from which an inlined helper was called."""
        return tuple(Span(*f) for f in self.sites[site][1][1:])

    def at(self, machine: Machine, site: int, lanes: Any) -> dict:
        """Return the fields of a finding that say where it happened; `lanes` marks the faulty ones."""
        g, b = machine.position(lanes)
        thread = machine.first_thread + b
        return {
            "span": self.span(site),
            "callers": self.callers(site),
            "block": machine.block_of(g),
            "thread": machine.thread_of(b),
            "wave": thread // machine.wave_size,
            "lane": thread % machine.wave_size,
            "count": max(1, int(np.count_nonzero(lanes))),
        }

    # --- faults ------------------------------------------------------------------------------------------------------

    def out_of_bounds(
        self, machine: Machine, site: int, near: Region | None, addr: Any, nbytes: int, bad: Any, write: bool
    ) -> None:
        """A global access outside every allocation (or outside that of the pointer it came from)."""
        if not self.options.has("bounds"):
            return
        bad = np.broadcast_to(bad, np.broadcast_shapes(np.shape(bad), np.shape(addr)))
        first = int(np.broadcast_to(addr, bad.shape)[bad][0]) if bad.ndim else int(addr)
        near = near or self.nearest(machine, first)
        verb = "write" if write else "read"
        place = self.at(machine, site, bad)
        owner = machine.launch.memory.find(first) or known.at(first)
        if near is None or near.is_mapping:
            names = {r.allocation.name for r in machine.launch.memory.regions}
            name = None if owner is None or getattr(owner, "is_mapping", False) else owner.name
            where = f"in `{name}`, which this pointer does not belong to" if name in names else "in no tensor of this launch"
            where += f" but in `{name}` of an earlier one" if name is not None and name not in names else ""
            text = f"{verb} of {nbytes} bytes at address {first:#x}, which is {where}"
            self.add(
                Finding("bounds", text, **place, fix="pass the tensor to the kernel, and check the address arithmetic")
            )
            return
        a = near.allocation
        offset = first - a.address
        index = a.coordinate(offset)
        name = near.name if owner is None else owner.name
        inside = f"; this address is in `{name}`" if name != a.name else ""
        self.add(
            Finding(
                "bounds",
                f"{verb} outside tensor `{a.name}`: {self.where(a, offset, index, nbytes)}",
                **place,
                tensor=a.name,
                index=index,
                offset=offset,
                why=f"`{a.name}` has shape {a.shape} with strides {a.strides} of {a.dtype} ({a.nbytes} bytes){inside}",
                fix="predicate the access with the tensor's extent, or bound the buffer descriptor to it",
            )
        )

    def freed(self, machine: Machine, site: int, region: Region, addr: Any, nbytes: int, bad: Any, write: bool) -> None:
        """An access to memory of an array that no longer exists."""
        if not self.options.has("bounds"):
            return
        name = region.allocation.name
        first = int(np.broadcast_to(addr, bad.shape)[bad][0]) if bad.ndim else int(addr)
        self.add(
            Finding(
                "freed",
                f"{'write' if write else 'read'} of {nbytes} bytes at byte {first - region.start} of `{name}`, which was freed",
                **self.at(machine, site, bad),
                tensor=name,
                offset=first - region.start,
                why=f"an earlier launch was given `{name}` at this address, and it no longer exists",
                fix="keep the array until the last launch that has its address is over",
            )
        )

    def where(self, a: Any, offset: int, index: Any, nbytes: int) -> str:
        """Return an access's place in a tensor in words."""
        past = offset + nbytes - a.nbytes
        side = f"{-offset} bytes before its start" if offset < 0 else f"its last byte is {past} past the end"
        return f"index {index} ({side})" if index is not None else f"byte {offset} ({side})"

    def nearest(self, machine: Machine, address: int) -> Region | None:
        """Return the allocation that ends or begins closest to an address, at most one megabyte away."""
        best, best_distance = None, 1 << 20
        for region in machine.launch.memory.regions:
            distance = max(region.start - address, address - region.end, 0)
            if distance < best_distance:
                best, best_distance = region, distance
        return best

    def read_only(self, machine: Machine, site: int, region: Region, off: Any, m: Any) -> None:
        """A write to memory that the program declared immutable, or that the system protects: reported under every choice
        of checks, because it would end the process or change what others rely on. Nothing is written."""
        lanes = np.ones(np.shape(off), bool) if m is None else np.broadcast_to(m, np.broadcast_shapes(np.shape(m), np.shape(off)))
        if not lanes.any():
            return
        a = region.allocation
        first = int(np.broadcast_to(off, lanes.shape)[lanes][0]) if lanes.ndim else int(off)
        offset = first + region.origin - region.start
        text = f"write to `{a.name}`, " + ("which the system protects" if region.is_mapping else "which the host passed as read-only")
        why, fix = PROTECTED if region.is_mapping else READ_ONLY
        index = a.coordinate(offset)
        self.add(Finding("bounds", text, **self.at(machine, site, lanes), tensor=a.name, index=index, offset=offset, why=why, fix=fix))

    def vector_element(self, machine: Machine, site: int, n: int, index: Any, bad: Any, write: bool) -> None:
        """A run-time index outside a vector in registers."""
        if not self.options.has("bounds"):
            return
        bad = np.broadcast_to(bad, np.broadcast_shapes(np.shape(bad), np.shape(index)))
        first = int(np.broadcast_to(index, bad.shape)[bad][0]) if bad.ndim else int(index)
        text = f"{'write' if write else 'read'} of element {first} of a vector that has {n}"
        why = "there is no such element: what the chip delivers is undefined"
        self.add(Finding("bounds", text, **self.at(machine, site, bad), why=why, fix="bound the index, or predicate the access"))

    def misaligned(
        self, machine: Machine, site: int, region: Region, off: Any, align: int, m: Any, nbytes: int
    ) -> None:
        """A global access that breaks the alignment promised for it.

        Vector memory instructions work at any address (the HSA runtime sets SH_MEM_CONFIG.alignment_mode to unaligned,
        LLVM's `unaligned-access-mode`), only slower: a warning. A load of one address by the whole workgroup may become
        a scalar load, which ignores the two low address bits: an error below 4 bytes.
        Source   LLVM AMDGPU features `unaligned-access-mode`, `unaligned-buffer-access`; CDNA3 ISA, scalar memory
        """
        bad = (off & (align - 1)) != 0
        bad = bad if m is None else bad & m
        if not np.any(bad) or not self.options.has("bounds"):
            return
        a = region.allocation
        first = int(np.broadcast_to(off, bad.shape)[bad][0]) if np.ndim(bad) else int(off)
        offset = first + region.origin - region.start
        address = first + region.origin
        is_uniform = off.ndim == 0 or off.shape[1] == 1
        may_be_scalar = self.sites[site][0] in SCALAR_LOADS and is_uniform and nbytes >= 4 and bool(first & 3)
        self.add(
            Finding(
                "misaligned",
                f"access of {nbytes} bytes to `{a.name}` at byte {offset}, at a multiple of {address & -address} bytes,"
                f" breaks its promised alignment of {align}",
                **self.at(machine, site, bad),
                tensor=a.name,
                offset=offset,
                index=a.coordinate(offset),
                severity="error" if may_be_scalar else "warning",
                why=SCALAR_ALIGNMENT if may_be_scalar else VECTOR_ALIGNMENT,
                fix="align the tensor and its strides, or use a narrower copy atom",
            )
        )

    def atomic_misaligned(self, machine: Machine, site: int, what: str, flags: Any, offset: int, nbytes: int) -> None:
        """An atomic whose address is no multiple of its size: these fault in every alignment mode."""
        if not self.options.has("bounds"):
            return
        self.add(
            Finding(
                "misaligned",
                f"atomic of {nbytes} bytes on {what} at byte {offset}, which is no multiple of {nbytes}",
                **self.at(machine, site, flags),
                offset=offset,
                why="atomics must be aligned to their size: on the chip this is a memory fault",
                fix="align the address, or update the elements one by one",
            )
        )

    def row_bounds(
        self,
        machine: Machine,
        site: int,
        what: str,
        base: str | None,
        span: tuple[int, int],
        addr: Any,
        nbytes: int,
        bad: Any,
        write: bool,
    ) -> None:
        """An LDS or private access outside its array."""
        if not self.options.has("bounds"):
            return
        bad = np.asarray(bad)
        first = int(np.broadcast_to(addr, bad.shape)[bad][0]) if bad.ndim else int(addr)
        verb = "write" if write else "read"
        name = f"array `{base}` of {what}" if base and not base.startswith("p") else what
        size = span[1] - span[0]
        self.add(
            Finding(
                "bounds",
                f"{verb} of {nbytes} bytes at byte {first - span[0]} of {name}, which has {size} bytes",
                **self.at(machine, site, bad),
                tensor=base,
                offset=first - span[0],
                why="an access past an array touches its neighbour, or is dropped past the last one",
                fix="enlarge the array, or predicate the access",
            )
        )

    def row_misaligned(self, machine: Machine, site: int, what: str, addr: Any, align: int, m: Any) -> None:
        bad = (addr & (align - 1)) != 0
        bad = np.asarray(bad if m is None else bad & m)
        if not bad.any() or not self.options.has("bounds"):
            return
        first = int(np.broadcast_to(addr, bad.shape)[bad][0]) if bad.ndim else int(addr)
        text = f"{what} access at byte {first} breaks its promised alignment of {align}"
        why = "wide instructions are chosen by the promised alignment; below it the chip's mode decides what is read"
        fix = "align the array and the offsets"
        self.add(Finding("misaligned", text, **self.at(machine, site, bad), offset=first, why=why, fix=fix))

    def undefined(self, machine: Machine, site: int, what: str, bad: Any, m: Any) -> None:
        bad = np.asarray(bad if m is None else bad & m)
        if bad.any() and self.options.has("undefined"):
            why = "the result is undefined: the compiler may assume that this never happens"
            self.add(Finding("undefined", what, **self.at(machine, site, bad), why=why, fix="guard the operation"))

    def buffer_offset(self, machine: Machine, site: int, offset: Any, bad: Any, m: Any) -> None:
        """An offset into a buffer that buffer instructions cannot hold."""
        bad = np.asarray(bad if m is None else bad & m)
        if not self.options.has("bounds"):
            return
        value = int(np.broadcast_to(offset, bad.shape)[bad][0]) if bad.ndim else int(offset)
        text = f"an offset of {value} elements into a buffer does not fit 32 bits"
        why = "buffer instructions reach 2^32 bytes from the descriptor's base; on the chip the offset wraps"
        fix = "make the descriptor of a slice (the base has 64 bits), or access the tensor without a descriptor"
        self.add(Finding("bounds", text, **self.at(machine, site, bad), why=why, fix=fix))

    def not_finite(self, machine: Machine, site: int, bad: Any) -> None:
        """A float result that stops being finite."""
        why = "its operands were finite: this is where NaN or infinity enters"
        fix = "guard the operation (division by zero, logarithm or root of a negative, overflow), or mask these lanes"
        text = "the result is NaN or infinite"
        self.add(Finding("not-finite", text, **self.at(machine, site, bad), why=why, fix=fix))

    def overflow(self, machine: Machine, site: int, bad: Any, is_unsigned: bool = False) -> None:
        """32-bit arithmetic that wraps."""
        text = f"{'an unsigned' if is_unsigned else 'a'} 32-bit integer operation wraps"
        why = "an offset that wraps points somewhere else"
        self.add(
            Finding("overflow", text, **self.at(machine, site, bad), why=why, fix="compute large offsets in 64 bits")
        )

    def lossy(self, machine: Machine, site: int, kind: str, pair: tuple[str, str], bad: Any) -> None:
        """A conversion that loses more than a rounding; `pair`: the first operand and its result, in words."""
        text = f"the conversion turns {pair[0]} into {pair[1]}"
        why, fix = LOSSY[kind]
        self.add(Finding("lossy-conversion", text, **self.at(machine, site, bad), why=why, fix=fix))

    def unwritten_register(self, machine: Machine, site: int, lanes: Any) -> None:
        """A register fragment that nothing wrote."""
        text = "a register fragment is used of which nothing wrote (at least) a part"
        why = "a new fragment holds whatever its registers held before"
        fix = "fill it first (`frag.fill(0)` for an accumulator), or copy all of it"
        self.add(Finding("uninitialised", text, **self.at(machine, site, lanes), why=why, fix=fix))

    def trap(self, machine: Machine, site: int, lanes: Any) -> None:
        """A trap instruction."""
        text = "the kernel reached a trap"
        why = "an assertion of the kernel failed"
        self.add(Finding("trap", text, **self.at(machine, site, lanes), why=why, fix="see the condition before it"))

    def loop_step(self, machine: Machine, site: int, step: int) -> None:
        text = f"a loop steps by {step}"
        self.add(
            Finding("undefined", text, span=self.span(site), why="steps must be positive", fix="reverse the bounds")
        )

    def endless(self, machine: Machine, site: int, trips: int) -> None:
        text = f"a loop is still running after {trips} trips"
        raise failure(
            [
                Finding(
                    "endless",
                    text,
                    span=self.span(site),
                    kernel=self.kernel,
                    fix="raise `trip_limit`, or check the condition",
                )
            ]
        )

    def barrier_mask(self, machine: Machine, site: int, m: Any) -> None:
        """A barrier that only part of a workgroup's lanes reach."""
        if not self.options.has("barrier"):
            return
        full = np.broadcast_to(m, (machine.G, machine.B))
        if machine.mask0 is not None:
            full = full | ~machine.mask0
        waves = full.reshape(machine.G, -1, machine.wave_size)
        partial = waves.any(axis=2) & ~waves.all(axis=2)
        some, every = full.any(axis=1), full.all(axis=1)
        if not (some & ~every).any() and not partial.any():
            return
        missing = ~full & (some & ~every)[:, None]
        self.add(
            Finding(
                "barrier",
                "a barrier that not every thread of the workgroup reaches",
                **self.at(machine, site, missing),
                why="the threads named above do not arrive: the others wait for ever, or pass without them",
                fix="move the barrier out of the divergent branch or loop",
            )
        )

    def ended_early(self, machines: list, arrived: dict[int, int]) -> None:
        """Waves that wait at a barrier which other waves of their workgroup do not reach."""
        wave, site = min(arrived.items())
        missing = [w for w in range(len(machines)) if w not in arrived]
        self.add(
            Finding(
                "barrier",
                f"wave {wave} waits at a barrier that wave {missing[0]} never reaches",
                span=self.span(site),
                callers=self.callers(site),
                block=machines[0].block_of(0),
                wave=wave,
                lane=0,
                thread=machines[wave].thread_of(0),
                why="every wave of a workgroup must execute the same number of barriers",
                fix="give both sides of the branch, and every loop, the same number of barriers",
            )
        )

    # --- printf ------------------------------------------------------------------------------------------------------

    def printf(self, machine: Machine, text: str, args: tuple, m: Any) -> None:
        """Print one line per active lane, in block and thread order."""
        shape = np.broadcast_shapes((), *[np.shape(a) for a in args], () if m is None else m.shape)
        full = (machine.G, machine.B) if m is None or len(shape) < 2 else np.broadcast_shapes(shape, m.shape)
        full = (machine.G, machine.B)
        active = np.broadcast_to(True if m is None else m, full).reshape(-1)
        columns = [np.broadcast_to(a, full).reshape(-1)[active].tolist() for a in args]
        rows = zip(*columns) if columns else [()] * int(active.sum())
        fmt = python_format(text)
        sys.stdout.write("".join(fmt % row if row else text.replace("%%", "%") for row in rows))


_CONVERSION = re.compile(r"%([-+ #0]*)(\d+)?(\.\d+)?(?:hh|h|ll|l|j|z|t)?([diouxXeEfFgGcsp%])")


def python_format(text: str) -> str:
    """Return the Python form of a C format."""

    def one(match: re.Match) -> str:
        flags, width, precision, kind = match.groups()
        if kind == "p":
            return "0x%x"
        kind = {"i": "d", "u": "d"}.get(kind, kind)
        return f"%{flags or ''}{width or ''}{precision or ''}{kind}"

    return _CONVERSION.sub(one, text)


def failure(findings: list[Finding]) -> SimFindings:
    """Return the exception that carries findings."""
    first = findings[0]
    notes = [f"{first.place} of kernel `{first.kernel}`"] if first.place else []
    notes += [first.missing] if first.missing else []
    fields = {"text": first.message, "why_text": first.why, "fix_text": first.fix, "findings": findings}
    return SimFindings(at=first.span, notes=tuple(notes), **fields)
