"""The table of LLVM's D82031: pages given back by block size and share freed at random, from libexecmem's own release.

The program is ref/scudo/scatter.c. Of each cell it is asked that the pages are those of a naive count over the same
pattern, and that their share is near the closed form: a page goes if every block that touches it is free, so the
expected share is the mean over the pages of freed ** blocks.
"""

from __future__ import annotations

import csv
import json
import math
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from ..source import ManifestError
from ..tools import ToolError
from . import replay

SOURCE = Path("ref/scudo/scudo-d82031.csv")
CLASSES = (32, 48, 64, 80, 96, 112, 144, 176, 192, 224, 288)  # Scudo's, in 2020, up to what the table needs
HEADER = 16
PERCENTS = tuple(range(85, 100))
SYSTEM_PAGE = 4096
FULL = 4_000_000  # blocks from which on the published integers are asked for
EQUAL = 190  # of the 210
ERRORS = 4  # standard errors


@dataclass(frozen=True)
class Cell:
    page: int
    user: int
    block: int
    percent: int
    pages: int
    naive: int
    released: int
    resident: int | None
    forced: str
    forced_pages: int
    micros: float
    expected: float  # of 1
    error: float  # standard error of the share
    published: int | None

    @property
    def share(self) -> float:
        return self.released / self.pages

    @property
    def whole(self) -> int:
        return 100 * self.released // self.pages

    def faults(self) -> list[str]:
        """What is wrong with it."""
        found = []
        if self.released != self.naive:
            found.append(f"{self.released} pages released, a naive count says {self.naive}")
        if self.resident is not None and self.resident != self.released:
            found.append(f"{self.released} pages released, the system says {self.resident}")
        if self.forced == "go" and self.forced_pages != self.naive:
            found.append(f"{self.forced_pages} pages released by force, a naive count says {self.naive}")
        # Pages are whole: where less than one is expected, one may go.
        if abs(self.share - self.expected) > ERRORS * self.error + 1 / self.pages:
            found.append(f"{self.share:.5f} released, expected {self.expected:.5f}, standard error {self.error:.6f}")
        return [f"pages of {self.page}, {self.user} bytes, {self.percent} % freed: {text}" for text in found]


def block_of(user: int) -> int:
    """The block that Scudo uses for so many bytes."""
    return next(size for size in CLASSES if size >= user + HEADER)


