"""One address space: what is mapped where, of which file, with which protection, and what it went through."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace

from .events import PROT_EXEC, PROT_WRITE
from .files import File
from .kinds import Place, Step

HISTORY = 6  # changes of protection kept of a page, the newest


@dataclass(eq=False)
class Mapping:
    """What one call mapped: one generation of its pages."""

    number: int
    origin: Step | None  # None: mapped by exec, before the first call was seen
    file: File | None
    shared: bool


@dataclass(eq=False)
class Piece:
    """Neighbouring pages of one mapping that have gone through the same."""

    start: int
    end: int
    mapping: Mapping
    offset: int  # in the file, of `start`
    protection: int
    written: bool  # was writable at this address, in this mapping
    history: tuple[Step, ...] = ()
    forked: bool = True  # a child gets it

    @property
    def writable(self) -> bool:
        return bool(self.protection & PROT_WRITE)

    @property
    def executable(self) -> bool:
        return bool(self.protection & PROT_EXEC)

    def cut(self, start: int, end: int) -> Piece:
        """The part of it within [start, end)."""
        low, high = max(start, self.start), min(end, self.end)
        return replace(self, start=low, end=high, offset=self.offset + low - self.start)

    def place(self) -> Place:
        name = self.mapping.file.label if self.mapping.file else ""
        return Place(self.start, self.end, self.mapping.origin, name, self.offset, self.history)


class Space:
    """Pieces that do not overlap, in order; and, by file, those that matter for its pages' other addresses."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._pieces: list[Piece] = []
        self._by_file: dict[File, dict[Piece, None]] = {}
        self.tasks: set[int] = set()  # threads that live in it
        self.read_implies_exec = False
        self.heap_start = self.heap_end = 0

    def __iter__(self) -> Iterator[Piece]:
        return iter(self._pieces)

    def _range(self, start: int, end: int) -> slice:
        """Indices of the pieces that meet [start, end)."""
        first = bisect_right(self._starts, start)
        if first and self._pieces[first - 1].end > start:
            first -= 1
        return slice(first, max(first, bisect_left(self._starts, end)))

    def within(self, start: int, end: int) -> list[Piece]:
        """The pieces that meet [start, end), whole."""
        return self._pieces[self._range(start, end)]

    def take(self, start: int, end: int) -> list[Piece]:
        """Removes [start, end) and returns it; what is left of pieces on its edge stays."""
        where = self._range(start, end)
        met = self._pieces[where]
        edges = [p.cut(p.start, start) for p in met[:1] if p.start < start]
        edges += [p.cut(end, p.end) for p in met[-1:] if p.end > end]
        self._pieces[where] = edges
        self._starts[where] = [p.start for p in edges]
        for piece in met:
            self._forget(piece)
        for piece in edges:
            self._index(piece)
        return [p.cut(start, end) for p in met]

    def put(self, piece: Piece) -> None:
        """Adds a piece where nothing is."""
        at = bisect_left(self._starts, piece.start)
        self._starts.insert(at, piece.start)
        self._pieces.insert(at, piece)
        self._index(piece)

    def of_file(self, file: File) -> list[Piece]:
        return list(self._by_file.get(file, ()))

    def _index(self, piece: Piece) -> None:
        if piece.mapping.file is not None:
            self._by_file.setdefault(piece.mapping.file, {})[piece] = None

    def _forget(self, piece: Piece) -> None:
        if piece.mapping.file is not None:
            self._by_file[piece.mapping.file].pop(piece, None)

    def copy(self) -> Space:
        """What a forked child gets: the same mappings, except those that are not to be forked."""
        made = Space()
        for piece in self._pieces:
            if piece.forked:
                made._pieces.append(replace(piece))
        made._starts = [p.start for p in made._pieces]
        for piece in made._pieces:
            made._index(piece)
        made.read_implies_exec = self.read_implies_exec
        made.heap_start, made.heap_end = self.heap_start, self.heap_end
        return made


def overlaps(a: Piece, b: Piece) -> tuple[int, int]:
    """The range of their file that both show; empty where the second number is not the greater one."""
    low = max(a.offset, b.offset)
    return low, min(a.offset + a.end - a.start, b.offset + b.end - b.start)
