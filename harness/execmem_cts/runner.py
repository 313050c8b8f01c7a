"""Runs the checks of a configuration and says what came of each of their points.

A process for each check is what failures are told by. Checks that pass may share one: starting an emulator and having it
translate the same stub pages again for each check costs it several times what the checks do.

A PASS comes only from a process that ended as it should: complete line, right nonce, at least one assertion, the page
sizes that were asked for. What a dying process did not get to, or had not yet sealed, is run again alone, so that one
crash hides no other point.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from . import ktap, process
from .model import Result, Verdict
from .tools import emulator_package

TAIL = 4000  # characters of a program's output kept in a result


class Run(Protocol):
    """Start, time and end of a program: what `process.run` does, or a test's stand-in."""

    def __call__(self, argv: Sequence[str], seconds: float, *, renewed_by: bytes = b"") -> process.Ended:
        ...


@dataclass(frozen=True)
class Item:
    """One check in one configuration: what one pytest item runs. Plain data, so that it can lie in the plan file."""

    requirement: str
    check: str
    points: tuple[str, ...]
    port: str
    subject: str
    variant: str
    stub_page: int
    os_page: int
    runner: str
    emulator: tuple[str, ...]  # empty: native
    program: str
    seed: int
    seconds: float
    only: str = ""  # one point alone
    host: bool = False  # judged by the harness: oracles.host_checks
    page: int = 0  # the page size that the program is told to simulate; 0: none
    rounds: int = 1  # how often it tries sequences at random

    @property
    def cell(self) -> str:
        return f"{self.port}/{self.subject}/{self.variant}-{self.stub_page}/{self.os_page}/{self.runner}"

    @property
    def key(self) -> str:
        return f"{self.cell}/{self.check}" + (f".{self.only}" if self.only else "")

    @property
    def wanted(self) -> tuple[str, ...]:
        """The points that are to be reported."""
        return (self.only,) if self.only else self.points or ("all",)

    @property
    def alike(self) -> tuple[str, ...]:
        """Items that are alike in this can share the start of their program."""
        return (self.cell, self.program)

    def argv(self, point: str = "", nonce: str = "") -> list[str]:
        """The command, to be run from the project's root."""
        only = f"{self.check}.{point}" if point else self.check
        argv = [*self.emulator, self.program, "--only", only, *self.settings]
        return argv + (["--nonce", nonce] if nonce else [])

    @property
    def settings(self) -> list[str]:
        """What its program is told in any case."""
        page = ["--page", str(self.page)] if self.page else []
        rounds = ["--rounds", str(self.rounds)] if self.rounds > 1 else []
        return ["--seed", str(self.seed), *page, *rounds]

    def result(
        self, point: str, verdict: Verdict | str, message: str = "", ended: process.Ended | None = None
    ) -> Result:
        """A result of this item with its configuration filled in."""
        return Result(
            requirement=self.requirement,
            check=self.check,
            point=point,
            port=self.port,
            subject=self.subject,
            variant=self.variant,
            stub_page=self.stub_page,
            os_page=self.os_page,
            runner=self.runner,
            verdict=verdict.value if isinstance(verdict, Verdict) else verdict,
            message=message,
            argv=self.argv(point if point != "*" else ""),
            seconds=round(ended.seconds, 4) if ended else 0.0,
        )


@dataclass(frozen=True)
class _Attempt:
    """One process: what it printed, and what is wrong with the way it ended ("" where nothing is)."""

    ended: process.Ended
    output: ktap.Output
    verdict: Verdict
    problem: str


