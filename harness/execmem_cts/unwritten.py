"""What a port that is being written says of itself: the notes of EXECMEM_UNWRITTEN in its programs.

`new-port` writes a port whose code is such notes. They build, and each is a failure that says what to write in its
place. A program that cannot even start, or whose every check rests on what is missing, is not run.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from .model import ALLOC

if TYPE_CHECKING:
    from .build import Built

SECTION = ".execmem_unwritten"
PARTS = ("start", "capture", "piece")  # every program rests on it; the captured calls do; itself alone


@dataclass(frozen=True)
class Note:
    step: int  # the section of arch/PORTING.md
    part: str
    file: str
    name: str  # of the function or template
    what: str  # to write

    @property
    def message(self) -> str:
        return f"{self.name} is not written yet: {self.file}; arch/PORTING.md, section {self.step}"

    @property
    def rank(self) -> tuple[int, int]:
        """The order in which notes are to be written."""
        return self.step, PARTS.index(self.part)


def parse(data: bytes) -> list[Note]:
    """Notes of the section's bytes, in the order in which they are to be written."""
    found = []
    for text in filter(None, data.decode(errors="replace").split("\0")):
        fields = [field.strip() for field in text.split(":", 4)]
        if len(fields) < 5 or not fields[0].isdigit() or fields[1] not in PARTS:
            wanted = f"expected STEP: PART: FILE: NAME: WHAT, with {', '.join(PARTS)} as PART, found {text!r}"
            fields = ["0", "piece", "a note", "EXECMEM_UNWRITTEN", wanted]
        found.append(Note(int(fields[0]), *fields[1:]))
    return sorted(found, key=lambda note: note.rank)


def read(program: Path) -> list[Note]:
    """The notes that lie in a program; none where it has none, or cannot be read as a program."""
    try:
        with program.open("rb") as stream:
            section = ELFFile(stream).get_section_by_name(SECTION)
            return parse(section.data()) if section else []
    except (OSError, ELFError):
        return []


def withheld(notes: list[Note], captures: bool) -> str:
    """Why a program with these notes is not run, or "". `captures`: its checks rest on the capturing call stub."""
    parts = ("start", "capture") if captures else ("start",)
    first = next((note for note in notes if note.part in parts), None)
    return f"{first.name} is not written yet" if first else ""


def alloc_key(port: str) -> str:
    """The name of the allocator families' program in `Built.withheld`; that of the call stub's proof is the port's."""
    return f"{port}/{ALLOC}"


def set_aside(built: Built, port: str) -> list[Note]:
    """The notes of a port's programs, in order. Programs that they keep from running leave `built` for its `withheld`."""
    mine = [(built.programs, key, key, True) for key in built.programs if key.startswith(f"{port}/")]
    mine += [(built.abi, port, port, True), (built.alloc, port, alloc_key(port), False)]
    notes: dict[Note, None] = {}
    for programs, key, name, captures in mine:
        found = read(programs[key]) if key in programs else []
        notes.update(dict.fromkeys(found))
        if reason := withheld(found, captures):
            built.withheld[name] = reason
            del programs[key]
    return sorted(notes, key=lambda note: note.rank)
