"""The audit's result as a table, as JSON, and as an exit status."""

from __future__ import annotations

import json
import signal
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .. import __version__
from .kinds import KINDS, NOTE, VIOLATION, Finding, Place, Step
from .session import Outcome

FORMAT, VERSION = "execmem-cts-audit", 1
CLEAN, VIOLATED, UNVERIFIED = 0, 1, 4
GROUPS = 40  # rows of the table, unless all are asked for


def graded(outcome: Outcome, levels: dict[str, str]) -> None:
    """Gives each finding its level."""
    outcome.findings[:] = [replace(f, level=levels[f.kind]) for f in outcome.findings]


def exit_status(outcome: Outcome) -> int:
    if outcome.violations:
        return VIOLATED
    return UNVERIFIED if outcome.incomplete else CLEAN


def _seconds(value: float | None) -> str:
    if value is None:
        return "no clock"
    return f"{value:.6f} s" if value < 1 else f"{value:.3f} s"


def status_text(outcome: Outcome) -> str:
    if outcome.status is None:
        text = "its exit status is not known"
    elif outcome.status < 0:
        try:
            text = f"killed by {signal.Signals(-outcome.status).name}"
        except ValueError:
            text = f"killed by signal {-outcome.status}"
    else:
        text = f"exit status {outcome.status}"
    return text + (" (time-out)" if outcome.timed_out else "")


# ---- Table ----


def _key(finding: Finding) -> tuple[object, ...]:
    """Findings with the same key share a row."""
    if finding.level == NOTE and KINDS[finding.kind].level == NOTE:
        return (finding.kind, finding.step.process)
    return (finding.kind, finding.step.process, finding.mapping)