def classify(ended: process.Ended, emulated: bool, seconds: float) -> tuple[Verdict, str]:
    """The verdict on the way a process ended: PASS where there is nothing to say."""
    if ended.flooded:
        return Verdict.FAIL, f"wrote more than {process.CAP} bytes and was ended"
    if ended.status is None:
        return Verdict.FAIL, f"time-out: did not end within {seconds:g} s"
    if emulated and re.search(r"QEMU internal SIG[A-Z]+", ended.errors):
        return Verdict.ERROR, f"the emulator crashed: {_last_line(ended.errors)}"
    if ended.status < 0:
        return Verdict.FAIL, f"killed by {ended.signal_name}"
    if emulated and not ended.output and re.match(r"qemu|.*: .*(page size|Unable to|Could not)", ended.errors.strip()):
        return Verdict.ERROR, f"the emulator refused: {_last_line(ended.errors)}"
    if ended.status == 3:
        return (
            Verdict.ERROR,
            f"the suite could not go on: {_why_broken(ended.output) or _last_line(ended.output + ended.errors)}",
        )
    if ended.status not in (0, 1):
        return Verdict.ERROR, f"exit status {ended.status}: {_last_line(ended.errors or ended.output)}"
    return Verdict.PASS, ""


def _why_broken(output: str) -> str:
    """The line by which check_broken says why; the last system calls follow it."""
    return next((line for line in output.splitlines() if line.startswith("# broken ")), "")


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "it said nothing"


def again(item: Item, run: Run = process.run) -> dict[str, str]:
    """Verdicts by point of one more process of the item's own: only of one that ended as it should."""
    attempt = _attempt(item, item.only, run)
    return {} if attempt.problem else {name: point.verdict for name, point in _by_point(item, attempt).items()}


def _attempt(item: Item, point: str, run: Run) -> _Attempt:
    nonce = secrets.token_hex(6)
    return _judged(item, run(item.argv(point, nonce), item.seconds), nonce)


def _judged(item: Item, ended: process.Ended, nonce: str) -> _Attempt:
    verdict, problem = classify(ended, bool(item.emulator), item.seconds)
    try:
        output = ktap.parse(ended.output)
    except ktap.KtapError as error:
        output = error.args[1]
        output.nonce = None
        if not problem:
            verdict, problem = Verdict.FAIL, f"ended without a result: {error.args[0]}"
    if not problem:
        verdict, problem = _judge(item, ended, output, nonce)
    return _Attempt(ended, output, verdict, problem)


def _judge(item: Item, ended: process.Ended, output: ktap.Output, nonce: str) -> tuple[Verdict, str]:
    """A process that ended by itself: is what it printed to be believed?"""
    failed = [point for point in output.points if point.verdict == "FAIL"]
    if not output.complete:
        return Verdict.FAIL, "ended without a result: no `# complete` line"
    if output.nonce != nonce:
        return Verdict.FAIL, f"ended without a result: nonce {output.nonce!r} is not the one given"
    if not output.points:
        return Verdict.FAIL, "ended without a result: no point was reported"
    if any(point.verdict in ("PASS", "FAIL") for point in output.points) and not output.assertions:
        return Verdict.FAIL, "ended without a result: nothing was asserted"
    if (ended.status == 1) != bool(failed):
        return Verdict.FAIL, f"exit status {ended.status} with {len(failed)} failed points"
    if output.stub_page != item.stub_page:
        return Verdict.ERROR, f"built for stub pages of {output.stub_page} bytes, expected {item.stub_page}"
    return Verdict.PASS, ""


def _missing_emulator(item: Item, error: OSError) -> str:
    if item.emulator and error.filename == item.emulator[0]:
        package = emulator_package(item.emulator[0])
        return f"the emulator {item.emulator[0]} is missing: install the package {package}, or run toolchains/setup"
    return f"cannot be started: {error}"


def _reported(item: Item, point: ktap.Point, attempt: _Attempt) -> Result:
    """A point that its program reported. An OS page size that was not seen is not shown."""
    name = point.name.split(".", 1)[1]
    seen = attempt.output.os_page
    result = item.result(name, point.verdict, point.reason, attempt.ended)
    result.seconds = round(attempt.ended.seconds / len(attempt.output.points), 4)  # of one process; its points share it
    result.diagnostics = dict(point.diagnostics)
    if point.verdict == "FAIL":
        result.message = point.diagnostics.get("message", "failed without a message")
        if attempt.problem:  # the program could still say what happened before it was ended
            result.message += f" ({attempt.problem})"
    if seen and seen != item.os_page and point.verdict == "PASS":
        result.verdict = Verdict.EMU.value
        result.message = f"asked for an OS page of {item.os_page} bytes, the program saw {seen}"
    return result


