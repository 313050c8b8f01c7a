"""Traces and replays that the tests of `tables hotspot-code-cache` share."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from execmem_cts import manifest, tools
from execmem_cts.cli import hotspot
from execmem_cts.model import Port
from execmem_cts.tables import hotspot_replay, hotspot_trace
from execmem_cts.tables.hotspot_replay import Config, Replay
from execmem_cts.tables.hotspot_trace import HeapTrace

ROOT = Path(__file__).resolve().parents[2]
PORTS = manifest.discover_ports(ROOT)


def built(port: Port) -> Path:
    return hotspot_replay.build(ROOT, tools.find(), port, 2)


def native_program() -> Path:
    try:
        return hotspot.native_program(PORTS, built)
    except tools.ToolError as error:
        pytest.skip(str(error))


def trace(text: str) -> HeapTrace:
    return hotspot_trace.parse(text, "t", "t")


def calls(*words: str) -> HeapTrace:
    """Calls by their words: "a 100" numbers blocks itself."""
    lines, count = [], 0
    for word in words:
        if word.startswith("a "):
            lines.append(f"a {count} {word[2:]}\n")
            count += 1
        else:
            lines.append(f"{word}\n")
    return trace("".join(lines))


def at_random(seed: int, events: int, heaps: int = 1) -> HeapTrace:
    """Allocations and frees, of sizes that are often equal, with a few cuts."""
    numbers = random.Random(seed)
    live: dict[int, int] = {}
    lines: list[str] = []
    count = 0
    for _ in range(events):
        kind = numbers.random()
        if kind < 0.55 or not live:
            live[count] = numbers.choice([100, 180, numbers.randint(1, 400), numbers.randint(1, 30000)])
            lines.append(f"a {count} {live[count]} {numbers.randrange(heaps)}\n")
            count += 1
        elif kind < 0.97:
            block = numbers.choice(list(live))
            del live[block]
            lines.append(f"f {block}\n")
        else:
            block = max(live, key=lambda b: live[b])  # HotSpot cuts by a minimum at least
            live[block] = max(1, live[block] // 3)
            lines.append(f"t {block} {live[block]}\n")
    return trace("".join(lines))


def one(program: Path, of: HeapTrace, config: Config) -> Replay:
    got = hotspot_replay.run([str(program)], of, [config])[0]
    assert hotspot_replay.faults(of, got) == []
    return got
