"""The matrix requirement x port x stub page size, or x page size for allocators: each cell is the worst of its results over variants, OS page sizes,
runners, checks and points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .model import ALLOC, Result
from .profile import Profile

# Worst first. What is due and was not shown comes before what passed beside it.
_ORDER = ("FAIL", "XPASS", "ERROR", "due EMU", "due NOTRUN", "due SKIP", "XFAIL", "PASS", "EMU", "NA", "NOTRUN", "SKIP")
_TEXT = {"PASS": "ok", "due EMU": "emu!", "due NOTRUN": "open", "due SKIP": "skip!", "EMU": "emu", "NA": "na"}
LEGEND = {
    "ok": "passed everywhere",
    "na": "not claimed",
    "emu": "this emulator cannot show it, and the profile does not require it",
    "emu!": "required, and this emulator cannot show it",
    "open": "required, and not run",
    "skip!": "required, and skipped by a filter",
    "skip": "skipped by a filter",
    "notrun": "not run",
    "fail": "failed",
    "error": "the suite or the emulator broke",
    "xfail": "failed as expected",
    "xpass": "passed against expectation",
}


def size_text(size: int) -> str:
    """16384 as 16K."""
    return f"{size // 1024}K" if size % 1024 == 0 else str(size)


@dataclass(frozen=True, order=True)
class Column:
    port: str
    size: int

    @property
    def page(self) -> str:
        return size_text(self.size)


def stub_page(result: Result) -> int:
    """The column of a result of a template family; 0 for another."""
    return result.stub_page


def page(result: Result) -> int:
    """The column of a result of an allocator family, the page size that it saw; 0 for another."""
    return result.os_page if result.variant == ALLOC and result.runner != "host" else 0


KINDS: tuple[tuple[str, Callable[[Result], int]], ...] = (("stub page", stub_page), ("page", page))


class Matrix:
    """Rows are requirement ids, columns are ports and sizes (stub pages, or pages for allocators), both sorted."""

    def __init__(self, results: Sequence[Result], profile: Profile, size: Callable[[Result], int] = stub_page) -> None:
        self.cells: dict[tuple[str, Column], str] = {}
        for result in results:
            if not size(result):  # of the port itself, or of another matrix
                continue
            column = Column(result.port, size(result))
            kind = result.verdict
            if kind in ("EMU", "SKIP", "NOTRUN") and profile.requires_result(result):
                kind = f"due {kind}"
            key = (result.requirement, column)
            held = self.cells.get(key)
            if held is None or _ORDER.index(kind) < _ORDER.index(held):
                self.cells[key] = kind
        self.rows = sorted({row for row, _ in self.cells})
        self.columns = sorted({column for _, column in self.cells})

    def kind(self, row: str, column: Column) -> str:
        """A verdict, "due EMU" and the like, or ""."""
        return self.cells.get((row, column), "")

    def text(self, row: str, column: Column) -> str:
        """A short word of LEGEND, or ""."""
        kind = self.kind(row, column)
        return _TEXT.get(kind, kind.lower())

    def legend(self) -> dict[str, str]:
        """The words that occur, and what they mean."""
        used = {self.text(row, column) for row in self.rows for column in self.columns}
        return {word: meaning for word, meaning in LEGEND.items() if word in used}
