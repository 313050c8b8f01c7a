"""execmem-cts tables hotspot-code-cache --part release: resident memory, with 32 and 64 bits."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from execmem_cts.tables import hotspot_release
from execmem_cts.tables.hotspot_replay import Config
from execmem_cts.tools import ToolError

from hotspot_cases import PORTS, at_random, built, calls, native_program, one

PAGE = 4096


@pytest.fixture(scope="session")
def program() -> Path:
    return native_program()


def pages(count: int) -> list[str]:
    return [f"a {PAGE}"] * count


def test_release_counted_by_hand(program: Path) -> None:
    """A hundred pages, every second one freed."""
    of = calls(*pages(100), *(f"f {block}" for block in range(0, 100, 2)))
    for release, every, left, back in (
        ("", 1, 100, 0),
        ("exact", 1, 50, 50),
        ("exact", 20, 60, 40),
        ("scudo", 1, 100, 0),  # blocks of 32 bytes are small, and half of the memory is too little
        ("forced", 1, 100, 0),
    ):
        got = one(program, of, Config(write=2, release=release, every=every))
        assert got["resident_last"] == left * PAGE, release
        assert got["resident_samples"] == 4  # after events 1, 65 and 129, and at the end
        freed = 29 // every * every if back else 0  # at event 129
        assert got["resident_sum"] == (1 + 65 + (100 - freed) + left) * PAGE
        assert got["resident_most"] == max(65, 100 - freed, left) * PAGE
        assert got["release_bytes"] == back * PAGE
        assert got["release_attempts"] == (len(range(every, 51, every)) if release else 0)
    # Blocks of 256 bytes are not small: each page that is free goes at once.
    got = one(program, of, Config(segment=64, minimum=4, write=2, release="scudo", every=1))
    assert (got["resident_last"], got["release_skipped"]) == (50 * PAGE, 0)


def test_memory_does_not_depend_on_who_runs_it() -> None:
    """32 bits, and the emulator: the same pages. What is missing is said by its name."""
    of = at_random(2, 600)
    found = hotspot_release.runners(PORTS, built)
    assert {runner.bits for runner in found} == {32, 64} and {runner.emulated for runner in found} == {True, False}
    lines, bad = hotspot_release.measure([of], found, 1, 2, lambda *_: None)
    assert bad == [] and len(lines) == len(found) * len(hotspot_release.CONFIGS)
    for config in hotspot_release.CONFIGS:
        mine = [line for line in lines if line.config == config]
        assert len({(line.mean, line.most, line.last, line.released, line.attempts) for line in mine}) == 1
        assert all(line.cpu > 0 and hotspot_release.before(line, lines).config.release == "" for line in mine)
    some = next(line for line in lines if line.config.release == "exact")
    assert some.released > 0 and some.last < hotspot_release.before(some, lines).last


def test_a_missing_emulator_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(ToolError, match=r"qemu-\S+ is missing \(Debian: qemu-user\)"):
        hotspot_release.runners(PORTS, lambda port: Path("/bin/true"))
