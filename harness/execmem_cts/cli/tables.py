"""tables: published figures of other allocators, beside what this one does."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click
from rich.console import Console

from .. import verdict
from ..source import ManifestError
from .base import ROOT, guarded, main


@main.group()
def tables() -> None:
    """Published figures of other allocators, beside what this one does.

    \b
    execmem-cts tables dotnet-rw           .NET's cache of RW mappings (dotnet/runtime#83632)
    execmem-cts tables scudo-release       Scudo's release of pages (LLVM D82031)
    execmem-cts tables hotspot-code-cache  HotSpot's code cache (JDK-8029799)

    These are no checks of the suite. They need x86-64, a C library and a compiler, and run natively.
    """


@tables.command("dotnet-rw")
@click.option(
    "--parameters",
    type=click.Path(path_type=Path),
    help="Parameters of the start-ups. Default: ref/replay/dotnet-startup.toml.",
)
@click.option(
    "--trace",
    "traces",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Replay this trace, in place of everything else; may be repeated. .gz and .xz are understood.",
)
@click.option(
    "--cache-sizes",
    default="0-4,8,16",
    show_default=True,
    metavar="LIST",
    help="Cached views, 0 to 16: 0-16, or 1,3, or a mixture.",
)
@click.option("--no-recorded", is_flag=True, help="Leave the recorded traces out: the start-ups alone.")
@click.option(
    "--save", type=click.Path(path_type=Path, file_okay=False), help="Also write the generated traces to this folder."
)
@click.option("--jobs", type=click.IntRange(1), default=None, help="Parallel replays. Default: one a processor.")
@click.option("--json", "form", flag_value="json", help="All figures as JSON on standard output.")
@click.option("--csv", "form", flag_value="csv", help="All figures as CSV, a line a replay.")
@click.option("--table", "form", flag_value="table", default=True, help="Tables to read. The default.")
@guarded
def tables_dotnet_rw(
    parameters: Path | None,
    traces: tuple[Path, ...],
    cache_sizes: str,
    no_recorded: bool,
    save: Path | None,
    jobs: int | None,
    form: str,
) -> None:
    """What the changes of dotnet/runtime#83632 do to the number of RW mappings, one by one.

    \b
    execmem-cts tables dotnet-rw                          all tables, beside the published rows: minutes
    execmem-cts tables dotnet-rw --cache-sizes 0-16       every size: more minutes
    execmem-cts tables dotnet-rw --no-recorded            the start-ups alone: some seconds
    execmem-cts tables dotnet-rw --trace mine.trace.xz    your runtime's trace
    execmem-cts tables dotnet-rw --save traces            the generated traces, to read or to change
    execmem-cts tables dotnet-rw --csv > figures.csv

    Each code write of a double-mapping allocator needs a writable view. .NET kept one view and later three, moved the
    virtual-call stubs into the pages of jitted code, and let pages that are written once bypass the cache. This command
    generates the start-up of three applications, places every block by a model, and lets libexecmem do the rest, with
    each change switched alone and each but one; then the same with recorded traces, for every size of the cache, with
    and without move-to-front.

    A trace is text, one event a line. The least that does something:

    \b
    execmem-trace 1
    alloc main 200        # a block of 200 bytes, written once as a whole
    stub dispatch 48      # a stub, placed by a switch
    slot precode 24       # a slot of an interleaved page
    write main 0 8        # a view over 8 bytes of it, opened and closed
    free main

    ref/replay/README.md has all events and settings. What is modelled and what is real stands under the tables.
    """
    from ..progress import Progress
    from ..tables import dotnet, dotnet_rw, replay
    from ..tables import trace as tracing

    chosen = dotnet_rw.sizes(cache_sizes)
    if traces and (parameters or save or no_recorded):
        raise ManifestError("--trace replays that trace alone; leave out --parameters, --save and --no-recorded")
    if traces:
        subjects = [dotnet_rw.Subject(path.name, "given", tracing.read(path)) for path in traces]
        notes = dotnet_rw.NOTES_GIVEN
        if len({s.name for s in subjects}) < len(subjects):
            raise ManifestError("--trace: expected files of different names, to tell their figures apart")
    else:
        read = dotnet.load(parameters or ROOT / dotnet_rw.PARAMETERS)
        subjects = dotnet_rw.generated(read)
        if save:
            for path in dotnet_rw.save(subjects, save):
                click.echo(f"written: {path}", err=True)
        notes = dotnet_rw.notes(parameters or dotnet_rw.PARAMETERS, read, not no_recorded)
        subjects += [] if no_recorded else dotnet_rw.recorded(ROOT)
    program = replay.build(ROOT, ROOT / "build" / "tables")
    with Progress(Console(stderr=True)) as shown:
        rows = dotnet_rw.replay_all(program, subjects, chosen, jobs or os.cpu_count() or 1, shown.advanced)
    known = dotnet_rw.published(ROOT)
    if form == "table":
        dotnet_rw.show(rows, known, chosen, notes, Console(highlight=False))
    else:
        text = dotnet_rw.csv_text(rows) if form == "csv" else dotnet_rw.json_text(rows, known, notes)
        click.echo(text, nl=False)


@tables.command("scudo-release")
@click.option("--blocks", type=click.IntRange(1, 16_000_000), default=1 << 22, show_default=True, help="Of each size.")
@click.option("--threads", type=click.IntRange(1, 64), default=4, show_default=True, help="That take and free blocks.")
@click.option("--seed", type=click.IntRange(0, 1 << 32), default=1, show_default=True, help="Of what is freed.")
@click.option(
    "--page",
    "pages",
    multiple=True,
    type=click.Choice(["4096", "16384", "65536"]),
    help="Page size; may be repeated. Default: all three. The system's own is measured as well.",
)
@click.option("--json", "form", flag_value="json", help="All figures as JSON on standard output.")
@click.option("--table", "form", flag_value="table", default=True, help="Tables to read. The default.")
@guarded
def tables_scudo_release(blocks: int, threads: int, seed: int, pages: tuple[str, ...], form: str) -> None:
    """The table of LLVM's D82031: how many pages can go, by block size and share of the blocks freed at random.

    \b
    execmem-cts tables scudo-release                                all of it: minutes, and 1.2 GB of memory
    execmem-cts tables scudo-release --page 4096                    the published table alone
    execmem-cts tables scudo-release --page 4096 --blocks 200000    seconds

    Threads take all blocks of a size, and free ever more of them at random. Small blocks share their pages with many
    others: of pages with 128 blocks, a quarter is free when 99 % of the blocks are. D82031 published what Scudo gives
    back; here libexecmem does, on the same sizes and shares, and each cell is held against

    \b
    - a naive count over the same pattern: exactly equal;
    - the closed form: within four standard errors, and a page;
    - what the system says went (pages of its own size, regions of up to 2 GiB): exactly equal;
    - from four million blocks on, the published integers: at least 190 of 210 equal, the others one apart.

    The exit status is 1 where one of these does not hold.
    """
    from ..progress import Progress
    from ..tables import scudo

    sizes = [int(page) for page in pages] or [4096, 16384, 65536]
    known = scudo.published(ROOT)
    program = scudo.build(ROOT)
    with Progress(Console(stderr=True)) as shown:
        cells = scudo.measure(
            program, known, sizes, blocks, threads, seed, lambda done, of: shown.advanced("sizes", done, of)
        )
    notes = scudo.summary(cells, blocks, threads, seed)
    wrong = scudo.faults(cells, blocks)
    if form == "json":
        click.echo(scudo.json_text(cells, notes, wrong), nl=False)
    else:
        scudo.show(cells, notes, Console(highlight=False, width=130))
    for text in wrong:
        click.echo(f"execmem-cts: {text}", err=True)
    if wrong:
        sys.exit(verdict.REGRESSION)
