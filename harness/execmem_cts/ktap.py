"""Strict parser of what a conformance program prints (see conformance/check.h).

Anything that is not exactly the format is an error: a program that prints half of it has not shown anything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_PLAN = re.compile(r"^1\.\.(\d+)$")
_POINT = re.compile(r"^(?P<no>not )?ok (?P<number>\d+) - (?P<name>[a-z0-9_]+\.[A-Za-z0-9_]+)(?: # (?P<directive>.*))?$")
_SKIP = re.compile(r"^SKIP (?P<kind>NA|EMU): (?P<reason>.+)$")
_SEEN = re.compile(r"^# seen os_page=(\d+) stub_page=(\d+)$")
_COMPLETE = re.compile(r"^# complete nonce=(\S*) points=(\d+) assertions=(\d+)$")
_KEY = re.compile(r"^  ([a-z_0-9]+):(?: (.*))?$")


class KtapError(Exception):
    """The output is not the format; the text says on which line."""


@dataclass
class Point:
    name: str  # CHECK.POINT
    verdict: str  # PASS | FAIL | NA | EMU
    reason: str = ""
    diagnostics: dict[str, str] = field(default_factory=dict)


@dataclass
class Output:
    """What was read. `complete` is None where the last line is missing."""

    points: list[Point] = field(default_factory=list)
    os_page: int = 0
    stub_page: int = 0
    planned: int | None = None
    nonce: str | None = None
    assertions: int = 0

    @property
    def complete(self) -> bool:
        return self.nonce is not None


def unquote(value: str) -> str:
    """A YAML scalar as the programs write it: plain, or in double quotes with backslash escapes."""
    if len(value) >= 2 and value[0] == value[-1] == '"':
        escapes = {"n": "\n", "t": "\t"}
        return re.sub(r"\\(.)", lambda m: escapes.get(m[1], m[1]), value[1:-1])
    return value


def _diagnostics(lines: list[str], at: int, point: Point) -> int:
    """Reads the block that starts at line `at` (`  ---`); the number of the line behind it."""
    start = at
    at += 1
    while at < len(lines) and lines[at] != "  ...":
        match = _KEY.match(lines[at])
        if match is None:
            raise KtapError(f"line {at + 1}: expected `  key: value` or `  ...`, found {lines[at][:80]!r}")
        key, value = match[1], unquote(match[2] or "")
        at += 1
        if match[2] == "|":  # a block of further indented lines
            block = []
            while at < len(lines) and lines[at].startswith("    "):
                block.append(lines[at][4:])
                at += 1
            value = "\n".join(block)
        point.diagnostics[key] = value
    if at == len(lines):
        raise KtapError(f"line {start + 1}: the diagnostics block is not closed by `  ...`")
    return at + 1


def _point(match: re.Match[str], number: int) -> Point:
    point = Point(match["name"], "FAIL" if match["no"] else "PASS")
    if match["directive"]:
        skip = _SKIP.match(match["directive"])
        if skip is None or match["no"]:
            raise KtapError(f"line {number}: expected `# SKIP NA: reason` or `# SKIP EMU: reason` behind `ok`")
        point.verdict, point.reason = skip["kind"], skip["reason"]
    return point


def parse(text: str) -> Output:
    """Everything up to the first mistake is in `KtapError.args[1]`, so that what was reported is not lost."""
    output = Output()
    try:
        _parse(text.splitlines(), output)
    except KtapError as error:
        raise KtapError(str(error), output) from None
    return output


def _parse(lines: list[str], output: Output) -> None:
    if not lines or lines[0] != "KTAP version 1":
        raise KtapError("line 1: expected `KTAP version 1`")
    at = 1
    while at < len(lines):
        line = lines[at]
        at += 1
        if output.complete:
            raise KtapError(f"line {at}: text behind the `# complete` line: {line[:80]!r}")
        if match := _PLAN.match(line):
            if output.planned is not None:
                raise KtapError(f"line {at}: a second plan")
            output.planned = int(match[1])
        elif match := _POINT.match(line):
            point = _point(match, at)
            if output.planned is None:
                raise KtapError(f"line {at}: a point before the plan `1..N`")
            if int(match["number"]) != len(output.points) + 1:
                raise KtapError(f"line {at}: expected point {len(output.points) + 1}, found {match['number']}")
            if any(other.name == point.name for other in output.points):
                raise KtapError(f"line {at}: point {point.name} is reported twice")
            if at < len(lines) and lines[at] == "  ---":
                at = _diagnostics(lines, at, point)
            output.points.append(point)
        elif match := _SEEN.match(line):
            output.os_page, output.stub_page = int(match[1]), int(match[2])
        elif match := _COMPLETE.match(line):
            _finish(match, output, at)
        elif not line.startswith("#"):
            raise KtapError(f"line {at}: not KTAP: {line[:80]!r}")


def _finish(match: re.Match[str], output: Output, number: int) -> None:
    points = int(match[2])
    if points != len(output.points) or points != output.planned:
        raise KtapError(
            f"line {number}: the plan has {output.planned} points, {len(output.points)} were reported, "
            f"`# complete` counts {points}"
        )
    if not output.os_page:
        raise KtapError(f"line {number}: no `# seen` line before `# complete`")
    output.nonce, output.assertions = match[1], int(match[3])
