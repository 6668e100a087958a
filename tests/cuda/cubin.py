"""What NVIDIA's compiler says of the kernels in a cubin, read from its ELF sections.

The sections of a kernel and the numbers of the attributes are those that NVIDIA's cuobjdump
--dump-resource-usage shows.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_NO_BITS = 8  # of an ELF section's type: it takes memory, not bytes of the file
_LOAD, _STORE = 0x981, 0x986  # LDG and STG
_MAX_THREADS, _FRAME_SIZE, _REGISTERS = 0x05, 0x11, 0x2F


@dataclass
class Kernel:
    """What a launch of it takes: per thread, and per block."""

    name: str
    registers: int
    local_bytes: int
    shared_bytes: int
    most_threads: int  # __launch_bounds__, or 0
    instructions: int
    wide_loads: int  # instructions that move 16 bytes from or to device memory
    wide_stores: int


def _sections(code: bytes) -> dict[str, tuple[int, bytes]]:
    """The size and the content of each section."""
    table = struct.unpack_from("<Q", code, 40)[0]
    count, names = struct.unpack_from("<HH", code, 60)
    headers = [struct.unpack_from("<IIQQQQIIQQ", code, table + 64 * i) for i in range(count)]
    start, size = headers[names][4:6]
    texts = code[start : start + size]
    found = {}
    for name, kind, _, _, start, size, *_ in headers:
        text = texts[name : texts.index(b"\0", name)].decode()
        found[text] = size, b"" if kind == _NO_BITS else code[start : start + size]
    return found


def _attributes(info: bytes) -> Iterator[tuple[int, bytes]]:
    """The attributes that have values of their own."""
    at = 0
    while at < len(info):
        form, key, size = struct.unpack_from("<BBH", info, at)
        at += 4
        if form == 4:
            yield key, info[at : at + size]
            at += size


def _count_wide(text: bytes, opcode: int) -> int:
    """The instructions of 16 bytes with an opcode that move 16 bytes, on sm_80 and newer."""
    words = struct.iter_unpack("<QQ", text[: len(text) // 16 * 16])
    return sum(low & 0xFFF == opcode and high >> 9 & 7 == 6 for low, high in words)


def kernels_of(code: bytes) -> list[Kernel]:
    """Lists the kernels of a cubin."""
    sections = _sections(code)
    symbols, texts = sections[".symtab"][1], sections[".strtab"][1]

    def name_of(symbol: int) -> str:
        at = struct.unpack_from("<I", symbols, 24 * symbol)[0]
        return texts[at : texts.index(b"\0", at)].decode()

    values: dict[int, dict[str, int]] = {_FRAME_SIZE: {}, _REGISTERS: {}}
    for key, value in _attributes(sections[".nv.info"][1]):
        if key in values:
            symbol, number = struct.unpack("<II", value)
            values[key][name_of(symbol)] = number
    kernels = []
    for section in sections:
        if not section.startswith(".nv.info."):
            continue
        name = section.removeprefix(".nv.info.")
        threads = [v for k, v in _attributes(sections[section][1]) if k == _MAX_THREADS]
        x, y, z = struct.unpack("<III", threads[0]) if threads else (0, 0, 0)
        kernels.append(
            Kernel(
                name,
                values[_REGISTERS][name],
                values[_FRAME_SIZE].get(name, 0),
                sections.get(f".nv.shared.{name}", (0, b""))[0],
                x * y * z,
                len(sections[f".text.{name}"][1]) // 16,
                _count_wide(sections[f".text.{name}"][1], _LOAD),
                _count_wide(sections[f".text.{name}"][1], _STORE),
            )
        )
    return kernels
