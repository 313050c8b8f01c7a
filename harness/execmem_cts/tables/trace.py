"""Traces of what a runtime does with executable memory: a text format that people can write and read.

One event a line, fields separated by blanks; `#` begins a comment; the first line is `execmem-trace 1`. A trace says what
is asked for, not where it lands: that is the business of a model (placement.py), so that placements can be compared.
ref/replay/README.md has the table of events. Files that end in .gz or .xz are compressed.

Errors are one line: file, line, what was expected, what was found.
"""

from __future__ import annotations

import gzip
import lzma
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ..source import ManifestError

HEADER = "execmem-trace"
VERSION = 1
BYTES_MAX = 1 << 32
NAME = re.compile(r"[A-Za-z0-9_.:-]{1,64}")

# Word: what follows it, by the names of the fields of Event. A `?` marks what may be left out.
FORMS: dict[str, tuple[str, ...]] = {
    "set": ("name", "bytes"),
    "region": ("name", "bytes"),
    "release": ("name",),
    "alloc": ("name", "bytes", "heap?"),
    "trim": ("name", "bytes"),
    "free": ("name",),
    "write": ("name", "offset", "bytes"),
    "map": ("view", "name", "offset", "bytes"),
    "unmap": ("view",),
    "stub": ("heap", "bytes"),
    "slot": ("heap", "bytes"),
}
# What a trace may set before its first event, and what holds where it does not. All in bytes but the threshold.
SETTINGS: dict[str, int] = {
    "code_align": 64,  # blocks are multiples of it
    "code_header": 0,  # in front of each block
    "code_reserve": 1 << 28,  # a region of the code heap
    "code_reserve_later": 1 << 28,  # the same, when there are more than code_reserve_threshold
    "code_reserve_threshold": 0,
    "fragment_chunk": 1024,  # taken from the code heap at a time for stubs below fragment_small that share its pages
    "fragment_small": 256,
    "reserve_granule": 65536,  # regions are multiples of it
}
# Settings with a name in them: own.KIND, stubs of this kind have a heap of so many bytes unless they share the pages of
# jitted code; apart.KIND, they always have one.
KINDS = ("own.", "apart.")


@dataclass(frozen=True, slots=True)
class Event:
    """One line. `line` is 0 for an event that was not read from a file."""

    word: str
    name: str = ""
    bytes: int = 0
    offset: int = 0
    view: str = ""
    heap: str = ""
    line: int = 0


@dataclass(frozen=True)
class Trace:
    """`settings` has every key of SETTINGS, and the kinds of stubs that it names. Events without `set`."""

    source: str
    settings: dict[str, int]
    events: list[Event]

    def error(self, event: Event, problem: str) -> ManifestError:
        where = f"{self.source}:{event.line}" if event.line else self.source
        return ManifestError(f"{where}: {problem}")


class _Lines:
    """Reads the lines of one file."""

    def __init__(self, source: str) -> None:
        self.source, self.line = source, 0

    def error(self, problem: str) -> ManifestError:
        return ManifestError(f"{self.source}:{self.line}: {problem}")

    def number(self, text: str, what: str, lowest: int) -> int:
        if not text.isascii() or not text.isdigit():
            raise self.error(f"{what}: expected a decimal number, found {text!r}")
        value = int(text)
        if not lowest <= value <= BYTES_MAX:
            raise self.error(f"{what}: expected {lowest} to {BYTES_MAX}, found {value}")
        return value

    def event(self, words: list[str]) -> Event:
        form = FORMS.get(words[0])
        if form is None:
            raise self.error(f"expected one of {', '.join(FORMS)}, found {words[0]!r}")
        needed = [field for field in form if not field.endswith("?")]
        if not len(needed) <= len(words) - 1 <= len(form):
            spelled = " ".join(f"[{f[:-1].upper()}]" if f.endswith("?") else f.upper() for f in form)
            raise self.error(f"expected `{words[0]} {spelled}`, found {len(words) - 1} fields after {words[0]!r}")
        fields: dict[str, str | int] = {}
        for field, text in zip((f.rstrip("?") for f in form), words[1:]):
            if field in ("bytes", "offset"):
                lowest = 0 if field == "offset" or words[0] == "set" else 1
                fields[field] = self.number(text, field, lowest)
            elif NAME.fullmatch(text):
                fields[field] = text
            else:
                raise self.error(f"{field}: expected up to 64 letters, digits and _ . : -, found {text!r}")
        return Event(words[0], line=self.line, **fields)  # type: ignore[arg-type]


def _setting(lines: _Lines, event: Event, settings: dict[str, int]) -> None:
    if event.name not in SETTINGS and not event.name.startswith(KINDS):
        known = ", ".join([*SETTINGS, "own.KIND", "apart.KIND"])
        raise lines.error(f"set: expected one of {known}, found {event.name!r}")
    if event.name in ("code_align", "reserve_granule") and (event.bytes & (event.bytes - 1) or not event.bytes):
        raise lines.error(f"set {event.name}: expected a power of two, found {event.bytes}")
    if event.name == "reserve_granule" and event.bytes < 65536:
        raise lines.error(f"set reserve_granule: expected at least 65536, found {event.bytes}")
    if event.bytes == 0 and event.name not in ("code_header", "code_reserve_threshold"):
        raise lines.error(f"set {event.name}: expected at least 1, found 0")
    settings[event.name] = event.bytes


def parse(text: Iterable[str], source: str) -> Trace:
    """Reads a trace. Raises ManifestError. What events mean together (a block freed twice) is seen when it is placed."""
    lines, settings, events = _Lines(source), dict(SETTINGS), list[Event]()
    header = False
    for lines.line, line in enumerate(text, 1):
        words = line.split("#", 1)[0].split()
        if not header:
            if words[:1] != [HEADER] or len(words) != 2:
                raise lines.error(f"expected `{HEADER} {VERSION}`, found {line.strip()!r}")
            if lines.number(words[1], "version", 1) != VERSION:
                raise lines.error(f"expected version {VERSION}, found {words[1]}; use a newer execmem-cts")
            header = True
        elif words:
            event = lines.event(words)
            if event.word != "set":
                events.append(event)
            elif events:
                raise lines.error("set: expected before the first event")
            else:
                _setting(lines, event, settings)
    if not header:
        lines.line = 1
        raise lines.error(f"expected `{HEADER} {VERSION}`, found an empty file")
    if not events:
        raise lines.error("expected at least one event, found none")
    return Trace(source, settings, events)


def read(path: Path) -> Trace:
    """Reads a file, compressed or not. Raises ManifestError."""
    opener: Callable[..., Iterator[str]] = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix, open)  # type: ignore
    try:
        with opener(path, "rt", encoding="ascii", errors="strict") as file:  # type: ignore[attr-defined]
            return parse(file, str(path))
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise ManifestError(f"{path}: cannot be read: {error}; give the path of a trace") from error
    except UnicodeDecodeError as error:
        raise ManifestError(f"{path}: expected ASCII text, found byte {error.object[error.start]:#x}") from error


def lines_of(settings: dict[str, int], events: Iterable[Event]) -> Iterator[str]:
    """The text of a trace, line by line, with an end of line each. Settings that are the default are left out."""
    yield f"{HEADER} {VERSION}\n"
    for name, value in settings.items():
        if SETTINGS.get(name) != value:
            yield f"set {name} {value}\n"
    for event in events:
        fields = [str(value) for field in FORMS[event.word] if (value := getattr(event, field.rstrip("?"))) != ""]
        yield f"{event.word} {' '.join(fields)}\n"
