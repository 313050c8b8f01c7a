"""Native programs: how strace is called, and what its lines say.

Lines are `TASK TIME what`, where what is a call with its result, one half of a call that others interrupted, a signal, or
the end of a thread. Recorded ones are in harness/tests/fixtures/audit.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

from . import constants
from .events import CLONE_VFORK, CLONE_VM, Argument, Call, Descriptor, Enter, Event, Gone, Leave, Moved

# `?`: not every architecture has every call, nor every strace every name.
TRACED = (
    "mmap mmap2 munmap mprotect pkey_mprotect mremap remap_file_pages madvise brk shmget shmat shmdt clone clone3 fork "
    "vfork execve execveat exit exit_group personality memfd_create open openat openat2 creat close close_range dup dup2 "
    "dup3 fcntl fcntl64"
).split()

_LINE = re.compile(r"^(?:(?P<task>\d+) +)?(?P<time>\d+\.\d+) (?P<what>.*)$")
_CALL = re.compile(r"^(?P<name>\w+)\((?P<rest>.*)$", re.DOTALL)
_RESUMED = re.compile(r"^<\.\.\. (?P<name>\w+) resumed>(?P<rest>.*)$", re.DOTALL)
_RESULT = re.compile(r"^\) += (?P<result>\S+)(?P<more>.*)$", re.DOTALL)
_UNFINISHED = re.compile(r"^(?P<head>.*?)(?: )?<(?:unfinished|pid changed to (?P<to>\d+)) \.\.\.>$", re.DOTALL)
_ENDED = re.compile(r"^\+\+\+ exited with (?P<status>\d+) \+\+\+$")
_KILLED = re.compile(r"^\+\+\+ killed by (?P<signal>\w+)(?: \(core dumped\))? \+\+\+$")
_SUPERSEDED = re.compile(r"^\+\+\+ superseded by execve in pid (?P<by>\d+) \+\+\+$")
_DESCRIPTOR = re.compile(r"^(?P<number>-?\d+)(?:<(?P<name>.*)>(?P<deleted>\(deleted\))?)?$", re.DOTALL)
_ERROR = re.compile(r"^ (?P<error>E[A-Z0-9]+)\b")
_ESCAPE = re.compile(r"\\([0-7]{1,3}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_PLAIN_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "v": "\v", "f": "\f"}

# Which arguments, of those that strace prints, make the call of `events`: n a number, d a descriptor, s a string.
_SHAPES: dict[str, tuple[str, str, tuple[int, ...]]] = {
    "mmap": ("mmap", "nnnndn", (0, 1, 2, 3, 4, 5)),
    "mmap2": ("mmap", "nnnndn", (0, 1, 2, 3, 4, 5)),
    "munmap": ("munmap", "nn", (0, 1)),
    "mprotect": ("mprotect", "nnn", (0, 1, 2)),
    "pkey_mprotect": ("pkey_mprotect", "nnnn", (0, 1, 2, 3)),
    "mremap": ("mremap", "nnnnn", (0, 1, 2, 3, 4)),
    "remap_file_pages": ("remap_file_pages", "nnnnn", (0, 1, 2, 3, 4)),
    "madvise": ("madvise", "nnn", (0, 1, 2)),
    "brk": ("brk", "n", (0,)),
    "shmget": ("shmget", "nnn", (0, 1, 2)),
    "shmat": ("shmat", "nnn", (0, 1, 2)),
    "shmdt": ("shmdt", "n", (0,)),
    "execve": ("execve", "s", (0,)),
    "execveat": ("execve", "s", (1,)),
    "personality": ("personality", "n", (0,)),
    "exit": ("exit", "", ()),
    "exit_group": ("exit_group", "", ()),
    "memfd_create": ("memfd_create", "sn", (0, 1)),
    "open": ("open", "sn", (0, 1)),
    "openat": ("open", "sn", (1, 2)),
    "close": ("close", "d", (0,)),
    "close_range": ("close_range", "nnn", (0, 1, 2)),
    "dup": ("dup", "d", (0,)),
    "dup2": ("dup2", "dn", (0, 1)),
    "dup3": ("dup3", "dnn", (0, 1, 2)),
    "fcntl": ("fcntl", "dnn", (0, 1, 2)),
    "fcntl64": ("fcntl", "dnn", (0, 1, 2)),
}


def argv(program: str, log: Path, filtered: bool) -> list[str]:
    """strace's own part of the command. `filtered`: by seccomp, so that only the calls looked at are slowed down."""
    names = ",".join(f"?{name}" for name in TRACED)
    more = ["--seccomp-bpf"] if filtered else []
    return [program, "-f", *more, "-q", "-ttt", "-y", "-s", "80", "-e", f"trace={names}", "-o", str(log)]


