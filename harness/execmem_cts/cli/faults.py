"""faults: does the suite find what is broken on purpose?"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from .. import verdict
from ..source import ManifestError
from .base import ROOT, guarded, main, with_port_path


@main.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--full", is_flag=True, help="On every port that a fault can be planted on, not on the first alone.")
@click.option("--jobs", type=click.IntRange(1), default=2, show_default=True, help="Faults at a time.")
@click.option("--work", type=click.Path(path_type=Path), help="Where the broken copies go. Default: build/faults.")
@with_port_path
@guarded
def faults(names: tuple[str, ...], full: bool, jobs: int, work: Path | None) -> None:
    """Plant each fault in a copy of the tree, and see whether the suite finds it, where it should and nowhere else.

    A fault that stays unseen, or that turns other requirements red, fails; so does a check that no fault turns red.
    """
    from .. import faults as planted
    from ..run import Options
    from ..run import run as run_checks
    from ..selection import Filter
    from .. import requirements

    known = planted.load_all(ROOT)
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
    options = Options(root=ROOT, chosen=Filter(ports=ports), jobs=jobs, results=ROOT / "build" / "faults" / "unbroken")
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
