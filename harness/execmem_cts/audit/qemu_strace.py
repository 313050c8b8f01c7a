"""The emulator's own -strace: for programs of one thread, where it loads no plugin.

Lines are `PID name(arguments) = result`, without time. With a second thread or process they run into each other and say no
thread, so that such an audit is incomplete.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator

from . import constants, strace
from .events import Argument, Call, Descriptor, Enter, Event, Gone, Leave

_LINE = re.compile(r"^(?P<task>\d+) (?P<name>\w+)\((?P<arguments>.*)\) = (?P<result>-?\w+)(?P<more>.*)$")
_EXIT = re.compile(r"^(?P<task>\d+) exit(?:_group)?\((?P<status>\d+)\)")
_EXEC = re.compile(r'^(?P<task>\d+) execve\("(?P<path>[^"]*)"')
_KILLED = re.compile(r"^--- SIG")
_MIXED = re.compile(r"\)\d+ \w+\(")  # another thread's line begins within
_ERRNO = re.compile(r"errno=(\d+)")
_MADE = ("clone", "clone3", "fork", "vfork")
_OFFSET_UNITS = {"mmap": 1, "mmap2": 4096}


class Reader:
    """Lines to events."""

    def __init__(self) -> None:
        self.tasks: dict[int, None] = {}
        self.incomplete: dict[str, int] = {}
        self.starting = ""

    def _note(self, reason: str) -> None:
        self.incomplete[reason] = self.incomplete.get(reason, 0) + 1

    def feed(self, line: str) -> Iterator[Event]:
        if self.starting and line.strip():
            self.starting = ""  # it came back
        line = line.rstrip("\n")
        if not line or line.startswith("Unknown syscall") or _KILLED.match(line):
            return
        if found := _LINE.match(line):
            task, name = int(found["task"]), found["name"]
            self.tasks[task] = None
            if (
                len(self.tasks) > 1
                or _MIXED.search(found["arguments"])
                or (name in _MADE and not found["result"].startswith("-1"))
            ):
                self._note("threads or processes, which -strace does not tell apart")
                return
            call = self._call(name, found["arguments"])
            if call is not None:
                yield Enter(task, None, call)
                yield self._leave(task, found)
        elif (found := _EXIT.match(line)) and int(found["task"]) in self.tasks:
            yield Gone(int(found["task"]), None, int(found["status"]) & 0xFF)
        elif found:
            self._note("threads or processes, which -strace does not tell apart")
        elif found := _EXEC.match(line):
            self.starting = found["path"]
        elif re.match(r"^\d+ (?:\w+\(|Unknown syscall)", line) is None or re.search(
            r"\b(mmap2?|mprotect|munmap)\(", line
        ):
            self._note("lines of -strace that are not understood")

    def finish(self) -> None:
        if self.starting:
            self._note("a program started by exec, which this emulator does not follow")

    def _leave(self, task: int, found: re.Match[str]) -> Leave:
        error = _ERRNO.search(found["more"])
        value = constants.number(found["result"])
        if error or value is None:
            name = errno.errorcode.get(int(error[1]), f"errno {error[1]}") if error else ""
            return Leave(task, None, None, name)
        return Leave(task, None, value, "", Descriptor(value))

    def _call(self, name: str, arguments: str) -> Call | None:
        if name == "memfd_create":  # a pointer and flags
            parts = arguments.split(",")
            return Call("memfd_create", ("unnamed", constants.value(parts[1])), f"{name}({arguments})")
        call = strace.call(name, arguments)
        if call is None or call.name != "mmap" or len(call.args) < 6:
            return call
        args: list[Argument] = list(call.args)
        args[5] = call.number(5) * _OFFSET_UNITS.get(name, 1)
        return Call("mmap", tuple(args), call.text)
