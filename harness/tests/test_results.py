"""JSON lines, JUnit and Markdown say the same; the matrix shows the worst of a cell."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from test_verdict import PROFILE, made

from execmem_cts import results, verdict
from execmem_cts.matrix import Column, Matrix
from execmem_cts.model import Verdict
from execmem_cts.source import ManifestError

HEADER = {"execmem_cts": "0", "format": results.FORMAT, "compiler": "c", "emulators": {"e": "1"}}
FOUND = verdict.Finding("stale", "known.toml:3", "matches | nothing", "delete it")
EVERY = [made(kind.value, point=kind.value.lower()) for kind in Verdict]


@pytest.fixture
def written(tmp_path: Path) -> Path:
    EVERY[1].diagnostics = {"actual": "0x10", "os_calls": "a\x00b"}
    EVERY[1].message = "a | b\n<c>"
    results.write_all(tmp_path, HEADER, EVERY, PROFILE, verdict.overall(EVERY, PROFILE, [FOUND]))
    return tmp_path


def test_what_is_read_is_what_was_written(written: Path) -> None:
    header, found = results.read(written / results.JSON_LINES)
    assert header == HEADER
    assert found == EVERY


def test_junit_agrees_with_the_json_lines(written: Path) -> None:
    _, found = results.read(written / results.JSON_LINES)
    everything = ElementTree.parse(written / results.JUNIT).getroot().findall(".//testcase")
    cases = [case for case in everything if case.get("classname") != "verdict"]
    assert len(cases) == len(found)
    overall, found_beside = [case for case in everything if case.get("classname") == "verdict"]
    (child,) = found_beside.findall("failure")
    assert (child.get("type"), child.get("message")) == ("stale", "matches | nothing; delete it")
    status = json.loads((written / results.JSON_LINES).read_text().splitlines()[-1])["exit_status"]
    assert bool(len(overall)) == (status != 0)
    kinds = {"PASS": None, "FAIL": "failure", "XPASS": "failure", "ERROR": "error"}
    by_name = {case.get("name"): case for case in cases}
    for result in found:
        child = by_name[f"{result.check}.{result.point}"].find("*")
        expected = kinds.get(result.verdict, "skipped")
        assert (child.tag if child is not None else None) == expected
        assert child is None or child.get("type") == result.verdict
    suite = ElementTree.parse(written / results.JUNIT).getroot().find(".//testsuite")
    assert suite is not None
    assert suite.get("failures") == str(sum(r.verdict in ("FAIL", "XPASS") for r in found))
    assert suite.get("errors") == "1"
    with_output = by_name[f"{found[1].check}.{found[1].point}"]
    assert {child.tag for child in with_output} == {"failure", "system-out"}


def test_markdown_and_last_line_have_the_verdict(written: Path) -> None:
    overall = verdict.overall(EVERY, PROFILE, [FOUND])
    end = json.loads((written / results.JSON_LINES).read_text().splitlines()[-1])
    assert (end["overall"], end["exit_status"], end["counts"]) == (overall.word, overall.exit_status, overall.counts)
    text = (written / results.MARKDOWN).read_text()
    assert text.startswith(f"# execmem-cts: {overall.word}\n")
    for kind, number in overall.counts.items():
        assert f"| {kind} | {number} |" in text
    assert "a \\| b <c>" in text
    assert "| stale | `known.toml:3` | matches \\| nothing | delete it |" in text


def test_a_file_that_is_no_results_file(tmp_path: Path) -> None:
    for text in ("", "not json\n", "{}\n", '{"execmem_cts": "0", "format": 99}\n'):
        (tmp_path / "r").write_text(text)
        with pytest.raises(ManifestError):
            results.read(tmp_path / "r")


@pytest.mark.parametrize(
    ("kinds", "shown"),
    [
        ("PASS NA", "ok"),
        ("NA", "na"),
        ("PASS FAIL ERROR", "fail"),
        ("PASS ERROR", "error"),
        ("PASS EMU", "emu!"),
        ("PASS SKIP", "skip!"),
        ("PASS NOTRUN", "open"),
        ("PASS XFAIL", "xfail"),
    ],
)
def test_a_cell_is_its_worst(kinds: str, shown: str) -> None:
    matrix = Matrix([made(kind) for kind in kinds.split()], PROFILE)
    assert matrix.text("PO-001", Column("p", 16384)) == shown


def test_what_is_not_required_does_not_hide_a_pass() -> None:
    matrix = Matrix([made("PASS", "PO-099"), made("EMU", "PO-099")], PROFILE)
    assert matrix.text("PO-099", Column("p", 16384)) == "ok"


def test_a_file_that_was_cut_short_is_refused(written: Path) -> None:
    path = written / results.JSON_LINES
    lines = path.read_text().splitlines()
    for kept in (lines[:-1], [lines[0], *lines[2:]], lines[:2]):
        path.write_text("\n".join(kept) + "\n")
        with pytest.raises(ManifestError, match="cut short"):
            results.read(path)


def test_newlines_in_and_between_lines_change_nothing(tmp_path: Path) -> None:
    found = [made("FAIL", message="one\ntwo\n\nthree\u2028four \u00e9", diagnostics={"a": "b\r\nc"})]
    results.write_json_lines(tmp_path / "r.jsonl", {"execmem_cts": "0", "format": results.FORMAT}, found,
                             verdict.overall(found, PROFILE))  # fmt: skip
    text = (tmp_path / "r.jsonl").read_text()
    (tmp_path / "r.jsonl").write_text(text.replace("\n", "\n\n\n"))
    assert results.read(tmp_path / "r.jsonl")[1] == found
