"""What conformance/plugin/calls.c records of a program under the emulator: every call, its thread, its time, its order.

Records of a fixed size lie in a file that the plugin maps, in the order in which they were begun. The kernel is the
machine's own, so thread and process numbers are real, and a mapped file is known by device and inode.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from . import constants
from .events import CLONE_VFORK, CLONE_VM, MAP_ANONYMOUS, Argument, Born, Call, Descriptor, Enter, Event, Gone, Leave

RECORD = struct.Struct("=QQiiiiqq6QQIIII136s")
ROOM = 1 << 20  # records: 256 MiB, of which only what is written takes space
ENTERED, RETURNED = 1, 2
MMAP2_UNIT = 4096
MAX_ERRNO = 4095
# asm-generic/errno-base.h and errno.h: those that memory calls return; others are shown by number.
_ERRORS = {1: "EPERM", 2: "ENOENT", 4: "EINTR", 9: "EBADF", 11: "EAGAIN", 12: "ENOMEM", 13: "EACCES", 14: "EFAULT"}
_ERRORS |= {17: "EEXIST", 19: "ENODEV", 22: "EINVAL", 26: "ETXTBSY", 38: "ENOSYS", 75: "EOVERFLOW"}
# How many arguments a call has.
_COUNTS = {"munmap": 2, "mprotect": 3, "pkey_mprotect": 4, "mremap": 5, "remap_file_pages": 5, "madvise": 3, "brk": 1}
_COUNTS |= {"shmget": 3, "shmat": 3, "shmdt": 1, "personality": 1}
# Calls whose arguments are in the program's memory, where the plugin cannot read, and what then is not known.
_OPAQUE = {
    "old_mmap": "a mapping by the old mmap, whose arguments the plugin cannot read",
    "ipc": "a call of ipc, whose arguments the plugin cannot read",
}


@dataclass(frozen=True)
class Record:
    kind: int
    time: float
    process: int
    parent: int
    thread: int
    number: int
    result: int
    arguments: tuple[int, ...]
    file: Descriptor | None  # without its number


def make_log(path: Path, room: int = ROOM) -> None:
    with path.open("wb") as stream:
        stream.truncate(room * RECORD.size)


def records(path: Path) -> tuple[list[Record], int]:
    """The complete records in order, and how many were begun and are not there."""
    found = []
    with path.open("rb") as stream:
        begun = RECORD.unpack(stream.read(RECORD.size))[1]
        for _ in range(begun):
            block = stream.read(RECORD.size)
            if len(block) < RECORD.size:
                break
            kind, time, process, parent, thread, _, number, result, *rest = RECORD.unpack(block)
            arguments, (inode, major, minor, links, has_file, name) = rest[:6], rest[6:]
            file = None
            if has_file:
                label = name.split(b"\0")[0].decode("utf-8", "replace").removesuffix(" (deleted)")
                file = Descriptor(-1, label, links == 0, f"{major}:{minor}:{inode}")
            if kind in (ENTERED, RETURNED):
                found.append(Record(kind, time / 1e9, process, parent, thread, number, result, tuple(arguments), file))
    return found, begun - len(found)


def options(syscalls: Mapping[str, int], log: Path) -> dict[str, int | str]:
    """What the plugin is told."""
    maps = syscalls.get("mmap", syscalls.get("mmap2", -1))
    return {"log": str(log), "calls": ".".join(map(str, sorted(set(syscalls.values())))), "map": maps}


def _symbols(value: int, prefix: str) -> str:
    """A number as its flags, as strace would show it."""
    if not value:
        return "PROT_NONE" if prefix == "PROT_" else "0"
    parts = []
    if prefix == "MAP_":
        kind = value & 0xF
        parts.append({1: "MAP_SHARED", 2: "MAP_PRIVATE", 3: "MAP_SHARED_VALIDATE"}.get(kind, f"{kind:#x}"))
        value &= ~0xF
    for name, bit in constants.NUMBERS.items():
        if (
            name.startswith(prefix)
            and name != "MAP_HUGE_SHIFT"
            and bit > (0xF if prefix == "MAP_" else 0)
            and value & bit
        ):
            parts.append(name)
            value &= ~bit
    return "|".join([*parts, *([f"{value:#x}"] if value else [])])


class Reader:
    """Records to events."""

    def __init__(self, syscalls: Mapping[str, int], pointer_bytes: int) -> None:
        self.names = {number: name for name, number in syscalls.items()}
        self.mask = (1 << 8 * pointer_bytes) - 1
        self.processes: dict[int, int] = {}  # thread -> process
        self.making: dict[int, None] = {}  # threads within a clone
        self.starting: dict[int, None] = {}  # threads within an exec
        self.incomplete: Counter[str] = Counter()

    def events(self, found: Iterable[Record]) -> Iterator[Event]:
        for record in found:
            yield from self._event(record)
        for _ in self.starting:
            self.incomplete["a program started by exec, which this emulator does not follow"] += 1

    def _event(self, record: Record) -> Iterator[Event]:
        thread, name = record.thread, self.names.get(record.number, "")
        if thread not in self.processes:
            yield self._born(record)
        if record.kind == RETURNED:
            self.making.pop(thread, None)
            self.starting.pop(thread, None)
            yield self._leave(record, name)
            return
        if name == "exit":
            self.processes.pop(thread, None)
            yield Gone(thread, record.time, record.arguments[0] & 0xFF)
            return
        if name == "exit_group":
            for other in [t for t, process in self.processes.items() if process == record.process]:
                del self.processes[other]
                yield Gone(other, record.time, record.arguments[0] & 0xFF)
            return
        if name in _OPAQUE:
            self.incomplete[_OPAQUE[name]] += 1
            return
        call = self._call(record, name)
        if call.name == "clone":
            self.making[thread] = None
        elif call.name == "execve":
            self.starting[thread] = None
        yield Enter(thread, record.time, call)

    def _born(self, record: Record) -> Born:
        """A thread of a known process, or a process, which its parent has forked."""
        shares = record.process in self.processes.values()
        maker = record.process if shares else record.parent
        family = [thread for thread, process in self.processes.items() if process == maker]
        parent = next((thread for thread in family if thread in self.making), family[0] if family else -1)
        self.processes[record.thread] = record.process
        return Born(record.thread, record.time, record.process, parent, shares)

    def _leave(self, record: Record, name: str) -> Leave:
        if -MAX_ERRNO <= record.result < 0:
            return Leave(record.thread, record.time, None, _ERRORS.get(-record.result, f"error {-record.result}"))
        return Leave(record.thread, record.time, record.result & self.mask)

    def _call(self, record: Record, name: str) -> Call:
        values: list[Argument] = [argument & self.mask for argument in record.arguments]
        if name in ("mmap", "mmap2"):
            return self._mapped(record, name)
        if name in ("clone", "fork", "vfork", "clone3"):
            # This emulator's vfork is a fork; clone3's flags are in memory, and it has no clone3.
            flags = record.arguments[0] & self.mask if name == "clone" else 0
            text = f"{name}({flags:#x})" if name == "clone" else f"{name}()"
            return Call("clone", (flags & ~CLONE_VM if flags & CLONE_VFORK else flags,), text)
        if name in ("execve", "execveat"):
            return Call("execve", (f"the path at {values[name == 'execveat']:#x}",), f"{name}({values[0]:#x}, ...)")
        values = values[: _COUNTS.get(name, 0)]
        shown = [f"{value:#x}" for value in values]
        if name in ("mprotect", "pkey_mprotect"):
            shown[2] = _symbols(record.arguments[2] & self.mask, "PROT_")
        if name == "pkey_mprotect":
            values[3] = _signed(record.arguments[3])
            shown[3] = str(values[3])
        return Call(name, tuple(values), f"{name}({', '.join(shown)})")

    def _mapped(self, record: Record, name: str) -> Call:
        address, length, protection, flags, _, offset = (argument & self.mask for argument in record.arguments)
        number = _signed(record.arguments[4])
        offset *= MMAP2_UNIT if name == "mmap2" else 1
        file: Argument = number
        shown = str(number)
        if record.file is not None and not flags & MAP_ANONYMOUS:
            known = record.file
            file = Descriptor(number, known.name, known.deleted, known.identity)
            shown = f"{number}<{known.name}>" + ("(deleted)" if known.deleted else "")
        text = (
            f"mmap({address:#x}, {length:#x}, {_symbols(protection, 'PROT_')}, {_symbols(flags, 'MAP_')}, {shown}, "
            f"{offset:#x})"
        )
        return Call("mmap", (address, length, protection, flags, file, offset), text)


def line(event: Event) -> str:
    """An event as text, for whoever wants to follow by eye."""
    if isinstance(event, Enter):
        return f"{event.task} {event.time:.6f} {event.call.text}\n"
    if isinstance(event, Leave):
        value = event.error or (f"{event.result:#x}" if event.result is not None else "?")
        return f"{event.task} {event.time:.6f} = {value}\n"
    return f"{event.task} {event.time:.6f} {'begins' if isinstance(event, Born) else 'ends'}\n"


def _signed(value: int) -> int:
    """The low 32 bits as a C int."""
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value
