"""LLVM's disassembly of the code between two symbols of a relocatable object.

Symbols, bytes and relocations come from the ELF file, text from llvm-objdump. Offsets are bytes from the first symbol.
A relocation inside the code is an error: the linker, not the assembler, would decide where that instruction reaches,
and a template is copied as it stands in the object.
"""

from __future__ import annotations

import functools
import hashlib
import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import SymbolTableSection

from .model import Port

# Machines whose ELF ABI marks a function symbol of the compressed instruction set with bit 0 (AAELF32, MIPS psABI).
_MODE_BIT_MACHINES = ("EM_ARM", "EM_MIPS")
# pyelftools names a machine only from the release on that knows it.
YOUNG_MACHINES = {258: "EM_LOONGARCH"}
# A comment needs a blank behind its mark; an Arm immediate (`#4`) has none.
_COMMENT = re.compile(r"(^|\s+)(#|//|@|;)\s.*$")
_LABEL = re.compile(r"\s*<[^>]*>$")
_LINE = re.compile(r"^\s*(?P<address>[0-9a-f]+): (?P<bytes>[0-9a-f ]+)\t(?P<text>\S.*)$")


class DisassemblyError(Exception):
    """The object has no such code, or code that cannot be judged; the message says which."""


@dataclass(frozen=True)
class Instruction:
    offset: int  # bytes from the begin symbol
    length: int  # bytes
    text: str  # without address, bytes, symbolic label and comment
    address: int = 0  # in the object's section; operands that show absolute addresses are relative to the same zero
    code: bytes = b""


@dataclass(frozen=True)
class _Span:
    section: str
    begin: int
    code: bytes


def _read_span(obj: Path, begin: str, end: str, port: Port) -> _Span:
    try:
        with obj.open("rb") as stream:
            elf = ELFFile(stream)
            first, index = _symbol(elf, begin, obj)
            last, last_index = _symbol(elf, end, obj)
            if index != last_index:
                raise DisassemblyError(f"{begin} and {end} are in different sections of {obj.name}")
            if last <= first:
                raise DisassemblyError(f"no code between {begin} and {end} in {obj.name}")
            machine = YOUNG_MACHINES.get(elf["e_machine"], elf["e_machine"])
            if machine != port.elf_machine:
                raise DisassemblyError(f"{obj.name} is {machine}, the port's manifest says {port.elf_machine}")
            section = elf.get_section(index)
            base = int(section["sh_addr"])
            for relocations in elf.iter_sections():
                if not isinstance(relocations, RelocationSection) or relocations["sh_info"] != index:
                    continue
                for relocation in relocations.iter_relocations():
                    place = int(relocation["r_offset"])
                    if first <= place < last:
                        raise DisassemblyError(
                            f"{begin}+{place - first:#x} carries a relocation: the assembler left the distance open"
                        )
            return _Span(section.name, first, bytes(section.data()[first - base : last - base]))
    except (OSError, ELFError) as error:
        raise DisassemblyError(f"{obj}: {error}") from error


def split_symbol(name: str) -> tuple[str, int]:
    """The symbol and the offset of "SYMBOL" or "SYMBOL+OFFSET"."""
    symbol, _, offset = name.partition("+")
    return symbol, int(offset or "0")


def _symbol(elf: ELFFile, place: str, obj: Path) -> tuple[int, int]:
    name, offset = split_symbol(place)
    for table in elf.iter_sections():
        if not isinstance(table, SymbolTableSection):
            continue
        for symbol in table.get_symbol_by_name(name) or ():
            if isinstance(symbol["st_shndx"], int):
                value = int(symbol["st_value"])
                if elf["e_machine"] in _MODE_BIT_MACHINES and symbol["st_info"]["type"] == "STT_FUNC":
                    value &= ~1
                return value + offset, int(symbol["st_shndx"])
    raise DisassemblyError(f"{obj.name} does not define {name}")


def symbol_offsets(obj: Path, begin: str, names: Iterable[str]) -> dict[str, int]:
    """Bytes from symbol `begin` to each named symbol, mode bits cleared. DisassemblyError where one is missing."""
    try:
        with obj.open("rb") as stream:
            elf = ELFFile(stream)
            origin, index = _symbol(elf, begin, obj)
            offsets = {}
            for name in names:
                value, other = _symbol(elf, name, obj)
                if other != index:
                    raise DisassemblyError(f"{name} and {begin} are in different sections of {obj.name}")
                offsets[name] = value - origin
            return offsets
    except (OSError, ELFError) as error:
        raise DisassemblyError(f"{obj}: {error}") from error


def disassemble(port: Port, obj: Path, begin: str, end: str, objdump: str, triple: str = "") -> list[Instruction]:
    """The instructions from symbol `begin` up to `end`. DisassemblyError where there are none that can be judged.

    `triple` is given to llvm-objdump where the object alone does not say enough.
    """
    span = _read_span(obj, begin, end, port)
    stop = span.begin + len(span.code)
    # Zeros are shown too: a template may hold words that are patched later.
    argv = [objdump, "--disassemble", "--disassemble-zeroes", f"--section={span.section}"]
    argv += [f"--triple={triple}"] if triple else []
    shown = _parsed(_section((*argv, *port.objdump_argv), obj))
    lines = [line for line in shown if span.begin <= line[0] < stop]
    if not lines or lines[0][0] != span.begin:
        raise DisassemblyError(f"{objdump} shows nothing at {begin} in {obj.name}")
    return [
        Instruction(
            offset=address - span.begin,
            length=length,
            text=text,
            address=address,
            code=span.code[address - span.begin : address - span.begin + length],
        )
        for address, length, text in lines
    ]


def _section(argv: tuple[str, ...], obj: Path) -> str:
    """The whole section's disassembly; kept beside the object, under a name made of its content and the command."""
    try:
        key = hashlib.sha256(obj.read_bytes() + repr(argv).encode()).hexdigest()
    except OSError as error:
        raise DisassemblyError(f"{obj}: {error}") from error
    kept = obj.with_name(f"{obj.name}.{key[:16]}.dis")
    try:
        return kept.read_text()
    except FileNotFoundError:
        text = _run([*argv, str(obj)])
    for stale in obj.parent.glob(f"{obj.name}.*.dis"):
        stale.unlink(missing_ok=True)
    half = kept.with_suffix(".part")
    half.write_text(text)
    half.replace(kept)
    return text


def _run(argv: Sequence[str]) -> str:
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DisassemblyError(f"{argv[0]}: {error}") from error
    if done.returncode != 0:
        raise DisassemblyError(f"{argv[0]} ended with {done.returncode}: {done.stderr.strip()[-400:]}")
    return done.stdout


@functools.lru_cache(maxsize=64)
def _parsed(text: str) -> tuple[tuple[int, int, str], ...]:
    return tuple(_parse(text.splitlines()))


def _parse(lines: Iterable[str]) -> list[tuple[int, int, str]]:
    """Address, length and text of each instruction. Lengths are those of the bytes shown: the disassembler starts anew at
    every symbol, so that instructions overlap where a symbol stands within one."""
    found = []
    for line in lines:
        match = _LINE.match(line)
        if match is not None:
            text = _LABEL.sub("", _COMMENT.sub("", match["text"])).strip()
            length = len(match["bytes"].replace(" ", "")) // 2
            found.append((int(match["address"], 16), length, " ".join(text.split())))
    return found


def listing(instructions: Iterable[Instruction]) -> str:
    """One line an instruction, for diagnostics."""
    return "\n".join(f"{i.offset:4x}: {i.code.hex():<16} {i.text}" for i in instructions)
