"""The tables of dotnet/runtime#83632: what each of its changes does to the number of RW mappings, on the real library."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from ..source import ManifestError
from . import dotnet, placement, replay, trace
from .placement import Switches
from .replay import Config

PUBLISHED = Path("ref/replay/dotnet-83632.csv")
PARAMETERS = Path("ref/replay/dotnet-startup.toml")
RECORDED = Path("ref/replay/traces")
SIZES = tuple(range(17))
BEFORE, AFTER = Switches(False, False, 4096), Switches(True, True, 16384)
BEFORE_VIEWS, AFTER_VIEWS = 1, 3

# Each change of #83632 alone, and all but it. The last is no cache change but came with them.
STEPS: tuple[tuple[str, Switches, int], ...] = (
    ("before: 1 view", BEFORE, BEFORE_VIEWS),
    ("only 3 views", BEFORE, AFTER_VIEWS),
    ("only shared pages", replace(BEFORE, share=True), BEFORE_VIEWS),
    ("only bypass", replace(BEFORE, bypass=True), BEFORE_VIEWS),
    ("only 16K stub pages", replace(BEFORE, stub_page=16384), BEFORE_VIEWS),
    ("after: all", AFTER, AFTER_VIEWS),
    ("all but 3 views", AFTER, BEFORE_VIEWS),
    ("all but shared pages", replace(AFTER, share=False), AFTER_VIEWS),
    ("all but bypass", replace(AFTER, bypass=False), AFTER_VIEWS),
    ("all but 16K stub pages", replace(AFTER, stub_page=4096), AFTER_VIEWS),
)
REAL = """\
Real: libexecmem itself makes, caches, evicts and unmaps the views, natively; every figure of a mapping is its own \
counter, and the replayer holds it against the system calls that it saw. `mappings` is misses + single-use mappings, \
because #83632 counts both as misses.
Modelled: where blocks land (best fit, not the library's code heap), the heaps of stubs, and the list whose \
walk is counted. libexecmem looks a region up in constant time and walks no such list."""
GENERATED = """\
Generated: the start-ups, from parameters that were committed before any result was seen and are never fitted to one \
({parameters}, SHA-256 {digest}). Most of their counts are stand-ins or assumptions; the file says which.
What this can say: which change matters, in which direction, and how size and order of the cache count, on one and the \
same stream of events. What it cannot say: that a published number is reached or missed for a reason. Those come from \
.NET itself, with several threads, other sizes of code, and events that were never published; an equal number would be \
chance."""
RECORDED_TEXT = """\
Recorded: HotSpot's own allocations, in its order (ref/replay/README.md), with one write an allocation, as the traces \
hold no other. They have no stub pages and no virtual-call stubs, so that only size and order of the cache are switched; \
blocks are placed by the model, in a heap for each of HotSpot's three where it had three."""
NOTES_GIVEN = REAL


def notes(shown: Path, parameters: dotnet.Parameters, with_recorded: bool) -> str:
    """What stands under the tables: what is real, what is modelled, what the comparison can say."""
    made = GENERATED.format(parameters=shown, digest=parameters.digest[:16])
    return "\n".join([REAL, made, *([RECORDED_TEXT] if with_recorded else [])])


@dataclass(frozen=True)
class Published:
    application: str
    misses: tuple[int, int]  # before, after
    walk: tuple[float, float]


@dataclass(frozen=True)
class Row:
    """The figures of one replay."""

    trace: str
    kind: str  # generated, recorded, given
    share: bool
    bypass: bool
    stub_page: int
    views: int
    keep_order: bool
    opened: int  # views
    crossing: int  # of which reach over the boundary of a 64 KiB window, and need a mapping of two
    hits: int
    misses: int
    bypasses: int
    mappings: int  # misses + bypasses
    evictions: int
    regions: int
    walk_kept: float  # modelled: mean regions looked at for a mapping, list in order of age
    walk_moved: float  # and with the region found moved to the front

    @property
    def switches(self) -> Switches:
        return Switches(self.share, self.bypass, self.stub_page)


@dataclass(frozen=True)
class Subject:
    """A trace to be replayed, by its short name."""

    name: str
    kind: str
    trace: trace.Trace


def published(root: Path) -> dict[str, Published]:
    """The rows that #83632 states, by application."""
    with (root / PUBLISHED).open(newline="") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    return {
        r["application"]: Published(
            r["application"],
            (int(r["rw_cache_misses_before"]), int(r["rw_cache_misses_after"])),
            (float(r["walk_length_before"]), float(r["walk_length_after"])),
        )
        for r in rows
    }


def sizes(text: str) -> tuple[int, ...]:
    """`0-16`, `1,3,8` or a mixture, as numbers in order. Raises ManifestError."""
    found: set[int] = set()
    for part in text.split(","):
        low, dash, high = part.strip().partition("-")
        if not low.isdigit() or (dash and not high.isdigit()):
            raise ManifestError(
                f"--cache-sizes {text}: expected numbers from 0 to 16 such as 0-16 or 1,3, found {part!r}"
            )
        first, last = int(low), int(high) if dash else int(low)
        if first > last or last > SIZES[-1]:
            raise ManifestError(f"--cache-sizes {text}: expected 0 to 16, the smaller first, found {part!r}")
        found.update(range(first, last + 1))
    return tuple(sorted(found))


def _row(subject: Subject, switches: Switches, config: Config, script: placement.Script, got: dict[str, Any]) -> Row:
    walks = max(1, got["walks"])
    return Row(
        trace=subject.name,
        kind=subject.kind,
        **asdict(switches),
        views=config.views,
        keep_order=config.keep_order,
        opened=got["hits"] + got["misses"] + got["bypasses"],
        crossing=script.crossing,
        hits=got["hits"],
        misses=got["misses"],
        bypasses=got["bypasses"],
        mappings=got["misses"] + got["bypasses"],
        evictions=got["evictions"],
        regions=script.regions,
        walk_kept=round(got["walk_steps_kept"] / walks, 1),
        walk_moved=round(got["walk_steps_moved"] / walks, 1),
    )


def wanted(subject: Subject, chosen: Sequence[int]) -> dict[Switches, list[Config]]:
    """What is replayed: the sizes of the cache in both orders, before and after, and for start-ups the steps."""
    both = [Config(views, keep) for views in chosen for keep in (False, True)]
    has = {event.word for event in subject.trace.events}
    ends = (BEFORE, AFTER) if has & {"stub", "slot"} else (BEFORE,)
    found = {switches: list(both) for switches in ends}
    if len(ends) == 2:
        for _, switches, views in STEPS:
            configs = found.setdefault(switches, [])
            if Config(views) not in configs:
                configs.append(Config(views))
    return found


def replay_all(
    program: Path, subjects: Sequence[Subject], chosen: Sequence[int], jobs: int, say: Callable[[str, int, int], None]
) -> list[Row]:
    """Places and replays every subject, `jobs` at a time. `say` is told what is done, and how much of how much."""
    tasks = [(s, switches, configs) for s in subjects for switches, configs in wanted(s, chosen).items()]

    def take(task: tuple[Subject, Switches, list[Config]]) -> list[Row]:
        subject, switches, configs = task
        script = placement.place(subject.trace, switches)
        got = replay.run(program, script.text(), configs)
        return [_row(subject, switches, config, script, got[config]) for config in configs]

    rows = []
    with ThreadPoolExecutor(jobs) as pool:  # the replays are processes
        for done, (task, made) in enumerate(zip(tasks, pool.map(take, tasks)), 1):
            rows += made
            say(f"{task[0].name}: {task[1].text}", done, len(tasks))
    return rows


def _find(rows: Iterable[Row], name: str, switches: Switches, views: int, keep: bool = False) -> Row | None:
    key = (name, switches, views, keep)
    return next((r for r in rows if (r.trace, r.switches, r.views, r.keep_order) == key), None)


def _ratio(before: float, after: float) -> str:
    return f"{before / after:.1f}" if after else "-"


def _steps(rows: list[Row], names: Sequence[str], known: dict[str, Published], console: Console) -> None:
    table = Table(
        title="RW mappings, and modelled walk of the list of regions (kept in order / moved to front)",
        title_justify="left",
    )
    table.add_column("")
    for name in names:
        table.add_column(name, justify="right", overflow="fold")
        table.add_column("walk", justify="right")
    for label, switches, views in STEPS:
        cells = [label]
        for name in names:
            row = _find(rows, name, switches, views)
            cells += [str(row.mappings), f"{row.walk_kept} / {row.walk_moved}"] if row else ["-", "-"]
        table.add_row(
            *cells,
            end_section=label in (STEPS[4][0], STEPS[-1][0]),
            style="bold" if " all" in label[:10] or label == STEPS[0][0] else None,
        )
    cells = ["before / after"]
    for name in names:
        first, last = (_find(rows, name, s, v) for s, v in ((BEFORE, BEFORE_VIEWS), (AFTER, AFTER_VIEWS)))
        cells += (
            [_ratio(first.mappings, last.mappings), _ratio(first.walk_kept, last.walk_moved)]
            if first and last
            else ["-", "-"]
        )
    table.add_row(*cells, end_section=True)
    for label, at in (("published before", 0), ("published after", 1)):
        cells = [label]
        for name in names:
            cells += [str(known[name].misses[at]), str(known[name].walk[at])] if name in known else ["-", "-"]
        table.add_row(*cells)
    cells = ["before / after"]
    for name in names:
        cells += [_ratio(*known[name].misses), _ratio(*known[name].walk)] if name in known else ["-", "-"]
    table.add_row(*cells)
    console.print(table)


def _sweep(
    rows: list[Row], title: str, columns: Sequence[tuple[str, str, Switches]], chosen: Sequence[int], console: Console
) -> None:
    table = Table(title=title, title_justify="left")
    table.add_column("cached views", justify="right")
    for label, _, _ in columns:
        table.add_column(label, justify="right", overflow="fold")
    about = {(r.trace, r.switches): r for r in rows}
    table.add_row("views opened", *(str(about[name, s].opened) for _, name, s in columns))
    table.add_row(
        "of which across windows", *(str(about[name, s].crossing) for _, name, s in columns), end_section=True
    )
    for views in chosen:
        cells = [str(views)]
        for _, name, switches in columns:
            pair = [_find(rows, name, switches, views, keep) for keep in (False, True)]
            cells.append(" / ".join(str(row.mappings) if row else "-" for row in pair))
        table.add_row(*cells)
    console.print(table)


def show(rows: list[Row], known: dict[str, Published], chosen: Sequence[int], notes: str, console: Console) -> None:
    """Prints the tables."""
    staged = list(dict.fromkeys(r.trace for r in rows if r.switches == AFTER))
    plain = list(dict.fromkeys(r.trace for r in rows if r.trace not in staged))
    order = "mappings by size of the cache (hit moves to front / keeps its place)"
    if staged:
        _steps(rows, staged, known, console)
        columns = [(f"{n}, {w}", n, s) for n in staged for w, s in (("before", BEFORE), ("after", AFTER))]
        _sweep(rows, f"Start-ups: {order}", columns, chosen, console)
    if plain:
        columns = [(n, n, BEFORE) for n in plain]
        _sweep(rows, f"Traces without stubs: {order}", columns, chosen, console)
    for paragraph in notes.splitlines():
        console.print(paragraph)


def csv_text(rows: list[Row]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(Row.__dataclass_fields__), lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for row in rows)
    return out.getvalue()


def json_text(rows: list[Row], known: dict[str, Published], notes: str) -> str:
    data = {
        "schema": 1,
        "source": "dotnet/runtime#83632",
        "published": [asdict(p) for p in known.values()],
        "rows": [asdict(row) for row in rows],
        "notes": notes.splitlines(),
    }
    return json.dumps(data, indent=1) + "\n"


def generated(parameters: dotnet.Parameters) -> list[Subject]:
    return [Subject(p.name, "generated", dotnet.generate(parameters, p)) for p in parameters.profiles]


def recorded(root: Path) -> list[Subject]:
    """The traces of the project, by name."""
    paths = sorted((root / RECORDED).glob("*.trace.xz"))
    return [Subject(path.name.removesuffix(".trace.xz"), "recorded", trace.read(path)) for path in paths]


def save(subjects: Iterable[Subject], folder: Path) -> list[Path]:
    """Writes the traces of `subjects` to `folder`, and names them. Raises ManifestError where that fails."""
    paths = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for subject in subjects:
            name = "".join(c if c.isalnum() else "-" for c in subject.name.lower())
            path = folder / f"{name}.trace"
            path.write_text("".join(trace.lines_of(subject.trace.settings, subject.trace.events)), encoding="ascii")
            paths.append(path)
    except OSError as error:
        raise ManifestError(f"--save {folder}: {error}") from error
    return paths