def closed_form(page: int, block: int, percent: int, pages: int) -> tuple[float, float]:
    """The expected share of `pages` pages that are wholly free, and its standard error.

    Pages that follow one another share a block where one lies across their bound, so that they are not independent.
    """
    free = percent / 100
    period = block // math.gcd(block, page)
    touched = [((i + 1) * page - 1) // block - i * page // block + 1 for i in range(period)]
    shared = [int((i + 1) * page % block != 0) for i in range(period)]
    mean = sum(free**n for n in touched) / period
    variance = sum(free**n * (1 - free**n) for n in touched) / period
    after = [*touched[1:], touched[0]]
    covariance = sum(free ** (a + b - s) - free ** (a + b) for a, b, s in zip(touched, after, shared)) / period
    return mean, math.sqrt((variance + 2 * covariance) / pages)


def published(root: Path) -> dict[tuple[int, int], int]:
    """By user size and percentage freed, the percentage released."""
    lines = [line for line in (root / SOURCE).read_text().splitlines() if not line.startswith("#")]
    rows = csv.DictReader(lines)
    return {(int(r["user_size_bytes"]), int(r["freed_percent"])): int(r["released_percent"]) for r in rows}


def build(root: Path) -> Path:
    return replay.build(root, root / "build" / "tables-scudo", "scudo", "the program of this table")


def _row(program: Path, page: int, user: int, blocks: int, threads: int, seed: int) -> list[dict[str, Any]]:
    # Two sizes may have one block: each row has a pattern of its own.
    argv = [program, block_of(user), page, blocks, threads, seed * 1000 + user, *PERCENTS]
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ToolError(f"{' '.join(map(str, argv))}: exit status {done.returncode}\n{done.stderr}".rstrip())
    return [json.loads(line) for line in done.stdout.splitlines()]


def measure(
    program: Path,
    known: dict[tuple[int, int], int],
    pages: Sequence[int],
    blocks: int,
    threads: int,
    seed: int,
    tell: Callable[[int, int], None] = lambda done, total: None,
) -> list[Cell]:
    """Every cell, for every page size."""
    users = list(dict.fromkeys(user for user, _ in known))
    if blocks * block_of(min(users)) < 16 * max(pages):
        raise ManifestError(f"--blocks: expected more, {blocks} of {block_of(min(users))} bytes fill few pages")
    cells = []
    total, done = len(pages) * len(users), 0
    tell(done, total)
    for page in pages:
        for user in users:
            for got in _row(program, page, user, blocks, threads, seed):
                expected, error = closed_form(page, block_of(user), got["percent"], got["pages"])
                figures = {name: value for name, value in got.items() if name != "freed"}
                say = known.get((user, got["percent"])) if page == SYSTEM_PAGE else None
                about: dict[str, Any] = {"page": page, "user": user, "block": block_of(user), "published": say}
                cells.append(Cell(**figures, **about, expected=expected, error=error))
            done += 1
            tell(done, total)
    return cells


def faults(cells: Sequence[Cell], blocks: int) -> list[str]:
    """What does not hold."""
    found = [text for cell in cells for text in cell.faults()]
    beside = [cell for cell in cells if cell.published is not None]
    if beside and blocks >= FULL:
        apart = [cell for cell in beside if cell.whole != cell.published]
        if len(beside) - len(apart) < EQUAL:
            found.append(f"expected at least {EQUAL} published integers, found {len(beside) - len(apart)}")
        for cell in apart:
            if abs(cell.whole - (cell.published or 0)) > 1:
                found.append(
                    f"{cell.user} bytes, {cell.percent} % freed: {cell.whole} % released, {cell.published} % published"
                )
    return found


def _table(cells: Iterable[Cell], page: int) -> Table:
    title = f"Pages of {page}: percent released" + (", and published where that differs" if page == SYSTEM_PAGE else "")
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1))
    table.add_column("bytes", justify="right")
    table.add_column("block", justify="right")
    for percent in PERCENTS:
        table.add_column(f"{percent}", justify="right")
    rows: dict[tuple[int, int], list[str]] = {}
    for cell in cells:
        if cell.page != page:
            continue
        text = str(cell.whole)
        if cell.published is not None and cell.published != cell.whole:
            text += f"/{cell.published}"
        rows.setdefault((cell.user, cell.block), []).append(text + ("" if cell.forced == "go" else "-"))
    for (user, block), texts in rows.items():
        table.add_row(str(user), str(block), *texts)
    return table


def summary(cells: Sequence[Cell], blocks: int, threads: int, seed: int) -> list[str]:
    beside = [cell for cell in cells if cell.published is not None]
    equal = sum(cell.whole == cell.published for cell in beside)
    worst = max(abs(cell.share - cell.expected) - 1 / cell.pages for cell in cells)
    lines = [
        f"{blocks} blocks, {threads} threads, seed {seed}; libexecmem's policy `exact`, on private memory.",
        f"{sum(cell.released == cell.naive for cell in cells)} of {len(cells)} cells release exactly the pages of a "
        f"naive count; largest distance from the closed form {max(worst, 0) * 100:.3f} points.",
    ]
    measured = [cell for cell in cells if cell.resident is not None]
    if measured:
        same = sum(cell.resident == cell.released for cell in measured)
        lines.append(f"{same} of {len(measured)} cells measured by mincore: the system lost exactly those pages.")
    if beside:
        asked = "" if blocks >= FULL else f"; not asked for below {FULL} blocks"
        lines.append(f"{equal} of {len(beside)} published integers are equal{asked}.")
    gate = sum(cell.forced != "go" for cell in cells)
    lines.append(
        f"`-`: a forced release by policy `scudo` stops there, since too little is free or was freed ({gate} cells)."
    )
    return lines


def show(cells: Sequence[Cell], notes: Sequence[str], console: Console) -> None:
    for page in dict.fromkeys(cell.page for cell in cells):
        console.print(_table(cells, page))
    for line in notes:
        console.print(line)


def json_text(cells: Sequence[Cell], notes: Sequence[str], wrong: Sequence[str]) -> str:
    data = {
        "schema": 1,
        "source": "LLVM D82031",
        "cells": [asdict(cell) for cell in cells],
        "notes": list(notes),
        "wrong": list(wrong),
    }
    return json.dumps(data, indent=1) + "\n"
