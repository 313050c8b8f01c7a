"""What every command shows that ends with a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from ..model import Result
from ..profile import Profile
from ..verdict import Overall

if TYPE_CHECKING:
    from ..report import Surroundings


def show(
    results: Sequence[Result],
    overall: Overall,
    profile: Profile,
    around: Surroundings,
    console: Console,
    quiet: bool = False,
    notes: Sequence[str] = (),
) -> None:
    """Failures, the matrix unless `quiet`, what is open, what was found beside the results, the verdict."""
    from .. import report

    report.failures(results, around, console)
    if not quiet:
        report.matrix(results, profile, console)
        report.pages(results, profile, console)
    report.open_results(results, profile, console)
    for note in (*notes, *around.header.get("notes", ())):
        console.print(Text(f"note: {note}", style="dim"), soft_wrap=True)
    for finding in overall.findings:
        console.print(Text(str(finding), style="bold red"), soft_wrap=True)
    if overall.findings:
        console.print()
    report.verdict_line(overall, console)