def groups(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Findings that share a row, violations first, each in the order of its first."""
    found: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        found.setdefault(_key(finding), []).append(finding)
    return sorted(found.values(), key=lambda g: (g[0].level != VIOLATION, g[0].step.number))


def _when(step: Step) -> str:
    return f"{_seconds(step.time)}, process {step.process}, thread {step.thread}"


def _where(place: Place) -> str:
    text = f"{place.start:#x}-{place.end:#x}"
    return f"{text} ({place.file} at {place.offset:#x})" if place.file else text


def _held(finding: Finding, of: int) -> str:
    text = f"held for {_seconds(finding.seconds)} and {finding.calls} calls, {finding.until}"
    return f"longest {text}" if of > 1 else text


def _row(group: Sequence[Finding]) -> tuple[Text, Text]:
    # An alias that was held for longest is the one to look at; of anything else, the first.
    first = max(group, key=lambda f: (f.seconds or 0, f.calls or 0)) if group[0].other is not None else group[0]
    last = group[-1]
    kind = KINDS[first.kind]
    left = Text(f"{first.kind}\n", style="bold red" if first.level == VIOLATION else "bold")
    left.append(f"{first.level}\n{len(group)} time{'s' * (len(group) > 1)}", style="default")
    lines = [kind.title + (f": {first.detail}" if first.detail else "")]
    lines.append(f"call     {first.step.text}")
    lines.append(f"at       {_when(first.step)}")
    if len(group) > 1:
        lines.append(f"last at  {_when(last.step)}")
    if first.place.end:
        lines.append(f"range    {_where(first.place)}")
    if first.other is not None:
        lines.append(f"code at  {_where(first.other)}")
        lines.append(_held(first, len(group)))
    if first.place.end and first.place.origin is None:
        lines.append("mapped   by exec, or before the first call that was seen")
    elif first.place.origin is not None and first.place.origin.number != first.step.number:
        lines.append(f"mapped   {first.place.origin.text}\n         {_when(first.place.origin)}")
    lines += [f"before   {step.text}" for step in first.place.history[-3:]]
    if first.other is not None and first.other.origin is not None:
        lines.append(f"code by  {first.other.origin.text}\n         {_when(first.other.origin)}")
    return left, Text("\n".join(lines))


def table(outcome: Outcome, everything: bool, console: Console) -> None:
    """A row a mapping and kind, unless `everything` is asked for; then what the audit could not see; then the verdict."""
    rows = [[f] for f in outcome.findings] if everything else groups(outcome.findings)
    if rows:
        shown = Table(show_lines=True, title=None)
        shown.add_column("what", no_wrap=True)
        shown.add_column("where", overflow="fold")
        for group in rows if everything else rows[:GROUPS]:
            shown.add_row(*_row(group))
        console.print(shown)
        if not everything and len(rows) > GROUPS:
            console.print(f"and {len(rows) - GROUPS} rows more: --all shows every finding", soft_wrap=True)
    for reason, count in outcome.incomplete.items():
        console.print(f"incomplete: {reason} ({count} time{'s' * (count > 1)})", soft_wrap=True, markup=False)
    for text in outcome.unseen:
        console.print(f"not seen: {text}", soft_wrap=True, markup=False)
    numbers = [
        f"{outcome.counts.get(name, 0)} {one if outcome.counts.get(name, 0) == 1 else name}"
        for name, one in (("calls", "call"), ("processes", "process"), ("threads", "thread"))
    ]
    console.print(
        f"audited: {' '.join(outcome.argv)}: {status_text(outcome)}; {outcome.runner} ({outcome.version}), pages of "
        f"{outcome.page_size:#x} bytes; {', '.join(numbers)}",
        soft_wrap=True,
        markup=False,
    )
    console.print(verdict(outcome), soft_wrap=True, markup=False)


def verdict(outcome: Outcome) -> str:
    """One line."""
    violations = len(outcome.violations)
    notes = len(outcome.findings) - violations
    dropped = outcome.counts.get("dropped", 0)
    more = f" ({dropped} more findings were not kept)" if dropped else ""
    text = f"{violations} violation{'s' * (violations != 1)}, {notes} note{'s' * (notes != 1)}{more}"
    if violations:
        return f"W^X violated: {text}"
    return f"unverified: {text}, but the audit is incomplete" if outcome.incomplete else f"no violation: {text}"


# ---- JSON: conformance/audit.schema.json ----


def _step(step: Step | None) -> dict[str, Any] | None:
    if step is None:
        return None
    return {
        "number": step.number,
        "seconds": step.time,
        "process": step.process,
        "thread": step.thread,
        "call": step.text,
    }


def _place(place: Place | None) -> dict[str, Any] | None:
    if place is None:
        return None
    return {
        "start": place.start,
        "end": place.end,
        "file": place.file or None,
        "offset": place.offset,
        "mapped_by": _step(place.origin),
        "history": [_step(step) for step in place.history],
    }


def as_json(outcome: Outcome) -> str:
    document = {
        "format": FORMAT,
        "version": VERSION,
        "tool": f"execmem-cts {__version__}",
        "runner": outcome.runner,
        "runner_version": outcome.version,
        "argv": list(outcome.argv),
        "page_size": outcome.page_size,
        "program": {"status": outcome.status, "timed_out": outcome.timed_out},
        "exit_status": exit_status(outcome),
        "verdict": verdict(outcome),
        "counts": {
            name: outcome.counts.get(name, 0) for name in ("calls", "processes", "threads", "programs", "dropped")
        },
        "incomplete": [{"reason": reason, "count": count} for reason, count in outcome.incomplete.items()],
        "not_seen": outcome.unseen,
        "findings": [
            {
                "kind": f.kind,
                "level": f.level,
                "title": KINDS[f.kind].title,
                "detail": f.detail or None,
                "at": _step(f.step),
                "place": _place(f.place),
                "mapping": f.mapping,
                "code": _place(f.other),
                "held": None if f.calls is None else {"seconds": f.seconds, "calls": f.calls, "until": f.until},
            }
            for f in outcome.findings
        ],
    }
    return json.dumps(document, indent=1, ensure_ascii=True, default=str) + "\n"
