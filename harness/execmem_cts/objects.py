"""Prebuilt objects and archives of a subject: are they for the port, and what do they ask of the system?"""

from __future__ import annotations

import functools
import io
from collections.abc import Iterator
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from .model import Port
from .source import Where

ARCHIVE, THIN, HEADER = b"!<arch>\n", b"!<thin>\n", 60


def members(path: Path) -> Iterator[tuple[str, bytes]]:
    """The object itself, or those of an archive, with their names. ValueError where it is neither, or is cut short."""
    data = path.read_bytes()
    if data.startswith(THIN):
        raise ValueError("a thin archive, which holds names alone")
    if not data.startswith(ARCHIVE):
        yield path.name, data
        return
    at, names = len(ARCHIVE), b""
    while at + HEADER <= len(data):
        header = data[at : at + HEADER]
        if header[58:60] != b"`\n" or not header[48:58].strip().isdigit():
            raise ValueError(f"an archive that is broken at byte {at}")
        size, name = int(header[48:58]), header[:16].rstrip()
        body = data[at + HEADER : at + HEADER + size]
        if len(body) < size:
            raise ValueError(f"an archive that is cut short at byte {at}")
        at += HEADER + size + size % 2
        if name == b"//":
            names = body
        elif name.rstrip(b"/").strip() and not name.startswith(b"/SYM64"):
            if name[:1] == b"/" and name[1:].isdigit():
                name = names[int(name[1:]) :].split(b"/\n", 1)[0]
            yield f"{path.name}({name.rstrip(b'/').decode(errors='replace')})", body


def check(path: Path, port: Port, where: Where) -> None:
    """Is everything in it a relocatable object for the port? Raises ManifestError."""
    wanted = (port.elf_machine, 8 * port.pointer_bytes, port.endianness)
    mend = f"build it for {port.triple}, as `clang --target={port.triple} -c` does"
    count = 0
    try:
        for name, data in members(path):
            count += 1
            elf = ELFFile(io.BytesIO(data))
            found = (elf["e_machine"], elf.elfclass, "little" if elf.little_endian else "big")
            if found != wanted:
                raise where.error(f"{name} is for {_machine(found)}, expected {_machine(wanted)}", mend)
            if elf["e_type"] != "ET_REL":
                raise where.error(
                    f"{name} is linked already ({elf['e_type']}), expected an object or an archive of objects", mend
                )
    except (ELFError, ValueError) as error:
        raise where.error(f"{path} is no object and no archive: {error}", mend) from error
    if not count:
        raise where.error(f"{path} is an archive without a member", mend)


def _machine(machine: tuple[str, int, str]) -> str:
    return f"{machine[0]} ({machine[1]} bits, {machine[2]}-endian)"


@functools.lru_cache(maxsize=None)
def undefined(path: Path) -> frozenset[str]:
    """The names that its members ask for and none of them defines."""
    asked: set[str] = set()
    defined: set[str] = set()
    for _, data in members(path):
        for section in ELFFile(io.BytesIO(data)).iter_sections():
            if isinstance(section, SymbolTableSection):
                for symbol in section.iter_symbols():
                    if symbol["st_info"]["bind"] != "STB_LOCAL":
                        (asked if symbol["st_shndx"] == "SHN_UNDEF" else defined).add(symbol.name)
    return frozenset(asked - defined - {""})
