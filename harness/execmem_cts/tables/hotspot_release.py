"""What page release does to a replayed trace: memory that stays resident, and processor time, on 64 and on 32 bits.

The question was asked in the review of LLVM's D82031 and not answered there. Each configuration is a process of its own:
its time is that of the whole replay, in which every byte of code is written; memory is what the file of the code holds,
sampled.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from pathlib import Path
from statistics import median
from typing import Any

from .. import native
from ..model import Port
from ..tools import ToolError, emulator_package
from . import hotspot_replay
from .hotspot_replay import Config, Replay
from .hotspot_trace import HeapTrace

# Policy `scudo` takes the heap's smallest block for the block of its decisions: 32 bytes are small, 256 are not.
CONFIGS = tuple(
    Config(segment=segment, minimum=minimum, write=2, release=release)
    for segment, minimum in ((32, 1), (64, 4))
    for release in ("", "exact", "scudo")
)
MIB = 1 << 20


@dataclass(frozen=True)
class Runner:
    """A program, and what runs it."""

    port: str
    bits: int
    emulated: bool
    argv: tuple[str, ...]

    @property
    def text(self) -> str:
        return f"{self.port}, {self.bits} bits, {'emulated' if self.emulated else 'native'}"


@dataclass(frozen=True)
class Line:
    """One configuration on one trace by one runner."""

    trace: str
    runner: Runner
    config: Config
    mean: float  # MiB resident over the replay
    most: float
    last: float
    cpu: float  # seconds, the median
    cpu_range: tuple[float, float]
    attempts: int
    skipped: int
    ranges: int
    released: float  # MiB, over the whole replay


def runners(ports: dict[str, Port], build: Callable[[Port], Path]) -> list[Runner]:
    """The ports that this machine runs itself with 64 bits; the same, and those of 32 bits, under the emulator. Raises
    ToolError where there is none of the first, or an emulator is missing."""
    found: list[Runner] = []
    for port in ports.values():
        if port.pointer_bytes == 8:
            program = build(port)
            if not native.runs(program):
                found.append(Runner(port.name, 64, False, (str(program),)))
                found.append(_emulated(port, program))
    if not found:
        raise ToolError("this machine runs no port with 64 bits by itself: there is nothing to compare with")
    return found + [_emulated(port, build(port)) for port in ports.values() if port.pointer_bytes == 4]


def _emulated(port: Port, program: Path) -> Runner:
    emulator = port.emulator_argv[0]
    if not shutil.which(emulator):
        raise ToolError(f"{emulator} is missing (Debian: {emulator_package(emulator)}): run toolchains/setup")
    return Runner(port.name, 8 * port.pointer_bytes, True, (*port.emulator_argv, str(program)))


def _line(trace: HeapTrace, runner: Runner, config: Config, got: Sequence[Replay]) -> Line:
    first, times = got[0], [sum(replay.cpu) for replay in got]
    return Line(
        trace.name,
        runner,
        config,
        first["resident_sum"] / first["resident_samples"] / MIB,
        first["resident_most"] / MIB,
        first["resident_last"] / MIB,
        median(times),
        (min(times), max(times)),
        first["release_attempts"],
        first["release_skipped"],
        first["release_ranges"],
        first["release_bytes"] / MIB,
    )


def measure(
    traces: Sequence[HeapTrace], found: Sequence[Runner], rounds: int, jobs: int, say: Callable[[str, int, int], None]
) -> tuple[list[Line], list[str]]:
    """Every line, and what must not be: figures of memory that two rounds, or two runners of one page size, do not have
    in common. Rounds take turns, so that a slow moment of the machine meets all configurations."""
    tasks = [(trace, runner, config) for trace in traces for runner in found for config in CONFIGS]
    turns = [task for _ in range(rounds) for task in tasks]
    got: dict[tuple[str, Runner, Config], list[Replay]] = {}
    bad: list[str] = []
    with ThreadPoolExecutor(jobs) as pool:
        answers = pool.map(lambda task: hotspot_replay.run(task[1].argv, task[0], [task[2]])[0], turns)
        for done, (task, answer) in enumerate(zip(turns, answers), 1):
            trace, runner, config = task
            got.setdefault((trace.name, runner, config), []).append(answer)
            bad += [f"{runner.text}: {text}" for text in hotspot_replay.faults(trace, answer)]
            say(f"{trace.name}: {runner.text}", done, len(turns))
    lines = [_line(trace, runner, config, got[trace.name, runner, config]) for trace, runner, config in tasks]
    for (name, runner, config), replays in got.items():
        figures = {
            tuple(replay[key] for key in ("resident_sum", "resident_last", "release_bytes")) for replay in replays
        }
        if len(figures) > 1:
            bad.append(f"{name}, {runner.text}, {config.argument}: rounds do not agree: {sorted(figures)}")
    return lines, bad


def before(line: Line, lines: Sequence[Line]) -> Line:
    """The same without release."""
    kept = replace(line.config, release="")
    return next(l for l in lines if (l.trace, l.runner, l.config) == (line.trace, line.runner, kept))


def flat(line: Line) -> dict[str, Any]:
    """A row for other programs."""
    about = {
        "part": "release",
        "trace": line.trace,
        "runner": line.runner.text,
        "release": line.config.release or "none",
    }
    shape = {"segment": line.config.segment, "minimum": line.config.minimum}
    figures = {f.name: getattr(line, f.name) for f in fields(line) if f.name not in ("trace", "runner", "config")}
    return {**about, **shape, **figures}