def _lost(item: Item, name: str, attempt: _Attempt, point: ktap.Point | None = None) -> Result:
    """A point whose process did not end as it should."""
    result = item.result(name, attempt.verdict, attempt.problem, attempt.ended)
    result.diagnostics = dict(point.diagnostics) if point else {}
    result.log = (attempt.ended.output[-TAIL:] + attempt.ended.errors[-TAIL:]).strip()
    return result


def _by_point(item: Item, attempt: _Attempt) -> dict[str, ktap.Point]:
    """The reported points by name; one of another check keeps its whole name, which nobody asked for."""
    return {point.name.removeprefix(f"{item.check}."): point for point in attempt.output.points}


def _alone(item: Item, name: str, run: Run) -> Result:
    attempt = _attempt(item, name, run)
    points = _by_point(item, attempt)
    if attempt.problem and not (name in points and points[name].verdict == "FAIL"):
        return _lost(item, name, attempt, points.get(name))
    if name not in points:
        result = item.result(name, Verdict.FAIL, f"ended without a result: reported {', '.join(points)}", attempt.ended)
        return result
    return _reported(item, points[name], attempt)


def _settle(item: Item, wanted: Sequence[str], first: _Attempt, run: Run) -> list[Result]:
    """Each wanted point's result from the first attempt where that can be believed, else from a run of the point alone."""
    reported = _by_point(item, first)
    results = []
    for name in wanted:
        point = reported.pop(name, None)
        # A failure stands even where the process died later; a pass needs a process that ended well.
        if point is not None and (not first.problem or point.verdict == "FAIL"):
            results.append(_reported(item, point, first))
        else:
            results.append(_alone(item, name, run))
    if first.problem and not any(r.verdict in ("FAIL", "ERROR") for r in results):
        # It does not come again when each point runs alone: told all the same, at the point that was under way.
        done = {point.name.split(".", 1)[1] for point in first.output.points}
        at = next((i for i, name in enumerate(wanted) if name not in done), len(wanted) - 1)
        results[at] = _lost(item, wanted[at], first)
        results[at].message += "; alone, each point passes"
        results[at].flaky = True
    for name in reported:
        results.append(item.result(name, Verdict.ERROR, "reported, but not in the program's --list", first.ended))
    return results


def run_item(item: Item, run: Run = process.run) -> list[Result]:
    """One result for each of the item's points; never none. Does not raise."""
    try:
        if len(item.wanted) == 1:
            return [_alone(item, item.wanted[0], run)]
        return _settle(item, item.wanted, _attempt(item, "", run), run)
    except OSError as error:
        return [item.result(name, Verdict.ERROR, _missing_emulator(item, error)) for name in item.wanted]


_EACH = re.compile(
    r"^# each begin (?P<id>\w+) status=0\n(?P<said>.*?)(?:^# each end (?P=id) (?P<how>status|signal)=(?P<number>\d+)\n|\Z)",
    re.M | re.S,
)


def run_together(items: Sequence[Item], run: Run = process.run) -> list[Result]:
    """The items of one cell, with few starts of the emulator.

    First all in one process. Where that ends as it should, what passed is believed. The rest, or else all, is run again,
    each check in a process of its own that the program forks (`--each`), and judged as if it had been started for it
    alone: a failure stands, and trouble that does not come again when the check runs by itself is told all the same.
    Only what was never begun is started anew.
    """
    if len(items) < 2:
        return [result for item in items for result in run_item(item, run)]
    try:
        nonce = secrets.token_hex(6)
        whole = _judged(items[0], run(_shared_argv(items, nonce), items[0].seconds), nonce)
        rest = [item for item in items if not _passed(item, whole)]
        points = {point.name: point for point in whole.output.points}
        believed = [
            _reported(item, points[f"{item.check}.{name}"], whole)
            for item in items
            if item not in rest
            for name in item.wanted
        ]
        again = _in_one_start(rest, run) if rest else []
    except OSError:
        return [result for item in items for result in run_item(item, run)]
    strange = sorted(set(points) - {f"{item.check}.{name}" for item in items for name in item.wanted})
    if strange:
        said = f"{', '.join(strange)}: reported, but not in the program's --list"
        believed.append(items[-1].result("*", Verdict.ERROR, said, whole.ended))
    if not any(result.verdict in ("FAIL", "ERROR") for result in believed + again):
        _tell(whole, again)
    return believed + again


