"""What the audit finds, and how grave each is unless the caller says otherwise."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

VIOLATION, NOTE = "violation", "note"


@dataclass(frozen=True)
class Kind:
    name: str
    level: str
    title: str
    about: str  # what it means, for --explain and the documentation of the JSON


KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            "rwx",
            VIOLATION,
            "writable and executable at once",
            "A page was mapped, or made, writable and executable at one address. Whoever can write there can run it.",
        ),
        Kind(
            "w-then-x",
            VIOLATION,
            "executable by mprotect after it was writable",
            "A page that had been writable at this address, in this mapping, was made executable. PR_SET_MDWE and "
            "SELinux's execmem refuse that; a fresh mapping, or a second view of a memory file, needs no such step.",
        ),
        Kind(
            "view-at-end",
            VIOLATION,
            "writable view of executable memory held to the end",
            "A file's page was still mapped writable and executable, at two addresses, when the program ended or "
            "called exec: the view was leaked, or is kept for good.",
        ),
        Kind(
            "sub-page",
            VIOLATION,
            "executable memory asked for in parts of pages",
            "An address or a length that is no multiple of the page size was rounded silently by the kernel, in a call "
            "on executable memory or on a view of it: more than was asked for is affected, and how much more depends "
            "on the machine's page size.",
        ),
        Kind(
            "rwx-image",
            VIOLATION,
            "program file with a writable and executable segment",
            "The program's own file asks the kernel for a segment, or a stack, that is writable and executable.",
        ),
        Kind(
            "alias",
            NOTE,
            "writable view of executable memory held for a time",
            "A file's page was mapped writable and executable, at two addresses, and no longer is. That is how double "
            "mapping writes code; how long the view was held is what counts.",
        ),
        Kind(
            "published",
            NOTE,
            "executable mapping of a file that had been written through a mapping",
            "The view through which the file's pages were written was closed before they became executable.",
        ),
        Kind(
            "x-by-mprotect",
            NOTE,
            "executable by mprotect, never writable",
            "A page that had not been writable at this address was made executable by mprotect: PR_SET_MDWE refuses "
            "it all the same.",
        ),
        Kind(
            "process-memory",
            NOTE,
            "opened a process's memory for writing",
            "Writing to /proc/PID/mem changes pages whatever their protection says; what is written there is not seen.",
        ),
        Kind(
            "sub-page-data",
            NOTE,
            "lengths or addresses in parts of pages, on other memory",
            "As sub-page, where nothing executable is affected, or where a file is mapped to its end by a private "
            "mapping as loaders do.",
        ),
    )
}


def levels(allowed: Collection[str], denied: Collection[str]) -> dict[str, str]:
    """Level by kind, with what the caller allows made notes of, and what the caller denies made violations of."""
    return {
        kind.name: VIOLATION if kind.name in denied else NOTE if kind.name in allowed else kind.level
        for kind in KINDS.values()
    }


@dataclass(frozen=True)
class Step:
    """One system call of the program, as it is shown."""

    number: int  # in the order in which they ended, from 1
    time: float | None  # seconds from the first
    process: int
    thread: int
    text: str


@dataclass(frozen=True)
class Place:
    """A range of addresses, the mapping that it lies in, and what had been done to it before, oldest first."""

    start: int
    end: int
    origin: Step | None  # None: mapped by exec, before the first call was seen
    file: str = ""
    offset: int = 0
    history: tuple[Step, ...] = ()


@dataclass(frozen=True)
class Finding:
    kind: str
    step: Step
    place: Place
    mapping: int = 0  # findings of one mapping belong together
    detail: str = ""
    other: Place | None = None  # the executable address of the same bytes
    seconds: float | None = None  # held for so long
    calls: int | None = None  # and for so many calls of the memory-changing kind
    until: str = ""  # what ended it
    level: str = field(default="", compare=False)
