"""report: results that are stored, shown again, on the console or as a page for a browser."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from .. import verdict
from .base import ROOT, guarded, main, with_port_path
from .showing import show

if TYPE_CHECKING:
    from ..html.trend import Trend
    from ..model import Result
    from ..tree import Tree


def trend_since(since: Path, header: dict[str, Any], found: list[Result], tree: Tree) -> Trend:
    """What changed since the results in `since`. Raises ManifestError."""
    from .. import results as files
    from ..gate import aliases
    from ..gate.judge import results_file
    from ..html import trend
    from ..tree import checks_of

    path = results_file(since, files.JSON_LINES)
    before = files.read_all(path)
    renamed = aliases.load(ROOT, checks_of(tree))
    return trend.compare(before.results, found, (before.header, header), before.end, renamed)


@main.command()
@click.option(
    "--results",
    type=click.Path(path_type=Path),
    default=None,
    help="A folder of result files, or its results.jsonl. Default: build/results.",
)
@click.option("--profile", default="conform", show_default=True, help="What is required: a name, or a file.")
@click.option(
    "--html",
    "page",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write one self-contained page for a browser to this file, and only the verdict to the console.",
)
@click.option(
    "--since", type=click.Path(path_type=Path), help="With --html: an earlier run's results, to show what changed."
)
@with_port_path
@guarded
def report(results: Path | None, profile: str, page: Path | None, since: Path | None) -> None:
    """Show the last run again, from its results file, judged by a profile.

    \b
    execmem-cts report                                            on the console
    execmem-cts report --html report.html                         for a browser
    execmem-cts report --html report.html --since last/results    and what changed since that run
    execmem-cts report --html report.html --results build/gate    what `gate --output` judged, with its findings

    The page holds the verdict, the failures with their commands to copy, the matrix, every result (port, family,
    requirement, check) behind filters, and a picture of each template: from which instruction to which field, how far,
    and how far the instruction could reach. It is one file, loads nothing, works without a network, and can be sent as
    it is. A view is in its address: report.html#port=arm64&verdict=red.

    Exit status: that of the verdict, as for `run`. Known failures are those of the run or the gate that wrote the results.
    """
    from .. import results as files
    from .. import tree as trees
    from ..gate import judge as judging
    from ..source import ManifestError

    if since is not None and page is None:
        raise ManifestError("report: --since compares on the page: give --html FILE as well")
    path = judging.results_file(results or ROOT / "build" / "results", files.JSON_LINES)
    header, found, findings = files.read_whole(path)
    tree = trees.load_tree(ROOT, profile)
    overall = verdict.overall(found, tree.profile, findings, str(header.get("shard", "")))
    around = trees.surroundings_of(ROOT, header, tree, {})
    console = Console(highlight=False)
    if page is None:
        show(found, overall, tree.profile, around, console)
        sys.exit(overall.exit_status)
    from .. import report as reporting
    from ..html import layouts
    from ..html import page as pages

    kept = layouts.read(path.with_name(layouts.FILE))
    trend = trend_since(since, header, found, tree) if since else None
    pages.write(page, pages.Report(header, found, overall, tree.profile, around, kept, trend))
    reporting.verdict_line(overall, console)
    click.echo(f"page: {os.path.relpath(page)}")
    sys.exit(overall.exit_status)
