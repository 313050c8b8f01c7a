"""Builds the program of ref/replay/hotspot for a port, as conformance programs are built, and runs traces through it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..build import COMPILE, LINK, Builder, locked
from ..model import Port
from ..tools import ToolError, Tools
from .hotspot_trace import HeapTrace

SOURCES = ("ref/*.c", "ref/replay/hotspot/*.c", "arch/*.c")
INCLUDES = ("arch", "asm", "ref/include")
FREES = 62  # between two releases: a transfer batch of Scudo
STEP, SIZES_LAST = 16, 65536  # of the program's histogram


@dataclass(frozen=True, order=True)
class Config:
    """What replay.c takes. `model`: HotSpot's list in place of the library."""

    model: bool = False
    policy: str = "best"
    segment: int = 32
    minimum: int = 1
    percent: int = 50
    views: int = 3
    together: bool = False
    write: int = 0  # 1: views are counted; 2: and written
    release: str = ""
    every: int = FREES

    @property
    def argument(self) -> str:
        words = [f"list={int(self.model)}", f"policy={self.policy}", f"segment={self.segment}"]
        words += [f"minimum={self.minimum}", f"percent={self.percent}", f"views={self.views}"]
        words += [f"together={int(self.together)}", f"write={self.write}", f"every={self.every}"]
        return ",".join(words + ([f"release={self.release}"] if self.release else []))


@dataclass(frozen=True)
class Replay:
    """One answer. `cpu`: seconds of processor time of the whole process that gave it, in user and in kernel mode."""

    config: Config
    figures: dict[str, Any]
    cpu: tuple[float, float]

    def __getitem__(self, name: str) -> int:
        value: int = self.figures[name]
        return value

    @property
    def sizes(self) -> dict[int, int]:
        return {int(low): int(count) for low, count in self.figures["sizes"]}


def build(root: Path, tools: Tools, port: Port, jobs: int) -> Path:
    """The program, up to date. Raises ToolError."""
    directory = root / "build" / "tables-hotspot"
    own = os.path.relpath(port.directory, root)
    flags = [*COMPILE, *(part for folder in (*INCLUDES, own) for part in ("-I", folder)), *port.compile_flags]
    with locked(directory / port.name):
        builder = Builder(root, directory / port.name, tools, jobs)
        base = builder.relative(directory / port.name)
        sources = [path for pattern in (*SOURCES, f"{own}/*.c", f"{own}/*.S") for path in sorted(root.glob(pattern))]
        objects = []
        for source in sources:
            name = builder.relative(source).replace("/", "_")
            objects.append(builder.compile(port, source, f"{base}/{name}.o", flags))
        program = builder.edge("ld", f"{base}/replay", objects, [*LINK, *objects, "-o", f"{base}/replay"])
        errors = builder.ninja([program])
    if errors:
        raise ToolError(f"{port.name}: ref/replay/hotspot does not build:\n{next(iter(errors.values()))}".rstrip())
    return root / program


def run(argv: Sequence[str], trace: HeapTrace, configs: Sequence[Config]) -> list[Replay]:
    """Replays a trace by each configuration, in one process of `argv`, so that `cpu` is that of all of them together.
    Raises ToolError where the program fails."""
    command = [*argv, *(config.argument for config in configs)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdin and child.stdout and child.stderr
    try:
        child.stdin.write(trace.text)
        child.stdin.close()
    except BrokenPipeError:  # it ended before it had read all; its status says why
        pass
    output = child.stdout.read()
    said = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    child.stdout.close()
    child.stderr.close()
    if child.returncode != 0:
        how = f"exit status {child.returncode}" if child.returncode > 0 else f"signal {-child.returncode}"
        raise ToolError(f"{trace.name}: {' '.join(command)}: {how}: {said.strip() or 'without a word'}")
    lines = output.splitlines()
    if len(lines) != len(configs):
        raise ToolError(f"{trace.name}: {' '.join(command)}: answered {len(lines)} of {len(configs)} configurations")
    return [Replay(c, json.loads(line), (usage.ru_utime, usage.ru_stime)) for c, line in zip(configs, lines)]


def faults(trace: HeapTrace, got: Replay) -> list[str]:
    """What cannot be, given the trace alone: both heaps must agree with a count that knows neither."""
    counts = {
        "events": trace.text.count("\n"),
        "heaps": trace.heaps,
        "asked_most": trace.asked_most,
        "allocations": trace.allocations,
        "frees": trace.frees,
        "live_blocks": len(trace.sizes),
        "used_bytes": trace.asked_last + got["unused_bytes"],
        "free_bytes": got["footprint_bytes"] - got["used_bytes"],
        "segment_map_bytes": got["footprint_bytes"] // got.config.segment,
        "wasted_bytes": got["free_bytes"] + got["unused_bytes"] + got["segment_map_bytes"],
    }
    most = got["largest_used_bytes"]
    counts["overhead_per_myriad"] = (got["wasted_bytes"] * 10000 + most // 2) // most
    found = [f"{name}: {got[name]}, expected {value}" for name, value in counts.items() if got[name] != value]
    sizes: dict[int, int] = {}
    for size in trace.sizes:
        low = min(size // STEP * STEP, SIZES_LAST)
        sizes[low] = sizes.get(low, 0) + 1
    if got.sizes != sizes:
        found.append(f"sizes: {got.sizes}, expected {sizes}")
    if got["footprint_bytes"] < trace.asked_most:
        found.append(f"footprint_bytes: {got['footprint_bytes']}, less than the {trace.asked_most} that were live")
    return [f"{trace.name}, {got.config.argument}: {text}" for text in found]
