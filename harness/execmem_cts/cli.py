"""The command line."""

from __future__ import annotations

import functools
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console

from . import __version__, plan, verdict
from .source import ManifestError
from .tools import ToolError

ROOT = Path(__file__).resolve().parent.parent.parent
F = TypeVar("F", bound=Callable[..., Any])


class Numbers(click.ParamType):
    """A size in bytes: 16384, 0x4000, 16K or 16KiB."""

    name = "SIZE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value)
        for suffix in ("KiB", "K", "k"):
            if text.endswith(suffix):
                text, factor = text.removesuffix(suffix), 1024
                break
        else:
            factor = 1
        try:
            return int(text, 0) * factor
        except ValueError:
            self.fail(f"{value!r} is no size: write 16384, 0x4000 or 16K", param, ctx)


def guarded(command: F) -> F:
    """Manifest errors end with status 2, missing tools with 3; one line each, no traceback."""

    @functools.wraps(command)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except BrokenPipeError:  # whoever reads, a pager or head, has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(verdict.INFRASTRUCTURE)
        except ManifestError as error:
            click.echo(f"execmem-cts: {error}", err=True)
            sys.exit(verdict.USAGE)
        except ToolError as error:
            click.echo(f"execmem-cts: {error}", err=True)
            sys.exit(verdict.INFRASTRUCTURE)
        except KeyboardInterrupt:
            click.echo("execmem-cts: interrupted", err=True)
            sys.exit(130)  # as shells have it: no verdict at all
        except (click.ClickException, click.exceptions.Exit):
            raise
        except Exception:  # a mistake of the harness: Python's own status, 1, would read as a regression
            traceback.print_exc()
            click.echo("execmem-cts: the harness itself failed; this says nothing of the subject", err=True)
            sys.exit(verdict.INFRASTRUCTURE)

    return wrapper  # type: ignore[return-value]


def selection(command: F) -> F:
    """The options that say what is run."""
    for option in reversed(
        (
            click.option("--port", "ports", multiple=True, metavar="PORT", help="This port alone; may be repeated."),
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
                help="A file of known failures ([[expect_fail]]).",
            ),
            click.option(
                "--results", type=click.Path(path_type=Path), help="Folder of the result files. Default: build/results."
            ),
            click.option("--seed", type=int, default=1, show_default=True, help="Of the values that checks use."),
            click.option(
                "--timeout", "seconds", type=float, default=30, show_default=True, help="Seconds for one process."
            ),
            click.option("--gdb", is_flag=True, help="Run the one selected point under gdb-multiarch."),
            click.option("--strace", is_flag=True, help="Run the one selected point and print its system calls."),
            click.option("--quiet", is_flag=True, help="The verdict and the failures, no matrix."),
        )
    ):
        command = option(command)
    return command


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="execmem-cts")
def main() -> None:
    """Is an executable-memory allocator, or a set of thunk templates, right on an architecture?

    \b
    execmem-cts run                        everything, on every port
    execmem-cts run --port arm64           is this port conformant?
    execmem-cts run --port x64 --stub-page 16K --only PO-001
    execmem-cts run --last-failed          only what failed before
    execmem-cts explain PO-001             what a requirement says, and how to mend it
    execmem-cts check-templates --manifest mine.toml --port arm64
    execmem-cts tables dotnet-rw           published figures of others, beside ours
    execmem-cts audit -- node app.js       does a program that is not ours keep W^X?

    Exit status: 0 conformant and as expected, 1 a failure or an unexpected pass, 2 usage or manifest, 3 the suite, a
    tool or an emulator broke, 4 unverified: something that is required was not shown.
    """


@main.command()
@click.option(
    "--subject",
    default="ref",
    show_default=True,
    help="The implementation under test: a name, or a path to a subject.toml.",
)
@selection
@guarded
def run(subject: str, **options: Any) -> None:
    """Build, run, and say what came of it.

    \b
    execmem-cts run --port loongarch64 --os-page 64K
    execmem-cts run --subject ../mine/subject.toml
    execmem-cts run --only po_fault_address.fixup_precode --port x64 --stub-page 4K --os-page 4K --gdb

    A filter other than --port leaves required checks out, so that a run without failures ends as "unverified" (4).
    """
    _run(subject, None, **options)


