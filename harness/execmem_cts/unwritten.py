"""What a port that is being written says of itself: the notes of EXECMEM_UNWRITTEN in its programs.

`new-port` writes a port whose code is such notes. They build, and each is a failure that says what to write in its
place. A program that cannot even start, or whose every check rests on what is missing, is not run.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

SECTION = ".execmem_unwritten"
PARTS = ("start", "capture", "piece")  # every program rests on it; the captured calls do; itself alone


@dataclass(frozen=True, order=True)
class Note:
    step: int  # the section of arch/PORTING.md
    part: str
    name: str  # of the function or template
    what: str  # to write

    @property
    def point(self) -> str:
        return f"step-{self.step}-{self.name}"

    @property
    def message(self) -> str:
        return f"{self.name} is not written yet: arch/PORTING.md, section {self.step}"


def parse(data: bytes) -> list[Note]:
    """Notes of the section's bytes, in the order in which they are to be written: that of the steps, then as they lie."""
    found = []
    for text in filter(None, data.decode(errors="replace").split("\0")):
        step, part, name, what = (field.strip() for field in (text.split(":", 3) + [""] * 3)[:4])
        if not step.isdigit() or part not in PARTS:
            step, part, name, what = "0", "piece", "note", f"mend {text!r}: expected STEP: PART: NAME: WHAT"
        found.append(Note(int(step), part, name, what))
    return sorted(found, key=lambda note: note.step)


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
