"""How the table of the code heap is printed."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from . import hotspot, hotspot_release
from .hotspot import Goal, Own, Replays
from .hotspot_replay import Config, Replay
from .hotspot_trace import HeapTrace

KIB = 1024
BOUNDS = (0, 64, 96, 112, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 65536)  # of sizes, in bytes; multiples of STEP
NOTES = """\
Real: the library's heap, its figures, its cache of views and what the system says is resident. Modelled: HotSpot's list \
(ref/replay/hotspot/list.h), with the header of 16 bytes in front of each block that belongs to its unused bytes.
Figures are those of JDK-8029799, sums over the heaps of the trace: wasted = free list + unused + segment map; overhead = \
wasted / largest used. libexecmem has no segment map: `map` says what that design would take, and counts as wasted; \
`metadata` is what there is in its place. Footprint: up to the end of the highest block ever.
KiB = 1024 bytes. Traces: ref/replay/README.md.""".splitlines()


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1))
    for index, column in enumerate(columns):
        table.add_column(column, justify="right" if index else "left", overflow="fold", no_wrap=not index)
    return table


def _kb(bytes_: int) -> str:
    return f"{bytes_ / KIB:.0f}"


def figures(trace: HeapTrace, replays: dict[Config, Replay], console: Console) -> None:
    """The table of one trace."""
    table = _table(
        f"{trace.name}: {trace.allocations} allocations, {trace.frees} frees, {len(trace.sizes)} live at the end; "
        f"{_kb(trace.asked_most)} KiB asked for when most were live; sizes in KiB",
        *("heap, policy", "segment", "minimum", "free blocks", "free", "unused", "map", "largest used", "wasted"),
        *("overhead %", "metadata", "footprint", "/ asked"),
    )
    last = ""
    for config, got in replays.items():
        heap = f"{'HotSpot' if config.model else 'libexecmem'} {config.policy}"
        if last and heap != last:
            table.add_section()
        last = heap
        table.add_row(
            heap,
            str(config.segment),
            str(config.minimum),
            str(got["free_blocks"]),
            *(_kb(got[name]) for name in ("free_bytes", "unused_bytes", "segment_map_bytes")),
            *(_kb(got[name]) for name in ("largest_used_bytes", "wasted_bytes")),
            f"{got['overhead_per_myriad'] / 100:.2f}",
            _kb(got["metadata_bytes"]),
            _kb(got["footprint_bytes"]),
            f"{got['footprint_bytes'] / trace.asked_most:.4f}",
        )
    console.print(table)


def own(replays: Replays, known: dict[str, Own], console: Console) -> None:
    """The model beside what HotSpot printed."""
    title = "The model beside what HotSpot 17 printed at the end of the recorded run (model / HotSpot)"
    table = _table(title, "trace", "free blocks", "free KiB", "largest used KiB", "overhead %, model", "")
    for name, by_config in replays.items():
        shape = hotspot.recorded_shape(name)
        got = by_config.get(Config(True, "best", *shape)) if shape else None
        if name not in known or not got:
            continue
        printed = known[name]
        table.add_row(
            name,
            f"{got['free_blocks']} / {printed.free_blocks}",
            f"{_kb(got['free_bytes'])} / {printed.free_kb}",
            f"{_kb(got['largest_used_bytes'])} / {printed.max_used_kb}",
            f"{got['overhead_per_myriad'] / 100:.2f}",
            "differs" if hotspot.apart(got, printed) else "as printed",
        )
    console.print(table)


def published(medians: dict[tuple[str, int, int], dict[str, float]], console: Console) -> None:
    """The rows of the source. Its workloads were never published: they are here to be read, not to be reached."""
    table = _table(
        "Published in JDK-8029799: medians over the runs; KiB",
        *(
            "workload",
            "segment",
            "minimum",
            "free blocks",
            "free",
            "unused",
            "map",
            "largest used",
            "wasted",
            "overhead %",
        ),
    )
    for (workload, segment, minimum), row in medians.items():
        names = ("freelist_length", "freelist_kb", "unused_in_blobs_kb", "segmap_kb", "max_used_kb", "wasted_kb")
        overhead = f"{row['overhead_percent']:.2f}"
        table.add_row(workload, str(segment), str(minimum), *(f"{row[name]:.0f}" for name in names), overhead)
    console.print(table)


def sizes(trace: HeapTrace, replay: Replay, console: Console) -> None:
    """How large the blocks are that are live at the end, as the library counts them."""
    counts = {low: 0 for low in BOUNDS}
    for size, count in replay.sizes.items():
        counts[max(low for low in BOUNDS if low <= size)] += count
    total, widest = sum(counts.values()), max(counts.values())
    table = _table(f"{trace.name}: live blocks at the end by size, {total} in all", "bytes", "blocks", "%")
    table.add_column("")
    for low, high in zip(BOUNDS, (*BOUNDS[1:], None)):
        span = f"{low} to {high - 1}" if high else f"{low} and more"
        table.add_row(
            span, str(counts[low]), f"{100 * counts[low] / max(total, 1):.1f}", "█" * (40 * counts[low] // widest)
        )
    console.print(table)


def near(trace: HeapTrace, replays: dict[Config, Replay], console: Console) -> None:
    """The frontier of one trace."""
    base = next(iter(replays.values()))
    points = hotspot.frontier(replays)
    table = _table(
        f"{trace.name}: `best` makes {base['misses']} mappings, {_kb(base['footprint_bytes'])} KiB footprint; `near` beside "
        f"it, three cached views, windows of 64 KiB, segments of {base.config.segment} bytes",
        *("near_percent, heaps", "mappings", "times fewer", "footprint KiB", "times", ""),
    )
    for point in points:
        marks = ["met"] if point.good else []
        marks += ["dominated"] if hotspot.dominated(point, points) else []
        table.add_row(
            f"{point.config.percent}, {'one heap' if point.config.together else 'own heaps'}",
            str(point.misses),
            f"{point.fewer:.2f}",
            _kb(point.footprint),
            f"{point.more:.3f}",
            ", ".join(marks),
        )
    console.print(table)


def goals(found: Sequence[Goal], console: Console) -> None:
    """A line a goal; what is missed is named, by how much."""
    table = _table("Goals, over the traces", "what", "goal", "met on", "worst", "missed on")
    for what in dict.fromkeys(goal.what for goal in found):
        mine = [goal for goal in found if goal.what == what]
        missed = [goal for goal in mine if not goal.met]
        worst = (min if mine[0].least else max)(mine, key=lambda goal: goal.measured)
        table.add_row(
            what,
            f"{'at least' if worst.least else 'at most'} {worst.bound:g}",
            f"{len(mine) - len(missed)} of {len(mine)}",
            f"{worst.measured:.4f} {worst.trace}",
            ", ".join(f"{goal.trace} {goal.measured:.4f}" for goal in missed) or "-",
        )
    console.print(table)
    for goal in found:
        if goal.note:
            console.print(f"{goal.trace}: {goal.what}: {'met' if goal.met else 'missed'}: {goal.note}")


def release(lines: Sequence[hotspot_release.Line], console: Console) -> None:
    """Memory and time before and after release."""
    for trace in dict.fromkeys(line.trace for line in lines):
        table = _table(
            f"{trace}: memory of the code, MiB, and processor time of the whole replay, before and after release; a release "
            f"is tried after each {hotspot_release.CONFIGS[0].every} frees",
            *("runner", "segment x minimum", "release", "mean", "peak", "end", "CPU s", "least, most", "/ before"),
            *("tried", "turned down", "ranges", "MiB back"),
        )
        for line in lines:
            if line.trace != trace:
                continue
            kept = hotspot_release.before(line, lines)
            table.add_row(
                line.runner.text,
                f"{line.config.segment} x {line.config.minimum}",
                line.config.release or "none",
                f"{line.mean:.2f}",
                f"{line.most:.2f}",
                f"{line.last:.2f}",
                f"{line.cpu:.2f}",
                f"{line.cpu_range[0]:.2f}, {line.cpu_range[1]:.2f}",
                f"{line.cpu / kept.cpu:.2f}" if kept.cpu else "-",
                *(str(number) for number in (line.attempts, line.skipped, line.ranges)),
                f"{line.released:.1f}",
                end_section=line.config.release == hotspot_release.CONFIGS[-1].release,
            )
        console.print(table)
