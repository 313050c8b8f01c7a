"""The gate: gate, update-expectations, merge."""

from __future__ import annotations

import datetime
import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from .. import verdict
from ..model import Result
from ..source import ManifestError
from .base import ROOT, guarded, main, with_port_path
from .showing import show

if TYPE_CHECKING:
    from ..gate.judge import Judgement
    from ..report import Surroundings
    from ..tree import Tree

PROFILE = click.option("--profile", default="conform", show_default=True, help="What is required: a name, or a file.")
OUTPUT = click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Also write results.jsonl, junit.xml, summary.md, badge.json, results.sarif and report.html to this folder.",
)
QUIET = click.option("--quiet", is_flag=True, help="The verdict, the failures and the findings, no matrix.")


class Day(click.ParamType):
    """A date: 2027-01-31."""

    name = "DATE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime.date:
        try:
            return datetime.date.fromisoformat(str(value))
        except ValueError:
            self.fail(f"{value!r} is no date: write 2027-01-31", param, ctx)


def _around(results: Sequence[Result], tree: Tree, header: dict[str, Any]) -> Surroundings:
    from .. import tree as trees

    red = any(result.verdict in verdict.RED for result in results)
    return trees.surroundings_of(ROOT, header, tree, {}, disassembles=red)  # else no tool is looked for


def _write_all(
    folder: Path, header: dict[str, Any], done: Judgement, tree: Tree, around: Surroundings, beside: Path
) -> None:
    """What --output promises. `beside`: the folder of the results, with the layouts of their templates."""
    from .. import results as files
    from ..html import layouts, page

    files.write_all(folder, header, done.results, tree.profile, done.overall)
    kept = layouts.read(beside / layouts.FILE)
    if kept.layouts:
        layouts.write(folder / layouts.FILE, kept.layouts)
    about = page.Report(header, done.results, done.overall, tree.profile, around, kept, None, done.judged.notes)
    page.write(folder / page.FILE, about)


@main.command()
@click.option(
    "--expect", type=click.Path(path_type=Path), help="The file of expectations. Without it, nothing may fail."
)
@click.option(
    "--results",
    type=click.Path(path_type=Path),
    help="Judge these: a folder, or its results.jsonl. Without it, the suite is run first.",
)
@PROFILE
@OUTPUT
@click.option(
    "--mustpass",
    metavar="VERSION",
    help="Judge by the checks that this release required, such as 0.1.0: `execmem-cts mustpass --help`.",
)
@click.option("--today", type=Day(), help="The day by which entries expire, to see what will. Default: today.")
@QUIET
@with_port_path
@click.argument("run_options", nargs=-1, type=click.UNPROCESSED, metavar="[-- OPTIONS OF run]")
@guarded
def gate(
    expect: Path | None,
    results: Path | None,
    profile: str,
    output: Path | None,
    mustpass: str | None,
    today: datetime.date | None,
    quiet: bool,
    run_options: tuple[str, ...],
) -> None:
    """Let the suite decide: is everything as it is expected to be?

    \b
    execmem-cts gate --expect known.toml                                 run all, and judge
    execmem-cts gate --expect known.toml -- --port arm64 --jobs 4        run this, and judge
    execmem-cts gate --expect known.toml --results build/results         judge what was run

    The file of expectations names what is known to fail:

    \b
    schema = 1
    [[expect_fail]]
    requirement = "PO-041"                       # exact; no patterns anywhere
    port = "x64"                                 # or a list
    stub_page = "16K"                            # or a list; 0 for what has none, as allocators
    os_page = [4096, 65536]                      # or one
    reason = "the tail of fixup_precode has no pad"
    link = "https://example.org/issues/12"
    expires = 2027-01-31                         # optional: red after that day
    check = "po_pads"                            # optional, as are point and variant: these results alone
    runner = "emulated"                          # optional: emulated, native or host
    emulator = ">=7.2, <9"                       # optional: under these versions of the emulator alone

    Every cell (requirement x port x stub page x OS page) that an entry names must have a result, and each such result
    must fail. Red are, each with file, line and what mends it: a failure that no entry names (1), a pass where an entry
    expects a failure (1), an entry that matches nothing (1), one that expired (1), an emulator that crashed, a shard
    that is missing, no check that ran (3), something required that was not shown (4). A flaky failure is a failure,
    whatever is expected. Entries of ports that were not asked for, and of conditions that do not hold on this machine,
    are counted and left alone.

    `execmem-cts update-expectations` writes entries for what fails, and deletes those that no longer hold.
    """
    from .. import results as files
    from .. import tree as trees
    from ..gate import aliases
    from ..gate import judge as judging
    from ..gate import mustpass as lists

    gc.disable()  # a third of the time, for thousands of results that stay to the end
    if results is not None and run_options:
        raise ManifestError(f"gate: {run_options[0]}: options of `run` make no sense with --results; leave one out")
    if results is None:
        gc.enable()
        results = _run_first(profile, expect, run_options)
    path = judging.results_file(results, files.JSON_LINES)
    header, found = files.read(path)
    tree = trees.load_tree(ROOT, profile)
    known = trees.load_expectations(expect, ROOT, tree)
    findings: list[verdict.Finding] = []
    note = ""
    if mustpass:
        checks = trees.checks_of(tree)
        entries = lists.read(ROOT, mustpass, tree.profile.name)
        found, findings, note = lists.restrict(found, entries, checks, aliases.load(ROOT, checks), mustpass)
    done = judging.judge(header, found, tree.ports, tree.profile, known, today, whole=True, findings=findings)
    done.judged.notes += [note] if note else []
    around = _around(done.results, tree, header)
    if output:
        _write_all(output, header, done, tree, around, path.parent)
    show(done.results, done.overall, tree.profile, around, Console(highlight=False), quiet, done.judged.notes)
    sys.exit(done.overall.exit_status)


