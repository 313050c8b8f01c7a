"""execmem-cts tables scudo-release: the table of D82031."""

from __future__ import annotations

import json
import platform
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from execmem_cts.tables import scudo

ROOT = Path(__file__).resolve().parents[2]
COMMAND = ROOT / "harness" / "execmem-cts"

native = pytest.mark.skipif(platform.machine() != "x86_64", reason="the replayer runs natively, on x86-64")


def test_the_closed_form_is_a_count_of_every_pattern() -> None:
    """Exactly, on regions so small that every set of free blocks can be tried."""
    for page, block, pages in ((8, 4, 3), (8, 3, 3), (8, 6, 3), (16, 12, 3)):  # each ends where a block does
        blocks = pages * page // block
        free, mean, square = 0.9, 0.0, 0.0
        for pattern in range(1 << blocks):
            chance = free ** pattern.bit_count() * (1 - free) ** (blocks - pattern.bit_count())
            touching = [range(i * page // block, ((i + 1) * page - 1) // block + 1) for i in range(pages)]
            count = sum(all(pattern >> b & 1 for b in t) for t in touching)
            mean += chance * count
            square += chance * count * count
        expected, error = scudo.closed_form(page, block, 90, pages)
        assert expected == pytest.approx(mean / pages)
        assert error == pytest.approx((square - mean * mean) ** 0.5 / pages)


def test_the_published_table_is_the_closed_form() -> None:
    known = scudo.published(ROOT)
    assert len(known) == 210
    floors = {cell: int(100 * scudo.closed_form(4096, scudo.block_of(cell[0]), cell[1], 1)[0]) for cell in known}
    assert sum(floors[cell] == known[cell] for cell in known) == 197
    assert max(abs(floors[cell] - known[cell]) for cell in known) == 1


@native
def test_the_library_releases_what_a_naive_count_says(tmp_path: Path) -> None:
    command = [str(COMMAND), "tables", "scudo-release", "--blocks", "60000", "--seed", "7", "--json"]
    command += ["--page", "4096", "--page", "16384"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert len(data["cells"]) == 2 * 210 and data["wrong"] == []
    assert all(cell["released"] == cell["naive"] for cell in data["cells"])
    assert all((cell["resident"] == cell["naive"]) == (cell["page"] == 4096) for cell in data["cells"] if cell["naive"])
    assert sum(cell["forced"] == "go" for cell in data["cells"]) > 100
    assert sum(cell["naive"] > 0 for cell in data["cells"]) > 200


def test_a_cell_that_is_not_right_is_told() -> None:
    known = scudo.published(ROOT)
    expected, error = scudo.closed_form(4096, 32, 99, 32768)
    count = round(expected * 32768)
    cell = scudo.Cell(4096, 16, 32, 99, 32768, count, count, count, "go", count, 1.0, expected, error, known[16, 99])
    assert scudo.faults([cell], 1000) == []
    far = round((expected + 4.5 * error) * 32768)
    for wrong, said in (
        (replace(cell, released=count + 1), "a naive count says"),
        (replace(cell, resident=count - 1), "the system says"),
        (replace(cell, forced_pages=count - 1), "released by force"),
        (replace(cell, naive=far, released=far, resident=far, forced_pages=far), "standard error"),
    ):
        assert any(said in text for text in scudo.faults([wrong], 1000))
    assert any("published integers" in text for text in scudo.faults([cell], scudo.FULL))
    assert (
        any("26 % published" in text for text in scudo.faults([replace(cell, published=26 + 3)], scudo.FULL)) is False
    )
    assert any("% published" in text for text in scudo.faults([replace(cell, published=90)], scudo.FULL))


@native
def test_too_few_blocks_are_a_usage_error() -> None:
    done = subprocess.run([str(COMMAND), "tables", "scudo-release", "--blocks", "10"], capture_output=True, text=True)
    assert done.returncode == 2 and "--blocks: expected more" in done.stderr
