"""Planted faults: a fault that is not planted, or is not found where it should be, is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from execmem_cts import faults

GOOD = """schema = 1
summary = "s"
source = "s"
must_red = ["PO-001"]
may_red = [{ requirement = "PO-002", reason = "follows" }]
[[on]]
port = "p"
[[on.edit]]
file = "f"
find = 'a'
replace = 'b'
"""


def fault(folder: Path, text: str = GOOD) -> faults.Fault:
    path = folder / "x.toml"
    path.write_text(text)
    return faults.load(path)


def judged(folder: Path, status: int, *results: tuple[str, str]) -> faults.Outcome:
    one = fault(folder)
    outcome = faults.Outcome(one, one.plantings[0])
    records = [{"requirement": name, "check": f"check_{name}", "verdict": verdict} for name, verdict in results]
    faults.judge(one, outcome, status, records)
    return outcome


@pytest.mark.parametrize(
    ("changed", "to", "said"),
    [
        ("schema = 1", "schema = 2", "schema"),
        ('must_red = ["PO-001"]', "must_red = []", "must_red"),
        ('reason = "follows"', 'reason = ""', "needs a reason"),
        ("find = 'a'", "finds = 'a'", "unknown key 'finds'"),
        ("[[on.edit]]\nfile = \"f\"\nfind = 'a'\nreplace = 'b'\n", "", "nothing would be planted"),
    ],
)
def test_a_wrong_fault_file_is_refused(tmp_path: Path, changed: str, to: str, said: str) -> None:
    assert changed in GOOD
    with pytest.raises(faults.FaultError, match=said):
        fault(tmp_path, GOOD.replace(changed, to))


def test_an_edit_that_matches_otherwise_or_changes_nothing_is_refused(tmp_path: Path) -> None:
    one = fault(tmp_path)
    assert faults.apply_edit("cat", one.plantings[0].edits[0], one) == "cbt"
    with pytest.raises(faults.FaultError, match="matched 2 times, expected 1"):
        faults.apply_edit("banana"[:4], one.plantings[0].edits[0], one)
    with pytest.raises(faults.FaultError, match="changes nothing"):
        faults.apply_edit("a", faults.Edit("f", "a", "a", 1), one)
    with pytest.raises(faults.FaultError, match="is not in the file"):
        faults.apply_edit("a", faults.Edit("f", "a", "b", 1, after="z"), one)
    for wrong in (
        faults.Edit("f", "a", "\\where", 1),
        faults.Edit("f", "(a", "b", 1),
        faults.Edit("f", "a", "b", 1, "["),
    ):
        with pytest.raises(faults.FaultError, match="edit of f: .*write a backslash twice"):
            faults.apply_edit("a", wrong, one)


def test_exactly_what_is_named_may_be_red(tmp_path: Path) -> None:
    assert judged(tmp_path, 1, ("PO-001", "FAIL"), ("PO-002", "ERROR"), ("PO-003", "PASS")).problems == []
    assert "must fail" in judged(tmp_path, 1, ("PO-002", "FAIL")).problems[0]
    assert "must fail" in judged(tmp_path, 1, ("PO-001", "ERROR")).problems[0]
    assert "neither" in judged(tmp_path, 1, ("PO-001", "FAIL"), ("PO-003", "FAIL")).problems[0]
    assert "exit status 0" in judged(tmp_path, 0, ("PO-001", "FAIL")).problems[0]


def test_only_what_must_fail_proves_a_check(tmp_path: Path) -> None:
    outcome = judged(tmp_path, 1, ("PO-001", "FAIL"), ("PO-002", "FAIL"))
    assert faults.unkilled([outcome], ["check_PO-001", "check_PO-002"]) == ["check_PO-002"]
