"""Traces of a code heap, for ref/replay/hotspot: HotSpot's recorded ones, and those of others.

Two formats are read, told apart by the first line, compressed (.gz, .xz) or not:

- that of trace.py, of which only blocks are understood: alloc, trim, free;
- calls as they were recorded: `a ID BYTES [HEAP]`, `f ID`, `t ID BYTES`.

Errors are one line: file, line, what was expected, what was found.
"""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ..source import ManifestError
from . import trace

RECORDED = (Path("ref/replay/traces"), Path("ref/replay/hotspot/traces"))
SUFFIX = ".trace.xz"
HEAPS = 8  # of trace.h, as the next
BYTES_MAX = 1 << 30
CALLS = {
    "a": ("a ID BYTES [HEAP]", (2, 3)),
    "f": ("f ID", (1,)),
    "t": ("t ID BYTES", (2,)),
}


@dataclass(frozen=True)
class HeapTrace:
    """`text` is what the replayer reads. The rest is counted here, without it, to be held against its answer."""

    name: str
    text: str
    heaps: int
    allocations: int
    frees: int
    asked_most: int  # bytes in live blocks, when they were most
    asked_last: int  # and at the end
    sizes: tuple[int, ...]  # of the blocks that are live at the end
    churn: int  # bytes freed

    @property
    def default_size(self) -> bool:
        """Recorded in a code cache of the size that HotSpot has unless told otherwise: three heaps."""
        return self.heaps > 1


class _Collector:
    """Numbers blocks and heaps, and counts."""

    def __init__(self, source: str) -> None:
        self.source, self.line = source, 0
        self.live: dict[str, tuple[int, int]] = {}  # name: number, bytes
        self.heaps: dict[str, int] = {}
        self.lines: list[str] = []
        self.allocations = self.frees = self.asked = self.asked_most = self.churn = 0

    def error(self, problem: str) -> ManifestError:
        return ManifestError(f"{self.source}:{self.line}: {problem}")

    def _bytes(self, bytes_: int) -> int:
        if not 1 <= bytes_ <= BYTES_MAX:
            raise self.error(f"bytes: expected 1 to {BYTES_MAX}, found {bytes_}")
        return bytes_

    def _block(self, name: str) -> tuple[int, int]:
        if name not in self.live:
            raise self.error(f"expected a block that is live, found {name!r}")
        return self.live[name]

    def _change(self, by: int) -> None:
        self.asked += by
        self.asked_most = max(self.asked_most, self.asked)

    def allocate(self, name: str, bytes_: int, heap: str) -> None:
        if name in self.live:
            raise self.error(f"expected a block that is not live, found {name!r}")
        number = self.heaps.setdefault(heap, len(self.heaps))
        if number == HEAPS:
            raise self.error(f"expected at most {HEAPS} heaps, found one more, {heap!r}")
        self.live[name] = self.allocations, self._bytes(bytes_)
        self.lines.append(f"a {self.allocations} {bytes_} {number}\n")
        self.allocations += 1
        self._change(bytes_)

    def free(self, name: str) -> None:
        number, bytes_ = self._block(name)
        del self.live[name]
        self.lines.append(f"f {number}\n")
        self.frees += 1
        self.churn += bytes_
        self._change(-bytes_)

    def trim(self, name: str, bytes_: int) -> None:
        number, had = self._block(name)
        if self._bytes(bytes_) > had:
            raise self.error(f"expected at most the {had} bytes that {name!r} has, found {bytes_}")
        self.live[name] = number, bytes_
        self.lines.append(f"t {number} {bytes_}\n")
        self._change(bytes_ - had)

    def result(self, name: str) -> HeapTrace:
        if not self.lines:
            raise ManifestError(f"{self.source}: expected at least one event, found none")
        return HeapTrace(
            name,
            "".join(self.lines),
            len(self.heaps),
            self.allocations,
            self.frees,
            self.asked_most,
            self.asked,
            tuple(sorted(bytes_ for _, bytes_ in self.live.values())),
            self.churn,
        )


def _calls(lines: Iterable[str], collector: _Collector) -> None:
    for collector.line, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        form, counts = CALLS.get(words[0], ("", ()))
        if not form:
            raise collector.error(f"expected a, f or t, or `{trace.HEADER} {trace.VERSION}` first, found {words[0]!r}")
        if len(words) - 1 not in counts or not all(w.isascii() and w.isdigit() for w in words[1:]):
            raise collector.error(f"expected `{form}`, numbers in decimal, found {line.strip()!r}")
        if words[0] == "a":
            collector.allocate(words[1], int(words[2]), words[3] if len(words) > 3 else "0")
        elif words[0] == "f":
            collector.free(words[1])
        else:
            collector.trim(words[1], int(words[2]))


def _events(read: trace.Trace, collector: _Collector) -> None:
    for event in read.events:
        collector.line = event.line
        if event.word == "alloc":
            collector.allocate(event.name, event.bytes, event.heap)
        elif event.word == "free":
            collector.free(event.name)
        elif event.word == "trim":
            collector.trim(event.name, event.bytes)
        else:
            raise collector.error(f"expected alloc, trim or free, found {event.word!r}: a code heap knows blocks alone")


def parse(text: str, source: str, name: str) -> HeapTrace:
    """Either format. Raises ManifestError."""
    collector = _Collector(source)
    lines = text.splitlines(True)
    if lines and lines[0].startswith(trace.HEADER):
        _events(trace.parse(lines, source), collector)
    else:
        _calls(lines, collector)
    return collector.result(name)


def read(path: Path) -> HeapTrace:
    """A file, compressed or not; its name without the endings is the trace's. Raises ManifestError."""
    opener: Callable[..., Iterator[str]] = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix, open)  # type: ignore
    try:
        with opener(path, "rt", encoding="ascii", errors="strict") as file:  # type: ignore[attr-defined]
            text = "".join(file)
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise ManifestError(f"{path}: cannot be read: {error}; give the path of a trace") from error
    except UnicodeDecodeError as error:
        raise ManifestError(f"{path}: expected ASCII text, found byte {error.object[error.start]:#x}") from error
    return parse(text, str(path), path.name.split(".", 1)[0])


def recorded(root: Path) -> dict[str, Path]:
    """The traces of the project, by name, in order."""
    paths = [path for folder in RECORDED for path in (root / folder).glob(f"*{SUFFIX}")]
    return {
        path.name.removesuffix(SUFFIX): path for path in sorted(paths, key=lambda path: path.name.removesuffix(SUFFIX))
    }


def choose(root: Path, wanted: Iterable[str]) -> list[HeapTrace]:
    """Traces by name or path; all of the project where none is wanted. Raises ManifestError."""
    known = recorded(root)
    found: dict[str, HeapTrace] = {}
    for text in dict.fromkeys(wanted) or known:
        if text not in known and not Path(text).is_file():
            raise ManifestError(f"--trace {text}: expected a file, or one of {', '.join(known)}")
        got = read(known.get(text, Path(text)))
        if got.name in found:
            raise ManifestError(f"--trace {text}: expected traces of different names, found {got.name!r} twice")
        found[got.name] = got
    return list(found.values())
