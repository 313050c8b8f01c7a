"""The audit's exit status, its rows and its words."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence

import pytest
from rich.console import Console

from execmem_cts.audit import kinds, report
from execmem_cts.audit.kinds import Finding, Place, Step
from execmem_cts.audit.session import Outcome


def step(number: int, process: int = 1, text: str = "mmap(...) = 0x10000") -> Step:
    return Step(number, number / 10, process, process, text)


def finding(kind: str, number: int, mapping: int = 1, process: int = 1, seconds: float | None = None) -> Finding:
    place = Place(0x10000, 0x11000, step(1), "/memfd:x" if seconds else "")
    code = Place(0x20000, 0x21000, step(1), "/memfd:x") if seconds else None
    calls = None if seconds is None else 3
    return Finding(
        kind, step(number, process), place, mapping, "", code, seconds, calls, "ended by munmap" if seconds else ""
    )


def outcome(findings: Sequence[Finding] = (), status: int | None = 0, **incomplete: int) -> Outcome:
    made = Outcome("native, strace", "6.1", ("./x",), 4096, status, list(findings), {"calls": 9}, dict(incomplete))
    report.graded(made, kinds.levels((), ()))
    return made


def shown(made: Outcome, everything: bool = False) -> str:
    stream = io.StringIO()
    report.table(made, everything, Console(file=stream, width=120, highlight=False))
    return stream.getvalue()


def test_exit_status() -> None:
    assert report.exit_status(outcome()) == 0
    assert report.exit_status(outcome([finding("alias", 2, seconds=1.0)])) == 0
    assert report.exit_status(outcome([finding("rwx", 2)])) == 1
    assert report.exit_status(outcome(reason=1)) == 4
    assert report.exit_status(outcome([finding("rwx", 2)], reason=1)) == 1  # what was seen was seen


@pytest.mark.parametrize("name", kinds.KINDS)
def test_every_kind_has_a_level_that_the_caller_can_change(name: str) -> None:
    assert kinds.levels((name,), ())[name] == kinds.NOTE
    assert kinds.levels((), (name,))[name] == kinds.VIOLATION
    assert kinds.levels((), ())[name] == kinds.KINDS[name].level


def test_a_row_is_one_mapping_and_kind_and_violations_come_first() -> None:
    found = [
        finding("alias", 2, mapping=5, seconds=0.5),
        finding("w-then-x", 3),
        finding("w-then-x", 4),
        finding("w-then-x", 5, mapping=2),
        finding("w-then-x", 6, process=2),
        finding("alias", 7, mapping=6, seconds=2.5),
    ]
    rows = report.groups(outcome(found).findings)
    assert [[f.step.number for f in row] for row in rows] == [[3, 4], [5], [6], [2, 7]]
    text = shown(outcome(found))
    assert "2 times" in text and "longest held for 2.500 s and 3 calls, ended by munmap" in text
    assert "0.500000 s and 3 calls" not in text and "0.500000 s and 3 calls" in shown(outcome(found), everything=True)


def test_rows_beyond_the_table_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "GROUPS", 1)
    text = shown(outcome([finding("rwx", 2, mapping=1), finding("rwx", 3, mapping=2)]))
    assert "and 1 rows more: --all shows every finding" in text


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (3, "exit status 3"),
        (-11, "killed by SIGSEGV"),
        (None, "its exit status is not known"),
        (-99, "killed by signal 99"),
    ],
)
def test_the_programs_own_end_is_told(status: int | None, said: str) -> None:
    assert f"./x: {said};" in shown(outcome(status=status))


def test_verdict() -> None:
    assert report.verdict(outcome()) == "no violation: 0 violations, 0 notes"
    assert report.verdict(outcome([finding("rwx", 2), finding("alias", 3, seconds=1.0)])) == (
        "W^X violated: 1 violation, 1 note"
    )
    assert report.verdict(outcome(reason=2)).startswith("unverified: 0 violations")
    assert "incomplete: reason (2 times)" in shown(outcome(reason=2))


def test_json_holds_every_finding_whole() -> None:
    document = json.loads(report.as_json(outcome([finding("alias", 2, seconds=1.5), finding("rwx", 3)])))
    alias, rwx = document["findings"]
    assert alias["held"] == {"seconds": 1.5, "calls": 3, "until": "ended by munmap"}
    assert alias["code"]["start"] == 0x20000 and alias["place"]["mapped_by"]["number"] == 1
    assert rwx["held"] is None and rwx["code"] is None and rwx["level"] == "violation"
    assert (document["format"], document["version"], document["exit_status"]) == ("execmem-cts-audit", 1, 1)