def unquoted(text: str) -> str:
    """A string as strace quotes it, its escapes undone; strace cuts long ones and adds dots."""
    inner = text.strip().removesuffix("...")
    if inner.startswith('"') and inner.endswith('"'):
        inner = inner[1:-1]

    def plain(found: re.Match[str]) -> str:
        code = found[1]
        if code[0] in "01234567":
            return chr(int(code, 8))
        return chr(int(code[1:], 16)) if len(code) == 3 else _PLAIN_ESCAPES.get(code, code)

    return _ESCAPE.sub(plain, inner)


def _marks(text: str) -> Iterator[tuple[int, str]]:
    """Brackets and commas with their places, but for those within quotes and within a descriptor's <path>."""
    at = 0
    while at < len(text):
        c = text[at]
        if c == '"':
            at += 1
            while at < len(text) and text[at] != '"':
                at += 2 if text[at] == "\\" else 1
        elif c == "<" and text[at - 1 : at].isalnum() and text[at + 1 : at + 2] != "<":  # 3<path>, AT_FDCWD<path>
            closing = text.find(">", at)  # a > of the path itself is escaped
            at = closing if closing >= 0 else at
        elif c in "({[)}],":
            yield at, c
        at += 1


def split(text: str) -> list[str]:
    """Arguments at their commas."""
    parts, start, depth = [], 0, 0
    for at, c in _marks(text):
        depth += (c in "({[") - (c in ")}]")
        if c == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    rest = text[start:].strip()
    return [*parts, rest] if rest or parts else []


def _close(text: str) -> int:
    """Where the arguments end that `text` begins with; -1 where they do not."""
    depth = 0
    for at, c in _marks(text):
        depth += (c in "({[") - (c in ")}]")
        if depth < 0:
            return at
    return -1


def _result(rest: str) -> re.Match[str] | None:
    """What follows the arguments: `) = 3</path>`, `) = -1 EINVAL (...)`."""
    return _RESULT.match(rest[_close(rest) :]) if _close(rest) >= 0 else None


def descriptor(text: str) -> Descriptor | None:
    """`3</some/file>(deleted)`."""
    found = _DESCRIPTOR.match(text.strip())
    if found is None:
        return None
    return Descriptor(int(found["number"]), unquoted(found["name"] or ""), bool(found["deleted"]))


def _argument(letter: str, text: str) -> Argument:
    if letter == "s":
        return unquoted(text)
    if letter == "d":
        return descriptor(text) or 0
    as_number = constants.number(text)
    if as_number is None and (found := descriptor(text)) is not None:
        return found.number
    return constants.value(text) if as_number is None else as_number


def call(name: str, arguments: str) -> Call | None:
    """The call of `events` that this line stands for. None: not one of those that are looked at."""
    text = f"{name}({arguments})"
    if name in ("fork", "vfork"):
        return Call("clone", (CLONE_VM | CLONE_VFORK if name == "vfork" else 0,), text)
    if name in ("clone", "clone3"):
        flags = re.search(r"flags=([^,})]+)", arguments)
        return Call("clone", (constants.value(flags[1]) if flags else 0,), text)
    parts = split(arguments)
    if name == "creat":
        return Call("open", (unquoted(parts[0]) if parts else "", 0o1101), text)
    if name == "openat2":
        flags = re.search(r"flags=([^,})]+)", arguments)
        path = unquoted(parts[1]) if len(parts) > 1 else ""
        return Call("open", (path, constants.value(flags[1]) if flags else 0), text)
    if name not in _SHAPES:
        return None
    own, letters, indices = _SHAPES[name]
    values = tuple(_argument(letter, parts[i]) for letter, i in zip(letters, indices) if i < len(parts))
    return Call(own, values, text)