@main.command("check-templates")
@click.option(
    "--manifest",
    "path",
    required=True,
    type=click.Path(path_type=Path),
    help="The subject.toml that describes the templates, or the name of one in conformance/subjects.",
)
@click.option(
    "--checkout",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Root of the sources: what {checkout} in the manifest stands for.",
)
@selection
@guarded
def check_templates(path: Path, checkout: Path | None, **options: Any) -> None:
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
    _run(str(path), checkout, **options)


def _filter(options: dict[str, Any], results_directory: Path) -> plan.Filter:
    keys = None
    if options["last_failed"]:
        from . import results

        _, before = results.read(results_directory / results.JSON_LINES)
        keys = frozenset(r.key for r in before if r.verdict in verdict.RED)
        if not keys:
            raise ManifestError("--last-failed: nothing failed in the last run; run without it")
    return plan.Filter(
        ports=options["ports"],
        variants=options["variants"],
        stub_pages=options["stub_pages"],
        os_pages=options["os_pages"],
        families=options["families"],
        only=options["only"],
        keys=keys,
        native=options["native"],
    )


def _run(subject: str, checkout: Path | None, **options: Any) -> None:
    from . import debug, progress, report
    from . import run as running

    directory = options["results"].absolute() if options["results"] else None
    made = running.Options(
        root=ROOT,
        subject=os.path.abspath(subject) if "/" in subject or subject.endswith(".toml") else subject,
        checkout=checkout,
        profile=options["profile"],
        chosen=_filter(options, directory or ROOT / "build" / "results"),
        jobs=options["jobs"] or 0,
        seed=options["seed"],
        seconds=options["seconds"],
        expectations=options["expectations"],
        results=directory,
    )
    if options["gdb"] or options["strace"]:
        sys.exit(debug.run(made, options["gdb"]))
    console = Console(highlight=False)
    with progress.Progress(Console(stderr=True)) as shown:
        done = running.run(made, shown.note, shown.received)
    around = running.surroundings(made, done)
    report.failures(done.results, around, console)
    if not options["quiet"]:
        report.matrix(done.results, done.profile, console)
        report.pages(done.results, done.profile, console)
    report.open_results(done.results, done.profile, console)
    report.verdict_line(done.overall, console)
    if not options["quiet"]:
        console.print(f"results: {os.path.relpath(made.results_directory)}", soft_wrap=True)
    sys.exit(done.overall.exit_status)


@main.command("list")
@click.option("--port", "ports", multiple=True, metavar="PORT", help="This port alone.")
@guarded
def list_command(ports: tuple[str, ...]) -> None:
    """The checks, their requirements, and what each tests."""
    from . import run as running

    tree, made, _ = running.prepare(running.Options(root=ROOT, chosen=plan.Filter(ports=ports)), lambda text: None)
    for check, requirement in sorted(made.checks.items(), key=lambda entry: (entry[1], entry[0])):
        runner = {item.runner for item in made.items if item.check == check}
        click.echo(f"{requirement}  {check:<20} {','.join(sorted(runner)):<16} {made.texts[check]}")


@main.command()
@click.argument("identifier", metavar="ID")
@guarded
def explain(identifier: str) -> None:
    """What a requirement says, where it comes from, what tests it, and how to mend a failure.

    \b
    execmem-cts explain PO-001
    execmem-cts explain po_fault_address
    """
    from . import requirements

    known = requirements.load(ROOT)
    check = identifier.split(".", 1)[0]
    found = [r for r in known.values() if r.id == identifier.upper() or check in r.checks]
    if not found:
        raise ManifestError(f"explain {identifier}: no such requirement or check; `execmem-cts list` shows them")
    for requirement in found:
        click.echo(f"{requirement.id} ({requirement.level}, since {requirement.since})\n  {requirement.text}")
        click.echo(
            f"  source: {requirement.source}\n  checks: {', '.join(requirement.checks)}\n  mend:   {requirement.mend}"
        )


@main.command()
@guarded
def ports() -> None:
    """The ports of this tree: triple, emulator, page sizes, templates, variants."""
    from . import manifest, matrix, tools

    found = manifest.discover_ports(ROOT, ROOT / "build" / "manifests")
    subject = manifest.load_subject(manifest.subject_path(ROOT, "ref"), ROOT, found, ROOT / "build" / "manifests")
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


