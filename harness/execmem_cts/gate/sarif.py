"""SARIF 2.1.0 for what shows results in the source: failures of templates, and entries of an expectations file.

Only what has a line is written: a failure of an allocator has none. Failures of one requirement at one template are one
result, with the cells in its message.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..model import Result, Template, TemplateSet
from ..verdict import Finding, Overall

NAME = "results.sarif"
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"FAIL": "error", "XPASS": "error", "XFAIL": "note"}
_MOST = 6  # cells named in one message

Places = Mapping[str, Mapping[str, tuple[str, int]]]  # port/variant -> template -> file, line


def _line_of(text: str, template: Template) -> int:
    """Where a template begins: its own name behind a word, its begin symbol as a label or behind one. 0: nowhere."""
    names = "|".join(re.escape(name) for name in (template.begin.partition("+")[0], template.name))
    sought = re.compile(
        rf"^\s*(?:(?:{names})\s*:|[.\w]*(?:BEGIN|ENTRY|begin|entry|globl|global)[.\w]*[\s(]+(?:{names})\b)"
    )
    return next((number for number, line in enumerate(text.splitlines(), 1) if sought.match(line)), 0)


def places(sets: Iterable[TemplateSet], root: Path) -> dict[str, dict[str, tuple[str, int]]]:
    """Where the templates of these sets begin: kept in the header of a results file, which outlives the tree."""
    found: dict[str, dict[str, tuple[str, int]]] = {}
    texts: dict[Path, str] = {}
    for chosen in sets:
        here = found.setdefault(f"{chosen.port.name}/{chosen.variant}", {})
        for path in chosen.sources:
            if path not in texts:
                try:
                    texts[path] = path.read_text(errors="replace")
                except OSError:
                    texts[path] = ""
            try:
                name = str(path.resolve().relative_to(root.resolve()))
            except ValueError:
                name = str(path)
            for template in chosen.templates:
                line = _line_of(texts[path], template)
                if line and template.name not in here:
                    here[template.name] = (name, line)
    return {key: at for key, at in found.items() if at}


def _uri(name: str) -> str:
    from urllib.parse import quote

    return quote(name)


def _result(rule: str, level: str, message: str, file: str, line: int, kind: str) -> dict[str, Any]:
    location = {"artifactLocation": {"uri": _uri(file)}, "region": {"startLine": line}}
    return {
        "ruleId": rule,
        "level": level,
        "message": {"text": message},
        "locations": [{"physicalLocation": location}],
        "partialFingerprints": {"execmemCts/v1": f"{rule}/{file}/{kind}"},
    }


def _of_finding(finding: Finding) -> dict[str, Any] | None:
    file, _, line = finding.where.rpartition(":")
    if not file or not line.isdigit() or line == "0":
        return None
    text = f"{finding.message}; {finding.mend}"
    return _result(finding.kind.replace(" ", "-"), "error", text, file, int(line), text)


def sarif(header: Mapping[str, Any], results: Sequence[Result], overall: Overall) -> dict[str, Any]:
    """One run of one tool."""
    known: Places = header.get("templates", {})
    groups: dict[tuple[str, int, str, str, str], list[Result]] = {}
    for result in results:
        if result.verdict in _LEVELS:
            name = result.diagnostics.get("template") or result.point
            at = known.get(f"{result.port}/{result.variant}", {}).get(name)
            if at:
                groups.setdefault((at[0], at[1], result.requirement, result.verdict, name), []).append(result)
    found = []
    for (file, line, requirement, verdict, name), group in sorted(groups.items()):
        first = group[0]
        cells = list(dict.fromkeys(result.key.rsplit("/", 1)[0] for result in group))
        more = f" and {len(cells) - _MOST} more" if len(cells) > _MOST else ""
        said = {"FAIL": "", "XFAIL": "expected to fail: ", "XPASS": "passed, and was expected to fail: "}[verdict]
        text = f"{name}: {said}{first.message or first.expected} ({first.check}; {', '.join(cells[:_MOST])}{more})"
        found.append(_result(requirement, _LEVELS[verdict], text, file, line, f"{verdict}/{name}"))
    found += [made for finding in overall.findings if (made := _of_finding(finding))]
    rules = [{"id": rule} for rule in sorted({result["ruleId"] for result in found})]
    driver = {"name": "execmem-cts", "version": str(header.get("execmem_cts", "")), "rules": rules}
    properties = {"overall": overall.word, "exitStatus": overall.exit_status, "reason": overall.reason}
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": found, "properties": properties}],
    }


def write(path: Path, header: Mapping[str, Any], results: Sequence[Result], overall: Overall) -> None:
    path.write_text(json.dumps(sarif(header, results, overall), indent=1, ensure_ascii=False) + "\n")
