"""Running the suite, and what is there to run: run, check-templates, list, explain, ports."""

from __future__ import annotations

import os
import sys
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from .. import verdict
from ..source import ManifestError
from .base import ROOT, F, Numbers, guarded, main, with_port_path
from .showing import show
from .subjects import CHECKOUT, SUBJECT_PATH, resolved

if TYPE_CHECKING:
    from ..selection import Filter


def selection(command: F) -> F:
    """The options that say what is run."""
    for option in reversed(
        (
            SUBJECT_PATH,
            CHECKOUT,
            click.option("--port", "ports", multiple=True, metavar="PORT", help="This port alone; may be repeated."),
            with_port_path,
            click.option(
                "--variant", "variants", multiple=True, metavar="NAME", help="A variant of the templates, such as ibt."
            ),
            click.option(
                "--stub-page", "stub_pages", multiple=True, type=Numbers(), help="A stub page size: 16384 or 16K."
            ),
            click.option(
                "--os-page",
                "os_pages",
                multiple=True,
                type=Numbers(),
                help="An OS page size, where a runner shows it; with every stub page size, not the smallest alone.",
            ),
            click.option(
                "--family", "families", multiple=True, metavar="FAMILY", help="A family of requirements, such as PO."
            ),
            click.option(
                "--only", multiple=True, metavar="ID", help="A requirement, a check, or one point: CHECK.POINT."
            ),
            click.option("--last-failed", is_flag=True, help="What failed in the last run, and nothing else."),
            click.option(
                "--native/--no-native",
                default=None,
                help="Insist on native runs, or leave them out. Default: where it works.",
            ),
            click.option(
                "--jobs", type=click.IntRange(1), default=None, help="Parallel processes. Default: one a processor."
            ),
            click.option(
                "--profile", default="conform", show_default=True, help="What is required: a name, or a file."
            ),
            click.option(
                "--expect",
                "expectations",
                type=click.Path(path_type=Path),
                help="A file of known failures: `execmem-cts gate --help` has its grammar.",
            ),
            click.option(
                "--shard",
                metavar="NUMBER/COUNT",
                help="This part of the run alone, such as 2/4; auto: as GitLab, Kubernetes or Slurm says. See `merge`.",
            ),
            click.option(
                "--results", type=click.Path(path_type=Path), help="Folder of the result files. Default: build/results."
            ),
            click.option("--seed", type=int, default=1, show_default=True, help="Of the values that checks use."),
            click.option(
                "--timeout", "seconds", type=float, default=30, show_default=True, help="Seconds for one process."
            ),
            click.option(
                "--rerun/--no-rerun",
                default=True,
                help="Run a check that failed once more, to mark it as flaky where it passes. It stays red either way.",
            ),
            click.option("--gdb", is_flag=True, help="Run the one selected point under gdb-multiarch."),
            click.option("--strace", is_flag=True, help="Run the one selected point and print its system calls."),
            click.option("--quiet", is_flag=True, help="The verdict and the failures, no matrix."),
        )
    ):
        command = option(command)
    return command


@main.command()
@click.option(
    "--subject",
    default="ref",
    show_default=True,
    help="The implementation under test: a name (`execmem-cts subjects`), or a path to a subject.toml.",
)
@selection
@guarded
def run(subject: str, **options: Any) -> None:
    """Build, run, and say what came of it.

    \b
    execmem-cts run --port loongarch64 --os-page 64K
    execmem-cts run --subject ../mine/subject.toml
    execmem-cts run --subject-path ../allocators --subject mine
    execmem-cts run --only po_fault_address.fixup_precode --port x64 --stub-page 4K --os-page 4K --gdb

    A filter other than --port leaves required checks out, so that a run without failures ends as "unverified" (4).
    """
    _run(subject, **options)


@main.command("check-templates")
@click.option(
    "--manifest",
    "path",
    required=True,
    type=click.Path(path_type=Path),
    help="The subject.toml that describes the templates, or the name of one in conformance/subjects.",
)
@selection
@guarded
def check_templates(path: Path, **options: Any) -> None:
    """Prove thunk templates that are not ours.

    \b
    execmem-cts check-templates --manifest dotnet-runtime --checkout ~/src/runtime
    execmem-cts check-templates --manifest libffi --checkout ~/src/libffi --port arm64
    execmem-cts check-templates --manifest mine/subject.toml --only po_decode_access
    execmem-cts check-templates --manifest mine/subject.toml

    The manifest names assembly files, include directories and, for each template, symbols, slot pitch, record and paths.
    conformance/subjects/README.md tells step by step how it is written. Nothing of the sources' own build is needed:
    clang assembles them here.

    Each distance is then judged by its disassembly, by the address that faults when the template runs, by the emulator
    that watches, and by the last page size that assembles; arrival, registers, stack and barriers as for `run`. What
    needs an allocator (filling pages, choosing their size) is not claimed. --only po_decode_access needs no emulator
    and tells most mistakes of a new manifest.
    """
    _run(str(path), **options)


def _filter(options: dict[str, Any], results_directory: Path) -> Filter:
    from ..selection import Filter

    keys = None
    if options["last_failed"]:
        from .. import results

        _, before = results.read(results_directory / results.JSON_LINES)
        keys = frozenset(r.key for r in before if r.verdict in verdict.RED)
        if not keys:
            raise ManifestError("--last-failed: nothing failed in the last run; run without it")
    return Filter(
        ports=options["ports"],
        variants=options["variants"],
        stub_pages=options["stub_pages"],
        os_pages=options["os_pages"],
        families=options["families"],
        only=_today(options["only"]),
        keys=keys,
        native=options["native"],
    )


