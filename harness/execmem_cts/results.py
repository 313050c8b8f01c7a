"""Result files: JSON lines (canonical), JUnit XML and a Markdown summary. The last two say what the first one says."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .matrix import KINDS, Matrix
from .model import Result
from .profile import Profile
from .source import ManifestError
from .verdict import FINDINGS, REGRESSION, Finding, Overall

JSON_LINES, JUNIT, MARKDOWN = "results.jsonl", "junit.xml", "summary.md"
FORMAT = 1
LONG = ("templates",)  # parts of the header that nobody reads
MOST = 200  # rows of a table in Markdown: what shows a job's summary takes no more than a megabyte


@dataclasses.dataclass(frozen=True)
class Stored:
    """A JSON lines file: its first line, the results, and its last line, which has the verdict."""

    header: dict[str, Any]
    results: list[Result]
    end: dict[str, Any]


def as_line(result: Result) -> str:
    return json.dumps(dataclasses.asdict(result), ensure_ascii=False, separators=(",", ":"))


def from_dict(data: Mapping[str, Any]) -> Result:
    """Raises ManifestError where the line is not a result."""
    try:
        return Result(**data)
    except TypeError as error:
        raise ManifestError(
            f"not a result of this suite: {error}; write the file anew with `execmem-cts run`"
        ) from error


def read(path: Path) -> tuple[dict[str, Any], list[Result]]:
    """Header and results of a JSON lines file. Raises ManifestError."""
    header, found, _ = read_whole(path)
    return header, found


def read_whole(path: Path) -> tuple[dict[str, Any], list[Result], list[Finding]]:
    """The same, and what was found beside the results. Raises ManifestError."""
    stored = read_all(path)
    return stored.header, stored.results, [Finding(**finding) for finding in stored.end.get("findings", [])]


def read_all(path: Path) -> Stored:
    """All of the file. Raises ManifestError."""
    try:
        text = path.read_bytes().strip()
        while b"\n\n" in text:
            text = text.replace(b"\n\n", b"\n")
        # As one list, in half the time of line by line: a newline never stands within a value of JSON.
        records = json.loads(b"[%b]" % text.replace(b"\n", b","))
    except (OSError, ValueError) as error:
        raise ManifestError(f"{path}: cannot be read: {error}; run `execmem-cts run` first") from error
    if not records or "execmem_cts" not in records[0]:
        raise ManifestError(f"{path}: the first line is no run header; run `execmem-cts run` first")
    if records[0].get("format") != FORMAT:
        raise ManifestError(
            f"{path}: format {records[0].get('format')!r}, expected {FORMAT}; use the suite that wrote it"
        )
    found = [from_dict(record) for record in records[1:] if "check" in record]
    if records[-1].get("counts") != dict(Counter(result.verdict for result in found)):
        raise ManifestError(
            f"{path}: cut short: its last line does not count the results in it; run `execmem-cts run` again"
        )
    return Stored(records[0], found, records[-1])


def write_json_lines(path: Path, header: Mapping[str, Any], results: Iterable[Result], overall: Overall) -> None:
    """Header first, one result a line, the verdict in the last line."""
    end = {
        "overall": overall.word,
        "exit_status": overall.exit_status,
        "reason": overall.reason,
        "counts": overall.counts,
        "findings": [dataclasses.asdict(finding) for finding in overall.findings],
    }
    text = [json.dumps(header, ensure_ascii=False), *map(as_line, results), json.dumps(end)]
    half = path.with_suffix(".part")
    half.write_text("\n".join(text) + "\n")
    half.replace(path)


def write_junit(path: Path, header: Mapping[str, Any], results: Sequence[Result], overall: Overall) -> None:
    """One test suite a configuration. FAIL and XPASS are failures, ERROR is an error, what was not shown is skipped."""
    import junitparser

    document = junitparser.JUnitXml("execmem-cts")
    suites: dict[str, junitparser.TestSuite] = {}
    shown = {key: value for key, value in header.items() if key not in LONG}
    for result in results:
        cell = f"{result.port}/{result.subject}/{result.variant}-{result.stub_page}/{result.os_page}/{result.runner}"
        if cell not in suites:
            suites[cell] = junitparser.TestSuite(cell)
            suites[cell].add_property("verdict", overall.word)
            for key, value in shown.items():
                suites[cell].add_property(key, value if isinstance(value, str) else json.dumps(value))
        case = junitparser.TestCase(f"{result.check}.{result.point}", f"{result.requirement}.{cell}", result.seconds)
        message = _xml_safe(f"{result.requirement}: {_said(result)}")
        if result.verdict in ("FAIL", "XPASS"):
            case.result = [junitparser.Failure(message, result.verdict)]
        elif result.verdict == "ERROR":
            case.result = [junitparser.Error(message, result.verdict)]
        elif result.verdict != "PASS":
            case.result = [junitparser.Skipped(message, result.verdict)]
        if case.result and result.diagnostics:
            case.system_out = _xml_safe("\n".join(f"{key}: {value}" for key, value in result.diagnostics.items()))
        if case.result and result.log:
            case.system_err = _xml_safe(result.log)
        suites[cell].add_testcase(case)
    for suite in suites.values():
        document.add_testsuite(suite)
    document.add_testsuite(_verdict_suite(overall))
    document.update_statistics()  # its own counts, of all suites
    document.write(str(path))


def _verdict_suite(overall: Overall) -> Any:
    """The verdict on the whole run as a test case, red wherever the exit status is: what is missing shows there alone."""
    import junitparser

    suite = junitparser.TestSuite("verdict")
    case = junitparser.TestCase("overall", "verdict")
    if overall.exit_status == 1:
        case.result = [junitparser.Failure(overall.reason, overall.word)]
    elif overall.exit_status:
        case.result = [junitparser.Error(overall.reason, overall.word)]
    suite.add_testcase(case)
    for finding in overall.findings:
        case = junitparser.TestCase(f"{finding.kind} {finding.where}", "verdict")
        made = junitparser.Failure if FINDINGS[finding.kind][1] == REGRESSION else junitparser.Error
        case.result = [made(_xml_safe(f"{finding.message}; {finding.mend}"), finding.kind)]
        suite.add_testcase(case)
    return suite


def _said(result: Result) -> str:
    """The message, and for what was expected to fail why."""
    return f"{result.message} [expected to fail: {result.expected}]".strip() if result.expected else result.message


def _xml_safe(text: str) -> str:
    """XML has no way to write most control characters."""
    return "".join(c if c in "\t\n" or (c >= " " and c not in "\ufffe\uffff") else "\ufffd" for c in text)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def write_markdown(
    path: Path, header: Mapping[str, Any], results: Sequence[Result], profile: Profile, overall: Overall
) -> None:
    """The verdict, the matrix, and what was not a pass."""
    lines = [f"# execmem-cts: {overall.word}", "", f"{overall.reason}.", ""]
    lines += ["| verdict | results |", "| --- | --- |", *(f"| {k} | {v} |" for k, v in overall.counts.items()), ""]
    for number, (title, size) in enumerate(KINDS):
        matrix = Matrix(results, profile, size)
        if number and not matrix.columns:
            continue
        lines += [f"| {title} | " + " | ".join(f"{c.port} {c.page}" for c in matrix.columns) + " |"]
        lines += ["| --- |" + " --- |" * len(matrix.columns)]
        lines += [
            f"| {row} | " + " | ".join(matrix.text(row, c) or " " for c in matrix.columns) + " |" for row in matrix.rows
        ]
        lines += [""]
    if overall.findings:
        lines += ["## Expectations and shards", "", "| what | where | message | mend |", "| --- | --- | --- | --- |"]
        lines += [f"| {f.kind} | `{f.where}` | {_cell(f.message)} | {_cell(f.mend)} |" for f in overall.findings]
        lines += [""]
    known = [result for result in results if result.verdict == "XFAIL"]
    if known:
        lines += ["## Known failures", "", "| requirement | where | expected because |", "| --- | --- | --- |"]
        lines += [f"| {r.requirement} | `{r.key}` | {_cell(r.expected)} |" for r in known[:MOST]]
        lines += [f"\n... and {len(known) - MOST} more" if len(known) > MOST else "", ""]
    red = [result for result in results if result.verdict in ("FAIL", "ERROR", "XPASS")]
    if red:
        lines += [
            "",
            "## Not as it should be",
            "",
            "| verdict | requirement | where | message |",
            "| --- | --- | --- | --- |",
        ]
        lines += [f"| {r.verdict} | {r.requirement} | `{r.key}` | {_cell(_said(r))} |" for r in red[:MOST]]
        lines += [f"\n... and {len(red) - MOST} more: {JUNIT} and {JSON_LINES} have all"] if len(red) > MOST else []
    lines += ["", "## Run", "", *(f"- {key}: {_cell(str(value))}" for key, value in header.items() if key not in LONG)]
    path.write_text("\n".join(lines) + "\n")


def write_all(
    directory: Path, header: Mapping[str, Any], results: Sequence[Result], profile: Profile, overall: Overall
) -> None:
    """Every file, in a folder that is made. All say what `overall` says."""
    from .gate import badge, sarif

    directory.mkdir(parents=True, exist_ok=True)
    write_json_lines(directory / JSON_LINES, header, results, overall)
    write_junit(directory / JUNIT, header, results, overall)
    write_markdown(directory / MARKDOWN, header, results, profile, overall)
    badge.write(directory / badge.NAME, overall)
    sarif.write(directory / sarif.NAME, header, results, overall)