@main.command()
@click.option(
    "--results",
    type=click.Path(path_type=Path),
    default=None,
    help="Folder of the result files. Default: build/results.",
)
@click.option("--profile", default="conform", show_default=True, help="What is required: a name, or a file.")
@guarded
def report(results: Path | None, profile: str) -> None:
    """Show the last run again, from its results file, judged by a profile."""
    from . import report as reporting
    from . import results as files
    from . import run as running

    header, found = files.read((results or ROOT / "build" / "results") / files.JSON_LINES)
    tree = running.load_tree(ROOT, profile)
    overall = verdict.overall(found, tree.profile)
    console = Console(highlight=False)
    around = running.surroundings_of(ROOT, header, tree, {})
    reporting.failures(found, around, console)
    reporting.matrix(found, tree.profile, console)
    reporting.pages(found, tree.profile, console)
    reporting.open_results(found, tree.profile, console)
    reporting.verdict_line(overall, console)
    sys.exit(overall.exit_status)


@main.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--full", is_flag=True, help="On every port that a fault can be planted on, not on the first alone.")
@click.option("--jobs", type=click.IntRange(1), default=2, show_default=True, help="Faults at a time.")
@click.option("--work", type=click.Path(path_type=Path), help="Where the broken copies go. Default: build/faults.")
@guarded
def faults(names: tuple[str, ...], full: bool, jobs: int, work: Path | None) -> None:
    """Plant each fault in a copy of the tree, and see whether the suite finds it, where it should and nowhere else.

    A fault that stays unseen, or that turns other requirements red, fails; so does a check that no fault turns red.
    """
    from . import faults as planted
    from .run import Options
    from .run import run as run_checks
    from . import requirements

    try:
        known = planted.load_all(ROOT)
    except planted.FaultError as error:
        raise ManifestError(str(error)) from error
    strange = sorted(set(names) - {fault.name for fault in known})
    if strange:
        raise ManifestError(f"faults {strange[0]}: no such fault in conformance/faults/")
    chosen = [fault for fault in known if not names or fault.name in names]

    def show(outcome: planted.Outcome) -> None:
        red = ", ".join(sorted(outcome.red)) or "nothing"
        word = "wrong" if outcome.problems else "found"
        click.echo(f"{word}  {outcome.fault.name} on {outcome.planting.port}: {red} red")
        for problem in outcome.problems:
            click.echo(f"       {problem}")

    ports = tuple(sorted({p.port for fault in chosen for p in (fault.plantings if full else fault.plantings[:1])}))
    # What is red without a fault would be taken for found.
    options = Options(
        root=ROOT, chosen=plan.Filter(ports=ports), jobs=jobs, results=ROOT / "build" / "faults" / "unbroken"
    )
    unbroken = run_checks(options, lambda said: None, lambda total, new: None)
    if unbroken.overall.exit_status != verdict.CONFORMANT:
        click.echo(
            f"execmem-cts: the tree itself is not conformant ({unbroken.overall.reason}): mend that first", err=True
        )
        sys.exit(unbroken.overall.exit_status)
    click.echo(f"unbroken: {unbroken.overall.word} on {', '.join(ports)}")
    outcomes = planted.run_all(ROOT, work or ROOT / "build" / "faults", chosen, full, jobs, show)
    wrong = sum(bool(outcome.problems) for outcome in outcomes)
    alive: list[str] = []
    if not names:
        checks = [check for r in requirements.load(ROOT).values() for check in r.checks]
        alive = planted.unkilled(outcomes, checks)
        for check in alive:
            click.echo(f"unproved  {check}: no fault turns it red")
    click.echo(f"{len(outcomes)} planted, {wrong} not as they should be, {len(alive)} checks unproved")
    sys.exit(verdict.REGRESSION if wrong or alive else verdict.CONFORMANT)


