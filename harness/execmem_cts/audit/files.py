"""What file a mapping is of: the same bytes at two addresses are only seen where both are known to be of one file.

A runner that gives device and inode (the emulator's plugin) leaves nothing to infer. strace gives a path, which two memory
files can share: descriptors are followed from the call that made them, through dup, fork and exec. A descriptor that came
in unseen (inherited, or sent over a socket) is told by its path alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from .events import CLOSE_RANGE_CLOEXEC, CLOSE_RANGE_UNSHARE, FD_CLOEXEC, MFD_CLOEXEC, O_CLOEXEC, O_CREAT, O_EXCL
from .events import F_DUPFD, F_DUPFD_CLOEXEC, F_SETFD, Call, Descriptor

_THROUGH_PROC = re.compile(r"^/proc/(self|thread-self|\d+)/fd/(\d+)$|^/dev/fd/(\d+)$")


@dataclass(eq=False)
class File:
    """One file, or one piece of shared memory without a name."""

    label: str
    device: bool = False  # /dev/zero: a mapping of it is memory of its own
    written: list[tuple[int, int]] = field(default_factory=list)  # ranges that a shared mapping could write, ever
    executed: bool = False  # was mapped executable, ever

    def note_written(self, start: int, end: int) -> None:
        """Adds a range, merged with those that it meets."""
        kept = []
        for low, high in self.written:
            if high < start or end < low:
                kept.append((low, high))
            else:
                start, end = min(low, start), max(high, end)
        self.written = sorted([*kept, (start, end)])

    def was_written(self, start: int, end: int) -> bool:
        return any(low < end and start < high for low, high in self.written)


@dataclass
class _Open:
    file: File
    name: str
    close_on_exec: bool


class Files:
    """All files of one audit, by the names that runners have for them."""

    def __init__(self) -> None:
        self._by_identity: dict[str, File] = {}
        self._by_path: dict[str, File] = {}
        self.guessed = 0  # mappings of a memory file that is known by its name alone

    def fresh(self, label: str) -> File:
        return File(label)

    def named(self, path: str) -> File:
        """The file that has this path now."""
        if path not in self._by_path:
            self._by_path[path] = File(path, device=path == "/dev/zero")
        return self._by_path[path]

    def created(self, path: str) -> File:
        """A file that did not exist before: what had this path is another one."""
        self._by_path[path] = File(path)
        return self._by_path[path]

    def identified(self, identity: str, label: str) -> File:
        if identity not in self._by_identity:
            self._by_identity[identity] = File(label or identity, device=label == "/dev/zero")
        return self._by_identity[identity]


class Descriptors:
    """The descriptor table of a process, shared by its threads."""

    def __init__(self, files: Files) -> None:
        self.files = files
        self._open: dict[int, _Open] = {}

    def copy(self) -> Descriptors:
        """What a child gets that does not share the table."""
        made = Descriptors(self.files)
        made._open = {number: _Open(o.file, o.name, o.close_on_exec) for number, o in self._open.items()}
        return made

    def after_exec(self) -> Descriptors:
        made = self.copy()
        made._open = {number: o for number, o in made._open.items() if not o.close_on_exec}
        return made

    def file(self, descriptor: Descriptor) -> File:
        """The file that a descriptor refers to."""
        if descriptor.identity:
            return self.files.identified(descriptor.identity, descriptor.name)
        known = self._open.get(descriptor.number)
        # A table that is behind (a descriptor received over a socket) is told by the path that the runner prints.
        if known is not None and (not descriptor.name or known.name == descriptor.name):
            return known.file
        if descriptor.name.startswith("/memfd:"):
            self.files.guessed += 1
        return self.files.named(descriptor.name or f"descriptor {descriptor.number}")

    def _set(self, descriptor: Descriptor | None, file: File, close_on_exec: bool) -> None:
        if descriptor is not None:
            self._open[descriptor.number] = _Open(file, descriptor.name, close_on_exec)

    def opened(self, call: Call, returned: Descriptor | None) -> None:
        """open: a name for a file; a new one with O_CREAT | O_EXCL; an open descriptor's again through /proc."""
        if returned is None:
            return
        path, flags = str(call.args[0]), call.number(1)
        again = _THROUGH_PROC.match(path)
        source = self._open.get(int(again[2] or again[3])) if again else None
        name = returned.name or path
        if source is not None and (not returned.name or source.name == returned.name):
            file, name = source.file, source.name
        elif flags & O_CREAT and flags & O_EXCL:
            file = self.files.created(name)
        else:
            self.files.guessed += name.startswith("/memfd:")  # by map_files, or another process's descriptor
            file = self.files.named(name)
        self._set(Descriptor(returned.number, name), file, bool(flags & O_CLOEXEC))

    def memory_file(self, call: Call, returned: Descriptor | None) -> None:
        if returned is None:
            return
        name = returned.name or f"/memfd:{call.args[0]}"
        made = Descriptor(returned.number, name)
        self._set(made, self.files.fresh(name), bool(call.number(1) & MFD_CLOEXEC))

    def closed(self, number: int) -> None:
        self._open.pop(number, None)

    def close_range(self, call: Call) -> Descriptors:
        """The table to go on with: another one where the call asks for a copy of its own first."""
        first, last, flags = call.number(0), call.number(1), call.number(2)
        table = self.copy() if flags & CLOSE_RANGE_UNSHARE else self
        for number in [n for n in table._open if first <= n <= last]:
            if flags & CLOSE_RANGE_CLOEXEC:
                table._open[number].close_on_exec = True
            else:
                table.closed(number)
        return table

    def duplicated(self, call: Call, result: int) -> None:
        """dup, dup2, dup3 and fcntl's F_DUPFD."""
        source = call.args[0]
        if not isinstance(source, Descriptor) or result == source.number:
            return
        if call.name == "fcntl":
            command = call.number(1)
            if command == F_SETFD and source.number in self._open:
                self._open[source.number].close_on_exec = bool(call.number(2) & FD_CLOEXEC)
            if command not in (F_DUPFD, F_DUPFD_CLOEXEC):
                return
            close_on_exec = command == F_DUPFD_CLOEXEC
        else:
            close_on_exec = call.name == "dup3" and bool(call.number(2) & O_CLOEXEC)
        known = self._open.get(source.number)
        if known is None or (source.name and known.name != source.name):
            self.closed(result)
        else:
            self._open[result] = _Open(known.file, known.name, close_on_exec)

    def numbers(self) -> Iterator[int]:
        return iter(self._open)
