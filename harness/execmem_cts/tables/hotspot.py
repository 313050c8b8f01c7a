"""The table of JDK-8029799: figures of a code heap by segment, minimum and policy, on HotSpot's own traces.

Each trace is replayed on libexecmem and on a model of HotSpot's list (ref/replay/hotspot). The model is held against what
HotSpot itself printed in the runs that were recorded; both against a count of the trace (hotspot_replay.faults).
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from . import hotspot_replay
from .hotspot_replay import Config, Replay
from .hotspot_trace import HeapTrace

PUBLISHED = Path("ref/replay/hotspot/jdk-8029799.csv")
OWN = Path("ref/replay/hotspot/own-figures.csv")
SHAPES = ((64, 4), (128, 4), (128, 6))  # segment and minimum: those of the source, and HotSpot's of today
FINE = ((64, 1), (32, 1), (16, 1))  # what a heap without headers and without a segment map can afford
PERCENTS = tuple(range(0, 101, 5))
WINDOW = 65536
NEAR_SEGMENT = 64

BLOCKS_APART, KB_APART = 2, 7  # the model from HotSpot: free blocks; largest used
FREE_KB_APART = 12  # HotSpot rounds each heap, and prints while threads still run
FOOTPRINT, KEPT, FEWER, MORE = 1.0, 0.4, 4.0, 1.25  # the goals


@dataclass(frozen=True)
class Own:
    """What HotSpot printed at the end of a recorded run."""

    free_blocks: int
    free_kb: int
    max_used_kb: int


@dataclass(frozen=True)
class Goal:
    """One line of what is wanted, on one trace. `measured` <= `bound`, or >= where `least`."""

    what: str
    trace: str
    measured: float
    bound: float
    least: bool = False
    note: str = ""

    @property
    def met(self) -> bool:
        return self.measured >= self.bound if self.least else self.measured <= self.bound


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def own_figures(root: Path) -> dict[str, Own]:
    """By trace."""
    return {
        row["trace"]: Own(int(row["free_blocks"]), int(row["free_kb"]), int(row["max_used_kb"]))
        for row in _rows(root / OWN)
    }


def published(root: Path) -> dict[tuple[str, int, int], dict[str, float]]:
    """Medians over the runs that were published, by workload, segment and minimum."""
    groups: dict[tuple[str, int, int], list[dict[str, str]]] = {}
    for row in _rows(root / PUBLISHED):
        key = row["workload"], int(row["segment_bytes"]), int(row["min_block_segments"])
        groups.setdefault(key, []).append(row)
    return {
        key: {name: median(float(row[name]) for row in rows) for name in list(rows[0])[3:]}
        for key, rows in groups.items()
    }


# ---- What is replayed ----


def figure_configs() -> list[Config]:
    """The table of a trace, in its order."""
    model = [Config(True, policy, *shape) for policy in ("best", "first") for shape in SHAPES]
    return model + [Config(False, policy, *shape) for policy in ("best", "first", "near") for shape in SHAPES + FINE]


def near_configs(percents: Sequence[int] = PERCENTS) -> list[Config]:
    """The frontier of mappings against footprint; `best` first, in the trace's own heaps and then in one."""
    best = Config(policy="best", segment=NEAR_SEGMENT, write=1)
    near = replace(best, policy="near")
    heaps = [best, replace(best, together=True)]
    return heaps + [replace(near, percent=p, together=together) for together in (False, True) for p in percents]


Replays = dict[str, dict[Config, Replay]]  # by trace


def replay_all(
    program: Path,
    traces: Sequence[HeapTrace],
    configs: Sequence[Config],
    jobs: int,
    say: Callable[[str, int, int], None],
) -> Replays:
    """Every trace by every configuration. `say` is told what is done, and how much of how much."""
    found: Replays = {}
    with ThreadPoolExecutor(jobs) as pool:  # the replays are processes
        answers = pool.map(lambda trace: hotspot_replay.run([str(program)], trace, configs), traces)
        for done, (trace, got) in enumerate(zip(traces, answers), 1):
            found[trace.name] = dict(zip(configs, got))
            say(trace.name, done, len(traces))
    return found


def wrong(traces: Sequence[HeapTrace], replays: Replays, own: dict[str, Own]) -> list[str]:
    """What must not be: a replay that does not agree with its trace, a model that does not agree with HotSpot."""
    found = [
        text for trace in traces for got in replays[trace.name].values() for text in hotspot_replay.faults(trace, got)
    ]
    for trace in traces:
        shape = recorded_shape(trace.name)
        model = replays[trace.name].get(Config(True, "best", *shape)) if shape else None
        if trace.name in own and model:
            found += [f"{trace.name}: {text}" for text in apart(model, own[trace.name])]
    return found


def recorded_shape(name: str) -> tuple[int, int] | None:
    """Segment and minimum with which a trace of the project was recorded: javac-128x6-24m."""
    words = name.split("-")
    segment, x, minimum = words[1].partition("x") if len(words) > 1 else ("", "", "")
    return (int(segment), int(minimum)) if x and segment.isdigit() and minimum.isdigit() else None


