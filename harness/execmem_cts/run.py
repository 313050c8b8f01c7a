"""One run from manifests to verdict: load, build, plan, pytest, results."""

from __future__ import annotations

import contextlib
import datetime
import difflib
import io
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import (
    __version__,
    build,
    hosted,
    manifest,
    plan,
    plugin,
    profile,
    report,
    requirements,
    results,
    subjects,
    tools,
    verdict,
)
from .gate import judge, sarif, shards
from .html import layouts
from .model import ALLOC, Result, Runner, Subject, TemplateSet, Verdict
from .selection import Filter
from .tree import Tree, load_expectations, load_tree, surroundings_of

MOST_NAMES = 12  # that a message about an unknown one still lists
PYTEST_OK = (0, 1, 5)  # passed, failed, nothing collected: what came of the items says the rest


@dataclass(frozen=True)
class Options:
    root: Path
    subject: str = "ref"
    checkout: Path | None = None
    profile: str = "conform"
    chosen: Filter = field(default_factory=Filter)
    jobs: int = 0  # 0: one a processor
    seed: int = 1
    seconds: float = 30
    expectations: Path | None = None
    results: Path | None = None
    shard: shards.Shard | None = None
    rerun: bool = True  # a check that failed, once, to tell whether it is flaky

    @property
    def build(self) -> Path:
        return self.root / "build"

    @property
    def results_directory(self) -> Path:
        return self.results or self.build / "results"

    @property
    def workers(self) -> int:
        return self.jobs or len(os.sched_getaffinity(0))


@dataclass
class Run:
    """What came of it."""

    header: dict[str, Any]
    results: list[Result]
    overall: verdict.Overall
    profile: profile.Profile
    plan: plan.Plan
    tree: Tree
    notes: list[str] = field(default_factory=list)


def _subject(options: Options, tree: Tree) -> Subject:
    path = manifest.subject_path(options.root, options.subject)
    cache, wanted = options.build / "manifests", options.chosen.ports
    return manifest.load_subject(path, options.root, tree.ports, cache, options.checkout, wanted)


def _known(chosen: Filter, tree: Tree, host_checks: Iterable[str], sets: Sequence[TemplateSet]) -> None:
    """A filter that names what there is not is a mistake of the user's, not an empty run. Raises ManifestError."""
    checks = {check for r in tree.requirements.values() for check in r.checks} | set(host_checks)
    families = {name.split("-", 1)[0] for name in tree.requirements}
    there: list[tuple[str, Sequence[object], set[Any]]] = [
        ("--only", [only.split(".", 1)[0] for only in chosen.only], checks | set(tree.requirements)),
        ("--family", chosen.families, families),
        ("--variant", chosen.variants, {ALLOC} | {s.variant for s in sets}),
        ("--stub-page", chosen.stub_pages, {page for s in sets for page in s.stub_pages}),
        ("--os-page", chosen.os_pages, {p for s in sets for p in s.port.os_pages} | {plan.host_page(), *plan.PAGES}),
    ]
    for option, asked, known in there:
        for strange in sorted(set(asked) - known, key=str):
            names = [str(name) for name in sorted(known)]
            begun = [name for name in names if name.startswith(str(strange))]
            near = begun if 0 < len(begun) <= MOST_NAMES else difflib.get_close_matches(str(strange), names, 3)
            if near:
                there_are = f"did you mean {', '.join(near[:-1])}{' or ' if near[1:] else ''}{near[-1]}?"
            elif len(names) > MOST_NAMES:
                there_are = "`execmem-cts list` shows the requirements and checks"
            else:
                there_are = f"there are {', '.join(names)}"
            raise manifest.ManifestError(f"{option} {strange}: no such thing here; {there_are}")


def prepare(options: Options, note: Callable[[str], None]) -> tuple[Tree, plan.Plan, tools.Tools]:
    """Builds what is wanted and says what is to be run. Raises ManifestError and ToolError."""
    from .oracles import host_checks

    tree = load_tree(options.root, options.profile)
    subject = _subject(options, tree)
    ports = tree.selected(options.chosen)
    if not options.chosen.ports and not subject.everywhere:
        ports = [port for port in ports if port.name in subject.objects]
    found = tools.find()
    names = {port.name for port in ports}
    sets = [s for s in subject.template_sets if s.port.name in names]
    _known(options.chosen, tree, host_checks, sets)
    note("building")
    units = plan.units(sets, options.chosen)
    allocators = [
        p
        for p in ports
        if p.name in subject.objects
        and subjects.allocates(subject)
        and plan.wants_any_alloc(p, subject, options.chosen)
    ]
    if subject.hosted:
        hosted.check(subject, [p for p in ports if p.name in subject.objects], found)
    built = build.build(options.root, options.build, found, units, subject, options.workers, allocators)
    subjects.refuse_unlinked(subject, {**built.errors, **built.alloc_errors})
    note("planning")
    planner = plan.Planner(
        options.root, subject, tree.requirements, host_checks, options.chosen, options.seed, options.seconds
    )
    made = planner.make(built, ports)
    made.sets = sets
    made.notes = hosted.notes(subject, options.root, options.build)
    if built.programs and all(planner.listed.values()):  # a program that cannot be asked says so in its results
        programs = {"po"} | ({"abi"} if built.abi else set()) | ({"alloc"} if built.alloc else set())
        for problem in requirements.lint(tree.requirements, made.checks, programs):
            made.results.append(
                Result("-", "lint", problem.split(":", 1)[0], "-", subject.name, "-", 0, 0, "host", "ERROR", problem)
            )
    return tree, made, found