class Reader:
    """Lines to events. Lines that it does not understand are counted, the last one kept."""

    def __init__(self) -> None:
        self.lines = 0
        self.strange = 0
        self.last_strange = ""
        self._halves: dict[int, tuple[str, str]] = {}  # thread -> name and arguments so far
        self._default = 0

    def feed(self, line: str) -> Iterator[Event]:
        line = line.rstrip("\n")
        if not line:
            return
        self.lines += 1
        found = _LINE.match(line)
        if found is None:
            self._note(line)
            return
        task = int(found["task"] or self._default)
        yield from self._what(task, float(found["time"]), found["what"], line)

    def _note(self, line: str) -> None:
        self.strange += 1
        self.last_strange = line[:200]

    def _what(self, task: int, time: float, what: str, line: str) -> Iterator[Event]:
        if what.startswith("--- "):
            return  # a signal
        if what.startswith("+++ "):
            yield from self._ended(task, time, what, line)
            return
        if resumed := _RESUMED.match(what):
            name, head = self._halves.pop(task, (resumed["name"], ""))
            rest = f"{head}{resumed['rest']}"
            if finished := _result(rest):
                # The second half may bring what only the kernel knew: clone3's struct, for one.
                yield from self._leave(task, time, finished)
            else:
                self._note(line)
            return
        called = _CALL.match(what)
        if called is None:
            self._note(line)
            return
        name, rest = called["name"], called["rest"]
        if unfinished := _UNFINISHED.match(rest):
            self._halves[task] = (name, unfinished["head"])
            if made := call(name, unfinished["head"].removesuffix(",")):
                yield Enter(task, time, made)
            return
        if finished := _result(rest):
            if made := call(name, rest[: _close(rest)]):
                yield Enter(task, time, made)
                yield from self._leave(task, time, finished)
            return
        self._note(line)

    def _leave(self, task: int, time: float, finished: re.Match[str]) -> Iterator[Event]:
        result = finished["result"]
        # A path may hold blanks: the descriptor is read from the whole rest of the line.
        returned = descriptor(f"{result}{finished['more']}") if "<" in result else None
        if error := _ERROR.match(finished["more"]):
            yield Leave(task, time, None, error["error"])
        elif returned is not None:
            yield Leave(task, time, returned.number, "", returned)
        elif (number := constants.number(result)) is not None:
            yield Leave(task, time, number, "" if number >= 0 else "E", Descriptor(number) if number >= 0 else None)
        else:
            yield Leave(task, time, None)  # `?`: it did not return

    def _ended(self, task: int, time: float, what: str, line: str) -> Iterator[Event]:
        self._halves.pop(task, None)
        if ended := _ENDED.match(what):
            yield Gone(task, time, int(ended["status"]))
        elif killed := _KILLED.match(what):
            yield Gone(task, time, -_signal_number(killed["signal"]))
        elif superseded := _SUPERSEDED.match(what):
            by = int(superseded["by"])
            if by in self._halves:
                self._halves[task] = self._halves.pop(by)
            yield Moved(by, time, task)
        else:
            self._note(line)


def _signal_number(name: str) -> int:
    try:
        return int(signal.Signals[name])
    except KeyError:
        digits = re.search(r"\d+$", name)
        return 34 + int(digits[0]) if digits else 1  # SIGRT_7


def last_words(errors: Sequence[str]) -> str:
    """strace's own complaint."""
    said = [line.strip() for line in errors if line.strip()]
    return said[-1] if said else "it said nothing"