def apart(model: Replay, own: Own) -> list[str]:
    """Where the model is not what HotSpot printed."""
    found = []
    for name, mine, printed, bound in (
        ("free blocks", model["free_blocks"], own.free_blocks, BLOCKS_APART),
        ("free KiB", model["free_bytes"] / 1024, own.free_kb, FREE_KB_APART),
        ("largest used KiB", model["largest_used_bytes"] / 1024, own.max_used_kb, KB_APART),
    ):
        if abs(mine - printed) > bound:
            found.append(f"{name}: the model has {mine:.0f}, HotSpot printed {printed}; at most {bound} apart expected")
    return found


# ---- Goals ----


def better_model(replays: dict[Config, Replay]) -> Replay:
    """HotSpot's configuration that takes less memory: best fit at 64 x 4 or 128 x 6."""
    return min((replays[Config(True, "best", *shape)] for shape in (SHAPES[0], SHAPES[2])), key=_footprint)


def _footprint(got: Replay) -> int:
    return got["footprint_bytes"]


def kept(got: Replay) -> int:
    """Bytes that are neither code nor free: unused in blocks, and bookkeeping (the model's is its segment map)."""
    return got["unused_bytes"] + got["metadata_bytes"]


def figure_goals(trace: HeapTrace, replays: dict[Config, Replay]) -> list[Goal]:
    """Footprint and bookkeeping, for each fine segment."""
    better, coarse = better_model(replays), replays[Config(True, "best", *SHAPES[2])]
    goals = []
    for segment, minimum in FINE:
        got = replays[Config(False, "best", segment, minimum)]
        name = f"best {segment} x {minimum}"
        footprint = got["footprint_bytes"] / better["footprint_bytes"]
        goals.append(Goal(f"{name}: footprint / HotSpot's better one", trace.name, footprint, FOOTPRINT))
        share = kept(got) / kept(coarse)
        goals.append(Goal(f"{name}: (unused + metadata) / (unused + map) at 128 x 6", trace.name, share, KEPT))
    return goals


@dataclass(frozen=True)
class Point:
    """One point of the frontier, beside `best` with three cached views in the trace's own heaps."""

    config: Config
    misses: int
    footprint: int
    fewer: float  # times
    more: float  # times

    @property
    def good(self) -> bool:
        return self.fewer >= FEWER and self.more <= MORE


def frontier(replays: dict[Config, Replay]) -> list[Point]:
    """Every point of `near`, in the order of near_configs."""
    base = next(got for config, got in replays.items() if config.policy == "best" and not config.together)
    return [
        Point(
            config,
            got["misses"],
            got["footprint_bytes"],
            base["misses"] / got["misses"],
            got["footprint_bytes"] / base["footprint_bytes"],
        )
        for config, got in replays.items()
        if config.policy == "near"
    ]


def dominated(point: Point, points: Sequence[Point]) -> bool:
    """Whether another one has fewer misses for no more memory, or less memory for no more misses."""
    return any(
        other.misses <= point.misses
        and other.footprint <= point.footprint
        and (other.misses, other.footprint) != (point.misses, point.footprint)
        for other in points
    )


def near_goals(trace: HeapTrace, replays: dict[Config, Replay]) -> list[Goal]:
    """The most that `near` saves within the memory allowed, on a trace of default size."""
    if not trace.default_size:
        return []
    allowed = [point for point in frontier(replays) if point.more <= MORE]
    if not allowed:
        return [Goal("near: fewer mappings, times", trace.name, 0, FEWER, True, f"no point takes {MORE} times or less")]
    point = max(allowed, key=lambda point: point.fewer)
    base = point.fewer * point.misses
    floor = -(-trace.asked_most // WINDOW)
    note = (
        f"{base:.0f} to {point.misses} with {point.config.percent} %{', one heap' if point.config.together else ''}, "
        f"{point.more:.3f} times the footprint"
    )
    if point.fewer < FEWER:
        note += (
            f"; {base / FEWER:.0f} are wanted, and {floor} windows of code are live at once, each mapped at least once"
        )
    return [Goal("near: fewer mappings, times", trace.name, point.fewer, FEWER, True, note)]


# ---- For other programs ----

FIGURES = (
    "free_blocks free_blocks_most free_bytes unused_bytes segment_map_bytes used_bytes largest_used_bytes wasted_bytes "
    "overhead_per_myriad live_blocks footprint_bytes metadata_bytes metadata_mapped regions allocations frees misses "
    "searches search_steps most_steps"
).split()


def flat(replays: Replays, part: str) -> list[dict[str, Any]]:
    """A row a replay."""
    rows = []
    for trace, by_config in replays.items():
        for config, got in by_config.items():
            about: dict[str, Any] = {"part": part, "trace": trace, "heap": "hotspot" if config.model else "libexecmem"}
            shape: dict[str, Any] = {"policy": config.policy, "segment": config.segment, "minimum": config.minimum}
            how: dict[str, Any] = {"percent": config.percent, "views": config.views, "together": config.together}
            rows.append({**about, **shape, **how, **{name: got[name] for name in FIGURES}})
    return rows


def json_text(
    rows: list[dict[str, Any]], goals: Sequence[Goal], sizes: dict[str, Any], notes: Sequence[str], bad: Sequence[str]
) -> str:
    told = [{**goal.__dict__, "met": goal.met} for goal in goals]
    data = {"schema": 1, "source": "JDK-8029799", "rows": rows, "goals": told, "sizes": sizes}
    return json.dumps({**data, "notes": list(notes), "wrong": list(bad)}, indent=1) + "\n"