def _passed(item: Item, whole: _Attempt) -> bool:
    """Did a process that ended well report each of the item's points, and no failure among them?"""
    points = [point for point in whole.output.points if point.name.startswith(f"{item.check}.")]
    return (
        not whole.problem
        and {point.name.removeprefix(f"{item.check}.") for point in points} == set(item.wanted)
        and all(point.verdict != "FAIL" for point in points)
    )


def _tell(whole: _Attempt, again: Sequence[Result]) -> None:
    """What went wrong in the shared process and did not come again is told at the first check that it may concern.

    A time-out is not: the limit is that of one check, and the process ran them all.
    """
    if whole.ended.status is None or not again:
        return
    points = {point.name: point for point in whole.output.points}
    failed = next((r for r in again if (p := points.get(f"{r.check}.{r.point}")) and p.verdict == "FAIL"), None)
    lost = next((r for r in again if f"{r.check}.{r.point}" not in points), again[-1])
    result = failed or lost
    result.verdict = Verdict.FAIL.value if failed or not whole.problem else whole.verdict.value
    if failed:
        result.diagnostics = dict(points[f"{failed.check}.{failed.point}"].diagnostics)
        result.message = result.diagnostics.get("message", "failed without a message")
    else:
        result.message = whole.problem or "not reported"
        result.log = (whole.ended.output[-TAIL:] + whole.ended.errors[-TAIL:]).strip()
    result.message += "; in one process with other checks, alone it passes"
    result.flaky = True


def _shared_argv(items: Sequence[Item], nonce: str, *options: str) -> list[str]:
    first = items[0]
    argv = [*first.emulator, first.program, *options, *first.settings, "--nonce", nonce]
    return argv + [part for item in items for part in ("--only", item.check)]


def _in_one_start(items: Sequence[Item], run: Run) -> list[Result]:
    nonce = secrets.token_hex(6)
    first = items[0]
    # The limit is that of one check: a slow machine must not end the last of many that are well.
    whole = run(_shared_argv(items, nonce, "--each"), first.seconds, renewed_by=b"\n# each end ")
    parts = {part["id"]: part for part in _EACH.finditer(whole.output)}
    results: list[Result] = []
    for item in items:
        part = parts.get(item.check)
        if part is None:
            results += run_item(item, run)
        else:
            attempt = _judged(item, _of_part(part, whole, len(parts)), nonce)
            results += _settle(item, item.wanted, attempt, run)
    crash = re.search(r"QEMU internal SIG[A-Z]+", whole.errors) if first.emulator else None
    if crash and not any(result.verdict in ("FAIL", "ERROR") for result in results):
        results[-1].verdict, results[-1].message = Verdict.ERROR.value, f"the emulator crashed once: {crash[0]}"
        results[-1].flaky = True
    return results


def _of_part(part: re.Match[str], whole: process.Ended, parts: int) -> process.Ended:
    """How a forked check ended; one that did not, shared the end of the whole program."""
    if part["how"] is None:
        status, flooded, errors = whole.status if whole.status else None, whole.flooded, whole.errors
    else:
        status, flooded, errors = int(part["number"]) * (-1 if part["how"] == "signal" else 1), False, ""
    return process.Ended(whole.argv, status, part["said"], errors, whole.seconds / parts, flooded)


def relative_to_root(root: Path, path: Path) -> str:
    """How a program is named in a command that is to be copied."""
    try:
        return str(path.relative_to(root))
    except ValueError:
        return str(path)
