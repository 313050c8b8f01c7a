"""What the audit must make of short histories: strace's lines, less thread and time, and the kinds that come of them.

Each case is one rule of the model, from the side where it speaks or the one where it must be silent. Lines are of thread
100 unless they begin with another number and a blank; `pid` lines of strace are written in full.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from execmem_cts.audit import strace
from execmem_cts.audit.events import Event

EXEC = 'execve("./program", ["./program"], 0x7ffc0 /* 41 vars */) = 0'
END = ["exit_group(0) = ?", "+++ exited with 0 +++"]
RW, RX, RWX = "PROT_READ|PROT_WRITE", "PROT_READ|PROT_EXEC", "PROT_READ|PROT_WRITE|PROT_EXEC"
ANON = "MAP_PRIVATE|MAP_ANONYMOUS, -1, 0"
FILE = "3</memfd:code>(deleted)"
MEMFD = f'memfd_create("code", 0) = {FILE}'
VIEW = f"mmap(NULL, 4096, {RW}, MAP_SHARED, {FILE}, 0) = 0x10000"
CODE = f"mmap(NULL, 4096, {RX}, MAP_SHARED, {FILE}, 0) = 0x20000"
THREAD = "CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD|CLONE_SYSVSEM"


@dataclass(frozen=True)
class Case:
    name: str
    lines: tuple[str, ...]
    kinds: tuple[str, ...]
    incomplete: bool = False
    ended: bool = True


def case(name: str, lines: Iterable[str], *kinds: str, incomplete: bool = False, ended: bool = True) -> Case:
    return Case(name, tuple(lines), kinds, incomplete, ended)


def log(found: Case) -> list[str]:
    """The case as strace would write it: a line a millisecond."""
    lines = [EXEC, *found.lines, *(END if found.ended else [])]
    made = []
    for number, line in enumerate(lines):
        thread, what = re.match(r"^(?:(\d+) )?(.*)$", line, re.DOTALL).groups()  # type: ignore[union-attr]
        made.append(f"{thread or 100} {1000 + number / 1000:.6f} {what}")
    return made


def events(found: Case) -> Iterator[Event]:
    reader = strace.Reader()
    for line in log(found):
        yield from reader.feed(line)
    assert not reader.strange, reader.last_strange