@main.group()
def tables() -> None:
    """Published figures of other allocators, beside what this one does.

    \b
    execmem-cts tables dotnet-rw           .NET's cache of RW mappings (dotnet/runtime#83632)

    These are no checks: nothing here passes or fails. They need x86-64, a C library and a compiler, and run natively.
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
    from .progress import Progress
    from .tables import dotnet, dotnet_rw, replay
    from .tables import trace as tracing

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


@main.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--port", metavar="PORT", help="Run it under this port's emulator. Default: natively, under strace.")
@click.option("--json", "json_file", metavar="FILE", default="", help="Every finding, as JSON; - is standard output.")
@click.option("--report", type=click.Path(path_type=Path), help="The table goes there. Default: standard error.")
@click.option("--log", type=click.Path(path_type=Path), help="Keep the runner's own log there, to follow by eye.")
@click.option("--all", "everything", is_flag=True, help="A row for each finding; otherwise one for a mapping and kind.")
@click.option("--quiet", is_flag=True, help="The verdict alone, no table.")
@click.option("--quiet-program", is_flag=True, help="Throw the program's own output away.")
@click.option("--allow", "allowed", multiple=True, metavar="KIND", help="A note, no violation: --allow w-then-x.")
@click.option("--deny", "denied", multiple=True, metavar="KIND", help="A violation, no note: --deny alias.")
@click.option("--timeout", "seconds", type=float, default=None, help="Seconds after which the program is ended.")
@click.option("--page-size", type=Numbers(), default=0, help="Hold lengths and offsets against this, such as 64K.")
@click.option(
    "--sysroot",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder with the C library of a --port: the emulator's -L.",
)
@click.option(
    "--emulator-arg", "emulator_args", multiple=True, metavar="ARG", help="One more argument for the emulator."
)
@click.option(
    "--plugin/--no-plugin",
    default=None,
    help="Insist on the emulator's plugin, or on its -strace. Default: the plugin where it loads.",
)
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED)
@guarded
def audit(
    program: tuple[str, ...],
    port: str | None,
    json_file: str,
    report: Path | None,
    log: Path | None,
    everything: bool,
    quiet: bool,
    quiet_program: bool,
    allowed: tuple[str, ...],
    denied: tuple[str, ...],
    seconds: float | None,
    page_size: int,
    sysroot: Path | None,
    emulator_args: tuple[str, ...],
    plugin: bool | None,
) -> None:
    """Does a program that is not ours keep W^X? Runs it, follows its memory calls, reports what breaks it.

    \b
    execmem-cts audit -- node app.js
    execmem-cts audit --json audit.json --quiet-program -- java -cp . Main
    execmem-cts audit --allow w-then-x -- luajit script.lua
    execmem-cts audit --port arm64 --sysroot /usr/aarch64-linux-gnu -- ./program

    \b
    violations  rwx            writable and executable at once
                w-then-x       executable by mprotect after it was writable
                view-at-end    writable view of executable memory held to the end, or to an exec
                sub-page       executable memory asked for in parts of pages
                rwx-image      program file with a writable and executable segment, or an executable stack
    notes       alias          writable view of executable memory, and for how long it was held
                published      executable mapping of a file that had been written through a mapping
                x-by-mprotect  executable by mprotect, never writable
                process-memory /proc/PID/mem opened for writing
                sub-page-data  as sub-page, on other memory

    The program keeps its input, output and errors; what was found goes to standard error when it has ended. Natively it
    runs under strace with its threads and children. With --port it runs under the emulator, whose plugin tells every call
    where it loads one, and else its -strace, which is good for single-threaded programs only.

    Exit status: 0 no violation, 1 violations, 2 usage, 3 a tool is missing or cannot work here, 4 no violation was seen,
    but not everything could be seen. The program's own exit status is in the report.
    """
    from .audit import command
    from .audit.session import Request

    if page_size and (page_size < 1024 or page_size & (page_size - 1)):
        raise ManifestError(f"--page-size {page_size}: expected a power of two from 1024 up")
    if seconds is not None and seconds <= 0:
        raise ManifestError(f"--timeout {seconds}: expected seconds, more than 0")
    if plugin is not None and port is None:
        raise ManifestError("--plugin is for an emulator: name its port with --port")
    request = Request(
        argv=program,
        sysroot=sysroot,
        emulator_args=emulator_args,
        page_size=page_size,
        quiet_program=quiet_program,
        output_to_errors=json_file == "-",
        seconds=seconds,
        plugin=plugin,
        log=log,
    )
    wanted = command.Wanted(json_file, report, everything, allowed, denied, quiet)
    sys.exit(command.run(ROOT, port, request, wanted))