def _run_first(profile: str, expect: Path | None, options: Sequence[str]) -> Path:
    """Runs the suite with options of `run`; where its results are."""
    from . import running

    argv = [*options, "--profile", profile] + (["--expect", str(expect)] if expect else [])
    with running.run.make_context("run", argv) as context:
        made, _ = running.execute(context.params.pop("subject"), **context.params)
    path = made.results_directory
    assert isinstance(path, Path)
    return path


@main.command("update-expectations")
@click.argument("expect", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE")
@click.option(
    "--results",
    type=click.Path(path_type=Path),
    help="The results to go by: a folder, or its results.jsonl. Default: build/results.",
)
@click.option("--reason", help="Of every new entry. Default: asked for, once a requirement.")
@click.option("--link", help="Of every new entry: where the failure is worked on. Default: asked for.")
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@with_port_path
@guarded
def update_expectations(
    expect: Path, results: Path | None, reason: str | None, link: str | None, dry_run: bool
) -> None:
    """Write entries for what fails, delete those that no longer hold.

    \b
    execmem-cts update-expectations known.toml
    execmem-cts update-expectations known.toml --reason "no pads yet" --link https://example.org/issues/12
    execmem-cts update-expectations known.toml --dry-run

    An entry that holds in part is replaced by narrower ones, with its reason and link. Comments and other entries stay
    as they are. What is flaky, and what an emulator's crash left unjudged, gets no entry: mend that. An entry that
    expired stays as well: its date is for people to agree on.

    Exit status 0 where the file is up to date now.
    """
    from .. import results as files
    from .. import tree as trees
    from ..gate import expectations, judge, update

    header, found = files.read(judge.results_file(results or ROOT / "build" / "results", files.JSON_LINES))
    if header.get("shard"):
        raise ManifestError(f"these results are shard {header['shard']} alone; `execmem-cts merge` them first")
    tree = trees.load_tree(ROOT, str(header.get("profile", "conform")))
    text = expect.read_text() if expect.exists() else update.HEAD
    known = trees.load_expectations(expect, ROOT, tree) if expect.exists() else []

    def ask(requirement: str, failures: Sequence[Result]) -> tuple[str, str]:
        if (not reason or not link) and not sys.stdin.isatty():
            raise ManifestError(f"{requirement} fails {len(failures)} times and has no entry; give --reason and --link")
        if not reason or not link:
            text = tree.requirements[requirement].text if requirement in tree.requirements else ""
            click.echo(f"{requirement}: {text}\n  {len(failures)} failures, such as {failures[0].key}:")
            click.echo(f"  {failures[0].message}")
        return reason or click.prompt("  why does it fail"), link or click.prompt("  link (https://...)")

    machine = judge.machine(header, tree.ports)
    done = update.update(text, known, found, machine, ask, str(expect))
    for entry in done.deleted:
        click.echo(f"deleted: {entry.where}: {entry.requirement} on {', '.join(entry.ports)}: {entry.reason}")
    for new in done.added:
        for stub_page in new.stub_pages:
            for os_page in new.os_pages:
                narrow = "".join(f", {key} {value}" for key, value in new.narrow)
                cell = (new.requirement, new.port, stub_page, os_page)
                click.echo(f"written: {expectations.cell_text(cell)}{narrow}")
    if done.flaky:
        click.echo(f"left red: {done.flaky} flaky failures; no entry covers those")
    if done.errors:
        click.echo(f"left red: {done.errors} results that could not be judged: the suite or an emulator broke")
    if done.text == text and expect.exists():
        click.echo(f"{expect}: up to date")
    elif not dry_run:
        update.write(expect, done.text)
        trees.load_expectations(expect, ROOT, tree)  # what was written can be read


@main.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="DIR...")
@click.option(
    "--results",
    "output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the joined results. Default: build/results.",
)
@PROFILE
@click.option("--expect", type=click.Path(path_type=Path), help="Judge by this file of expectations, as `gate` does.")
@QUIET
@with_port_path
@guarded
def merge(folders: Sequence[Path], output: Path | None, profile: str, expect: Path | None, quiet: bool) -> None:
    """Join the results of all shards of one run.

    \b
    execmem-cts run --shard 1/2 --results shards/1        # on one machine
    execmem-cts run --shard 2/2 --results shards/2        # on another
    execmem-cts merge shards                              # anywhere: shards/1 shards/2 does as well
    execmem-cts gate --expect known.toml --results build/results

    The whole run is judged, and written as one machine would have written it. Nothing is joined, and the exit status is
    3, where versions, emulators, profiles, seeds or plans differ, a shard is missing or there twice, or a check that was
    planned has no result: each is told by name.

    A cell (port, subject, variant, stub page, OS page, runner) belongs to a shard by a hash of its name. --shard auto
    reads GitLab's CI_NODE_INDEX and CI_NODE_TOTAL, JOB_COMPLETION_INDEX of a Kubernetes indexed job beside
    EXECMEM_SHARDS, or Slurm's SLURM_ARRAY_TASK_ID, _MIN and _COUNT. A shard alone is never conformant: it ends with 4.
    """
    from .. import results as files
    from .. import tree as trees
    from ..gate import judge as judging
    from ..gate import merge as merging
    from ..gate.shards import PLAN
    from ..html import layouts

    tree = trees.load_tree(ROOT, profile)
    known = trees.load_expectations(expect, ROOT, tree)
    directory = output or ROOT / "build" / "results"
    try:
        parts = merging.read_all(merging.folders(folders))
        header, found, planned = merging.merge(parts)
    except merging.MergeError as error:
        for problem in error.problems:
            click.echo(f"execmem-cts: merge: {problem}", err=True)
        sys.exit(verdict.INFRASTRUCTURE)
    done = judging.judge(header, found, tree.ports, tree.profile, known)
    files.write_all(directory, header, done.results, tree.profile, done.overall)
    (directory / PLAN).write_text(planned)
    layouts.write(directory / layouts.FILE, merging.layouts_of(parts))
    around = _around(done.results, tree, header)
    show(done.results, done.overall, tree.profile, around, Console(highlight=False), quiet, done.judged.notes)
    if not quiet:
        click.echo(f"results: {os.path.relpath(directory)}")
    sys.exit(done.overall.exit_status)