def _header(options: Options, tree: Tree, made: plan.Plan, found: tools.Tools, planned: str) -> dict[str, Any]:
    ports = tree.selected(options.chosen)
    emulators = {port.emulator_argv[0]: tools.emulator_version(port.emulator_argv[0]) for port in ports}
    header = {
        "execmem_cts": __version__,
        "format": results.FORMAT,
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "compiler": found.version,
        "emulators": {name: version or "missing" for name, version in emulators.items()},
        "native": {name: "yes" if not why else why for name, why in made.natively.items()},
        "subject": options.subject,
        "checkout": str(options.checkout) if options.checkout else "",
        "profile": tree.profile.name,
        "seed": options.seed,
        "timeout": options.seconds,
        "ports": {port.name: port.emulator_argv[0] for port in ports},
        "plan": shards.digest(planned),
        "templates": sarif.places(made.sets, options.root),
        "command": shards.without(sys.argv[1:]),
    }
    header |= {"notes": made.notes} if made.notes else {}
    return header | ({"shard": str(options.shard)} if options.shard else {})


def _pytest(path: Path, options: Options, workers: int, received: Callable[[list[Result]], None]) -> str:
    """Runs the items of the plan file. "" where pytest did its part, else what it said."""
    import pytest

    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # nothing that happens to be installed takes part
    os.environ.pop("PYTEST_ADDOPTS", None)
    (path.parent / "pytest.ini").write_text("[pytest]\n")
    argv = ["-c", str(path.parent / "pytest.ini"), "--rootdir", str(path.parent), "-p", "execmem_cts.plugin"]
    argv += ["-p", "no:cacheprovider", "-p", "no:python", "-p", "no:doctest", "--capture=no", "-q"]
    if workers > 1:
        argv += ["-p", "xdist", "-n", str(workers), "--dist", "loadgroup", "--maxprocesses", str(workers)]
    noise = io.StringIO()
    with contextlib.redirect_stdout(noise), contextlib.chdir(options.root):
        status = pytest.main([*argv, str(path)], plugins=[plugin.Controller(received)])
    return "" if int(status) in PYTEST_OK else f"pytest ended with {int(status)}:\n{noise.getvalue()[-4000:]}"


def _missing(made: plan.Plan, found: Sequence[Result], said: str) -> list[Result]:
    """Items without a result: a worker died, or the user interrupted."""
    have = {result.key.rsplit(".", 1)[0] for result in found}
    lost = [item for item in made.items if f"{item.cell}/{item.check}" not in have]
    interrupted = "ended with 2" in said
    kind = Verdict.NOTRUN if interrupted else Verdict.ERROR
    why = "interrupted" if interrupted else f"the worker process ended before the check did {said[:500]}".strip()
    return [item.result("*", kind, why) for item in lost]


def run(options: Options, note: Callable[[str], None], received: Callable[[int, list[Result]], None]) -> Run:
    """The whole run; `received` is called with the number of items and each item's results as they come in."""
    load_expectations(options.expectations, options.root)  # a mistake in it is told before anything is built
    tree, made, found = prepare(options, note)
    planned = shards.plan_text(made)
    header = _header(options, tree, made, found, planned)
    if options.shard:
        shards.keep(made, options.shard)
    arrived: list[Result] = []

    def take(new: list[Result]) -> None:
        arrived.extend(new)
        received(len(made.items), new)

    said = ""
    if made.items:
        shared = plugin.Shared(options.root, options.build, found, made.configurations, options.rerun)
        note("running")
        # The longest first, so that no worker ends with one.
        made.items.sort(key=lambda item: (item.runner != Runner.HOST.value, -item.stub_page))
        workers = min(options.workers, max(1, len(made.items) // 8))
        with tempfile.TemporaryDirectory(prefix="run-", dir=options.build) as folder:  # runs may go on side by side
            path = plugin.write_plan(Path(folder), made.items, shared)
            said = _pytest(path, options, workers, take)
    everything = made.results + arrived + _missing(made, arrived, said)
    if said and not any(r.verdict in ("ERROR", "NOTRUN") for r in everything):
        point = f"shard-{options.shard.number}" if options.shard else "all"
        everything.append(Result("-", "pytest", point, "-", options.subject, "-", 0, 0, "host", "ERROR", said))
    everything.sort(key=lambda r: r.key)
    known = load_expectations(options.expectations, options.root, tree)
    made_of = judge.judge(header, everything, tree.ports, tree.profile, known)
    results.write_all(options.results_directory, header, made_of.results, tree.profile, made_of.overall)
    (options.results_directory / shards.PLAN).write_text(planned)
    units = {c.build_key: (c.template_set, c.stub_page) for c in made.configurations.values()}
    built = ((*unit, options.build / key / "templates.o") for key, unit in units.items())
    layouts.write(options.results_directory / layouts.FILE, layouts.of_units(built, found.objdump))
    return Run(header, made_of.results, made_of.overall, tree.profile, made, tree, made_of.judged.notes)


def surroundings(options: Options, done: Run) -> report.Surroundings:
    """The same, with the variants' own triples."""
    sets = [c.template_set for c in done.plan.configurations.values()]
    triples = {(s.port.name, s.variant): s.disassembly_triple for s in sets}
    return surroundings_of(options.root, done.header, done.tree, triples)
