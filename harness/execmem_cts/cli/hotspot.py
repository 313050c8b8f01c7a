"""tables hotspot-code-cache: figures of HotSpot's code cache, beside those of the library's code heap."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from .. import manifest, native, tools, verdict
from ..model import Port
from .base import ROOT, guarded
from .tables import tables

PARTS = ("figures", "own", "sizes", "near", "release")
UNASKED = PARTS[:-1]


def native_program(ports: dict[str, Port], build: Callable[[Port], Path]) -> Path:
    """The program of the first port that this machine runs itself. Raises ToolError."""
    # Those that bear the machine's name first: the others may be built in vain.
    for port in sorted(ports.values(), key=lambda port: not port.triple.startswith(platform.machine())):
        program = build(port)
        if not native.runs(program):
            return program
    raise tools.ToolError("this machine runs no port by itself: there is nothing to run the replays on")


@tables.command("hotspot-code-cache")
@click.option(
    "--trace",
    "wanted",
    multiple=True,
    metavar="NAME|FILE",
    help="A recorded trace by name, or a file (.gz and .xz are understood); may be repeated. Default: all fifteen.",
)
@click.option(
    "--part",
    "parts",
    multiple=True,
    type=click.Choice(PARTS),
    help="What to show; may be repeated. Default: all but release, which takes minutes a trace.",
)
@click.option("--rounds", type=click.IntRange(1, 99), default=3, show_default=True, help="Of release, for medians.")
@click.option("--jobs", type=click.IntRange(1), default=None, help="Parallel replays. Default: one a processor.")
@click.option("--json", "form", flag_value="json", help="All figures as JSON on standard output.")
@click.option("--table", "form", flag_value="table", default=True, help="Tables to read. The default.")
@guarded
def tables_hotspot_code_cache(
    wanted: tuple[str, ...], parts: tuple[str, ...], rounds: int, jobs: int | None, form: str
) -> None:
    """The table of JDK-8029799: free list, unused bytes, segment map and overhead of a code heap, on recorded traces.

    \b
    execmem-cts tables hotspot-code-cache                                            all but release: a minute
    execmem-cts tables hotspot-code-cache --trace javac-128x6 --part figures         segment x minimum x policy
    execmem-cts tables hotspot-code-cache --part near                                mappings against footprint
    execmem-cts tables hotspot-code-cache --part release --trace classgen-128x6      memory and time, 64 and 32 bits
    execmem-cts tables hotspot-code-cache --trace mine.trace                         your runtime's trace

    Every call that HotSpot 17 made to its code heaps in fifteen runs is replayed on libexecmem's code heap and on a model
    of HotSpot's own.

    \b
    figures   a table a trace: segment x minimum x policy, and whether the goals hold
    own       the model beside what HotSpot itself printed when the run ended
    sizes     how large the live blocks are
    near      policy `near`: writable mappings made against footprint, over near_percent
    release   memory and processor time before and after page release, natively and under the emulators

    A trace has one call a line, and may name heaps. Or it is one of `tables dotnet-rw`, with blocks alone.

    \b
    a 0 1200 2       # allocates block 0, 1200 bytes, in heap 2
    t 0 800          # cuts it to 800 bytes
    f 0              # frees it

    The exit status is 1 where a replay contradicts a count of its trace, or the model HotSpot's own figures. A goal that is
    missed is printed as missed, and is no error.
    """
    from ..progress import Progress
    from ..tables import hotspot, hotspot_release, hotspot_replay, hotspot_show, hotspot_trace

    shown = parts or UNASKED
    traces = hotspot_trace.choose(ROOT, wanted)
    ports, found = manifest.discover_ports(ROOT), tools.find()
    workers = jobs or os.cpu_count() or 1

    def build(port: Port) -> Path:
        return hotspot_replay.build(ROOT, found, port, workers)

    program = native_program(ports, build) if set(shown) & set(UNASKED) else Path()
    console = Console(highlight=False, width=150) if form == "table" else Console(quiet=True)
    own, goals, bad, rows, sizes = hotspot.own_figures(ROOT), list[hotspot.Goal](), list[str](), list[Any](), {}
    with Progress(Console(stderr=True)) as progress:
        if set(shown) & {"figures", "own", "sizes"}:
            replays = hotspot.replay_all(program, traces, hotspot.figure_configs(), workers, progress.advanced)
            bad += hotspot.wrong(traces, replays, own)
            rows += hotspot.flat(replays, "figures")
        if "near" in shown:
            frontier = hotspot.replay_all(program, traces, hotspot.near_configs(), workers, progress.advanced)
            bad += hotspot.wrong(traces, frontier, {})
            rows += hotspot.flat(frontier, "near")
        if "release" in shown:
            lines, contradictions = hotspot_release.measure(
                traces, hotspot_release.runners(ports, build), rounds, workers, progress.advanced
            )
            bad += contradictions
            rows += [hotspot_release.flat(line) for line in lines]
    for trace in traces:
        if "figures" in shown:
            hotspot_show.figures(trace, replays[trace.name], console)
            goals += hotspot.figure_goals(trace, replays[trace.name])
        if "sizes" in shown:
            got = replays[trace.name][hotspot_replay.Config(segment=32)]
            sizes[trace.name] = sorted(got.sizes.items())
            hotspot_show.sizes(trace, got, console)
        if "near" in shown:
            hotspot_show.near(trace, frontier[trace.name], console)
            goals += hotspot.near_goals(trace, frontier[trace.name])
    if "release" in shown:
        hotspot_show.release(lines, console)
    if "own" in shown:
        hotspot_show.own(replays, own, console)
    if "figures" in shown:
        hotspot_show.published(hotspot.published(ROOT), console)
    if goals:
        hotspot_show.goals(goals, console)
    for note in hotspot_show.NOTES:
        console.print(note)
    if form == "json":
        click.echo(hotspot.json_text(rows, goals, sizes, hotspot_show.NOTES, bad), nl=False)
    for text in bad:
        click.echo(f"execmem-cts: {text}", err=True)
    if bad:
        sys.exit(verdict.REGRESSION)
