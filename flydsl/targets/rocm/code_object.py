"""Reading AMD code objects: the metadata note, the symbols, the kernel descriptors.

A small reader of exactly what LLVM writes (ELF64 little endian, MessagePack in a note of type 32). Tests
compare it with pyelftools and msgpack; the launch path needs neither.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from flydsl.targets.base import KernelArg, KernelInfo

_NT_AMDGPU_METADATA = 32
_SHT_SYMTAB, _SHT_NOTE, _SHT_DYNSYM = 2, 7, 11


class Section(NamedTuple):
    """One section header; `link` is the index of the string table of a symbol table."""

    kind: int
    offset: int
    size: int
    link: int


def sections(elf: bytes) -> list[Section]:
    """Return the section headers of an ELF64 file."""
    if elf[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not a 64-bit little-endian ELF file")
    (table,) = struct.unpack_from("<Q", elf, 40)
    entry_size, count = struct.unpack_from("<HH", elf, 58)
    found = []
    for i in range(count):
        _, kind, _, _, offset, size, link = struct.unpack_from("<IIQQQQI", elf, table + i * entry_size)
        found.append(Section(kind, offset, size, link))
    return found


def metadata(elf: bytes) -> dict[str, Any]:
    """Return the AMDGPU metadata (`amdhsa.kernels`, `amdhsa.target`, ...) of an object or code object."""
    for section in sections(elf):
        if section.kind != _SHT_NOTE:
            continue
        for name, kind, content in _notes(elf[section.offset : section.offset + section.size]):
            if name == b"AMDGPU" and kind == _NT_AMDGPU_METADATA:
                return _MessagePack(content).value()
    raise ValueError("the file has no AMDGPU metadata note")


def _notes(data: bytes) -> Iterator[tuple[bytes, int, bytes]]:
    at = 0
    while at + 12 <= len(data):
        name_size, size, kind = struct.unpack_from("<III", data, at)
        at += 12
        name = data[at : at + name_size].rstrip(b"\0")
        at += -(-name_size // 4) * 4
        yield name, kind, data[at : at + size]
        at += -(-size // 4) * 4


def undefined_symbols(elf: bytes) -> tuple[str, ...]:
    """Return the names of global symbols that the file refers to but does not define."""
    table = sections(elf)
    names = set()
    for section in table:
        if section.kind not in (_SHT_SYMTAB, _SHT_DYNSYM):
            continue
        strings = table[section.link].offset
        for at in range(section.offset + 24, section.offset + section.size, 24):
            name, info, _, index = struct.unpack_from("<IBBH", elf, at)
            if index == 0 and info >> 4 == 1:
                start = strings + name
                names.add(elf[start : elf.index(b"\0", start)].decode())
    return tuple(sorted(names))


def kernel_infos(elf: bytes) -> dict[str, KernelInfo]:
    """Return the facts of each kernel, by name, in the file's order."""
    return {entry[".name"]: _kernel_info(entry) for entry in metadata(elf)["amdhsa.kernels"]}


def _kernel_info(entry: dict[str, Any]) -> KernelInfo:
    args = tuple(
        KernelArg(a[".offset"], a[".size"], a[".value_kind"], a.get(".name", "")) for a in entry.get(".args", ())
    )
    workgroup = entry.get(".reqd_workgroup_size")
    return KernelInfo(
        name=entry[".name"],
        symbol=entry[".symbol"],
        args=args,
        kernarg_bytes=entry[".kernarg_segment_size"],
        kernarg_align=entry[".kernarg_segment_align"],
        lds_bytes=entry[".group_segment_fixed_size"],
        scratch_bytes=entry[".private_segment_fixed_size"],
        wave_size=entry[".wavefront_size"],
        vgprs=entry[".vgpr_count"],
        agprs=entry.get(".agpr_count", 0),
        sgprs=entry[".sgpr_count"],
        vgpr_spills=entry.get(".vgpr_spill_count", 0),
        sgpr_spills=entry.get(".sgpr_spill_count", 0),
        max_workgroup=entry[".max_flat_workgroup_size"],
        workgroup=tuple(workgroup) if workgroup else None,
    )


class _MessagePack:
    """Decoder of the MessagePack types that LLVM writes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def _take(self, count: int) -> bytes:
        self._at += count
        if self._at > len(self._data):
            raise ValueError("the AMDGPU metadata note is cut off")
        return self._data[self._at - count : self._at]

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def value(self) -> Any:
        """Return the next value."""
        tag = self._take(1)[0]
        if tag < 0x80:
            return tag
        if tag < 0x90:
            return self._map(tag & 0xF)
        if tag < 0xA0:
            return self._list(tag & 0xF)
        if tag < 0xC0:
            return self._take(tag & 0x1F).decode()
        if tag >= 0xE0:
            return tag - 0x100
        return self._long(tag)

    def _long(self, tag: int) -> Any:
        match tag:
            case 0xC0:
                return None
            case 0xC2 | 0xC3:
                return tag == 0xC3
            case 0xCA | 0xCB:
                return self._number(">f" if tag == 0xCA else ">d")
            case 0xCC | 0xCD | 0xCE | 0xCF:
                return self._number((">B", ">H", ">I", ">Q")[tag - 0xCC])
            case 0xD0 | 0xD1 | 0xD2 | 0xD3:
                return self._number((">b", ">h", ">i", ">q")[tag - 0xD0])
            case 0xC4 | 0xC5 | 0xC6:
                return self._take(self._number((">B", ">H", ">I")[tag - 0xC4]))
            case 0xD9 | 0xDA | 0xDB:
                return self._take(self._number((">B", ">H", ">I")[tag - 0xD9])).decode()
            case 0xDC | 0xDD:
                return self._list(self._number((">H", ">I")[tag - 0xDC]))
            case 0xDE | 0xDF:
                return self._map(self._number((">H", ">I")[tag - 0xDE]))
        raise ValueError(f"unexpected MessagePack tag {tag:#x}")

    def _list(self, count: int) -> list[Any]:
        return [self.value() for _ in range(count)]

    def _map(self, count: int) -> dict[Any, Any]:
        return {self.value(): self.value() for _ in range(count)}