def _today(only: tuple[str, ...]) -> tuple[str, ...]:
    """What --only names, under the names of today."""
    from .. import requirements
    from ..gate import aliases

    checks = {check for one in requirements.load(ROOT).values() for check in one.checks} if only else set()
    renamed = aliases.load(ROOT, checks) if only else {}
    for name in only:
        check = name.partition(".")[0]
        if check in renamed:
            click.echo(f"note: --only {check}: it is called {renamed[check]} now", err=True)
    return aliases.today(only, renamed)


def execute(subject: str, **options: Any) -> tuple[Any, Any]:
    """Runs the suite with the options of `run`: what it was asked, and what came of it."""
    from .. import debug, progress
    from .. import run as running
    from ..gate import shards

    directory = options["results"].absolute() if options["results"] else None
    made = running.Options(
        root=ROOT,
        subject=resolved(subject, options["subject_path"]),
        checkout=options["checkout"],
        profile=options["profile"],
        chosen=_filter(options, directory or ROOT / "build" / "results"),
        jobs=options["jobs"] or 0,
        seed=options["seed"],
        seconds=options["seconds"],
        expectations=options["expectations"],
        results=directory,
        shard=shards.wanted(options["shard"], os.environ),
        rerun=options["rerun"],
    )
    if options["gdb"] or options["strace"]:
        sys.exit(debug.run(made, options["gdb"]))
    with progress.Progress(Console(stderr=True)) as shown:
        return made, running.run(made, shown.note, shown.received)


def _run(subject: str, **options: Any) -> None:
    from .. import run as running

    made, done = execute(subject, **options)
    console = Console(highlight=False)
    around = running.surroundings(made, done)
    show(done.results, done.overall, done.profile, around, console, options["quiet"], done.notes)
    if not options["quiet"]:
        console.print(f"results: {os.path.relpath(made.results_directory)}", soft_wrap=True)
    sys.exit(done.overall.exit_status)


@main.command("list")
@click.option("--port", "ports", multiple=True, metavar="PORT", help="This port alone.")
@with_port_path
@guarded
def list_command(ports: tuple[str, ...]) -> None:
    """The checks, their requirements, and what each tests."""
    from .. import run as running
    from ..selection import Filter

    tree, made, _ = running.prepare(running.Options(root=ROOT, chosen=Filter(ports=ports)), lambda text: None)
    for check, requirement in sorted(made.checks.items(), key=lambda entry: (entry[1], entry[0])):
        runner = {item.runner for item in made.items if item.check == check}
        click.echo(f"{requirement}  {check:<20} {','.join(sorted(runner)):<16} {made.texts[check]}")


@main.command()
@click.argument("identifier", metavar="ID")
@with_port_path
@guarded
def explain(identifier: str) -> None:
    """What a requirement says, where it comes from, what tests it, and how to mend a failure.

    \b
    execmem-cts explain PO-001
    execmem-cts explain po_fault_address
    """
    from .. import manifest, requirements

    known = requirements.load(ROOT)
    ports = manifest.discover_ports(ROOT, ROOT / "build" / "manifests")
    check = identifier.split(".", 1)[0]
    found = [r for r in known.values() if r.id == identifier.upper() or check in r.checks]
    if not found:
        raise ManifestError(f"explain {identifier}: no such requirement or check; `execmem-cts list` shows them")
    for requirement in found:
        click.echo(f"{requirement.id} ({requirement.level}, since {requirement.since})\n  {requirement.text}")
        click.echo(
            f"  source: {requirement.source}\n  checks: {', '.join(requirement.checks)}\n  mend:   {requirement.mend}"
        )
        for entry in (entry for port in ports.values() for entry in port.unshown):
            if fnmatchcase(requirement.id, entry.requirement):
                click.echo(f"  not shown on {entry.port}, {entry.runner}: {entry.reason}")


@main.command()
@with_port_path
@guarded
def ports() -> None:
    """The ports of this tree, and of --port-path: triple, emulator, page sizes, templates, variants."""
    from .. import faults, manifest, matrix, tools

    found = manifest.discover_ports(ROOT, ROOT / "build" / "manifests")
    subject = manifest.load_subject(manifest.subject_path(ROOT, "ref"), ROOT, found, ROOT / "build" / "manifests")
    plantings = [{planting.port for planting in fault.plantings} for fault in faults.load_all(ROOT)]
    for port in found.values():
        sets = [s for s in subject.template_sets if s.port.name == port.name]
        program = port.emulator_argv[0]
        version = tools.emulator_version(program) or f"{program} is missing: toolchains/setup"
        click.echo(f"{port.name}: {port.triple}, {port.pointer_bytes * 8} bits, {port.endianness}-endian")
        click.echo(f"  emulator    {version}")
        click.echo(f"  stub pages  {', '.join(map(matrix.size_text, port.stub_pages))}")
        click.echo(f"  OS pages    {', '.join(map(matrix.size_text, port.os_pages))}")
        click.echo(
            f"  variants    {', '.join(s.variant + (' (landing pads)' if s.landing_pads else '') for s in sets)}"
        )
        for template in sets[0].templates if sets else ():
            fields = ", ".join(f"{f.name} at {f.offset}" for f in template.fields)
            click.echo(f"  {template.name}: a slot of {template.pitch} bytes; {fields}")
        click.echo(f"  faults      {sum(port.name in planted for planted in plantings)} can be planted here")
