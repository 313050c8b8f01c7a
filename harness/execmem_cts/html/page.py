"""The report as one page: everything that it shows is in it, and nothing is fetched.

What it says of the whole is the verdict that it is given; results lie in it as columns of numbers, so that fifty thousand
of them are a few hundred kilobytes, and are drawn when somebody opens them. Text of results reaches the page as text
alone; the one script and the one style are named by their hashes, and nothing else may run or be loaded.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from .. import report
from ..matrix import KINDS as MATRICES
from ..matrix import Matrix, size_text
from ..model import Result
from ..profile import Profile
from ..results import LONG
from ..verdict import RED, Overall
from .layouts import Kept
from .picture import last_text, picture, reach_text
from .trend import KINDS, Trend

HERE = Path(__file__).resolve().parent
FILE = "report.html"
BLOCKS = 60  # groups of failures shown in full: each starts a disassembler
MESSAGE = 400  # characters of a message in the tree; the block has all of it
CHANGES = 200  # of a kind of change that are listed
OPEN = ("EMU", "SKIP", "NOTRUN")
PLACE = "CHECK.POINT"  # in a cell's command line, where the page writes a check and its point


@dataclass(frozen=True)
class Report:
    """What the page is about: the results as they were judged, and all that stands beside them."""

    header: Mapping[str, Any]
    results: Sequence[Result]
    overall: Overall
    profile: Profile
    around: report.Surroundings
    kept: Kept = field(default_factory=Kept)
    trend: Trend | None = None
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class _Failure:
    """A group of failures that are alike: the first in full, all by their places."""

    number: int
    first: Result
    count: int
    lines: list[str]
    rerun: str
    gdb: str
    ports: str
    cells: list[str]


class _Pool:
    """Values by number, each kept once."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._known: dict[Any, int] = {}

    def number(self, value: Any) -> int:
        known = self._known.get(value)
        if known is None:
            known = self._known[value] = len(self.values)
            self.values.append(value)
        return known


def _failures(about: Report) -> tuple[list[_Failure], int]:
    """The groups in full, and how many failures are in none of them."""
    groups = report.alike(about.results)
    found = []
    for number, group in enumerate(groups[:BLOCKS]):
        first = group[0]
        lines = report.block(first, about.around)
        rerun = next((line.partition("rerun:")[2].strip() for line in lines if line.startswith("  rerun:")), "")
        gdb = next((line.partition("gdb:")[2].strip() for line in lines if line.startswith("  gdb:")), "")
        cells = list(dict.fromkeys(result.key.rsplit("/", 1)[0] for result in group))
        found.append(_Failure(number, first, len(group), lines, rerun, gdb, first.port, cells[:CHANGES]))
    return found, sum(map(len, groups[BLOCKS:]))


def _rerun(result: Result, around: report.Surroundings) -> str:
    check, _, point = PLACE.partition(".")
    return report.rerun_line(replace(result, check=check, point=point), around)


def _columns(about: Report, failures: Sequence[_Failure]) -> dict[str, Any]:
    """The results as the script reads them."""
    cells, checks, points, messages, verdicts = _Pool(), _Pool(), _Pool(), _Pool(), _Pool()
    commands: dict[int, str] = {}
    blocks = {failure.first.key: failure.number for failure in failures}
    data: dict[str, Any] = {name: [] for name in ("cell", "check", "point", "verdict")}
    data |= {"message": {}, "block": {}, "due": [], "flaky": []}
    for row, result in enumerate(about.results):
        cell = cells.number(
            (result.port, result.subject, result.variant, result.stub_page, result.os_page, result.runner)
        )
        if cell not in commands:
            commands[cell] = _rerun(result, about.around)
        data["cell"].append(cell)
        data["check"].append(checks.number((result.check, result.requirement)))
        data["point"].append(points.number(result.point))
        data["verdict"].append(verdicts.number(result.verdict))
        said = f"{result.message} [expected to fail: {result.expected}]" if result.expected else result.message
        if said:
            data["message"][row] = messages.number(said if len(said) <= MESSAGE else f"{said[:MESSAGE]} ...")
        if result.flaky:
            data["flaky"].append(row)
        if result.verdict in RED and result.key in blocks:
            data["block"][row] = blocks[result.key]
        if result.verdict in OPEN and about.profile.requires_result(result):
            data["due"].append(row)
    data["cells"] = [[*cell, commands[number]] for number, cell in enumerate(cells.values)]
    data["checks"], data["points"] = checks.values, points.values
    data["messages"], data["verdicts"] = messages.values, verdicts.values
    known = about.around.requirements
    named = sorted({requirement for _, requirement in checks.values})
    data["requirements"] = {
        name: [known[name].level, known[name].text, known[name].source] if name in known else ["", "", ""]
        for name in named
    }
    return data


def _script_text(data: Any) -> str:
    """JSON that may stand in a script element: nothing in it ends the element."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _hash(text: str) -> str:
    """As a content security policy names a script or a style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def render(about: Report) -> str:
    """The page. It ends with no verdict of its own: all that it says of the whole is `about.overall`."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["size"] = size_text
    failures, left = _failures(about)
    style, script = ((HERE / name).read_text() for name in ("report.css", "report.js"))
    trend = about.trend
    page = environment.get_template("report.html.j2").render(
        about=about,
        overall=about.overall,
        header={key: value for key, value in about.header.items() if key not in LONG and value not in ("", {}, [])},
        failures=failures,
        left=left,
        matrices=_matrices(about),
        pictures=[picture(layout) for layout in about.kept.layouts],
        reach_text=reach_text,
        last_text=last_text,
        changes=[(kind, text, trend.of(kind)) for kind, text in KINDS.items()] if trend else [],
        changes_shown=CHANGES,
        style=style,
        script=script,
        style_hash=_hash(style),
        script_hash=_hash(script),
        data=_script_text(_columns(about, failures)),
    )
    return str(page)


def _matrices(about: Report) -> list[tuple[str, Matrix]]:
    """The matrices that hold anything."""
    made = [(title, Matrix(about.results, about.profile, size)) for title, size in MATRICES]
    return [(title, matrix) for title, matrix in made if matrix.columns]


def write(path: Path, about: Report) -> None:
    """As a whole, or not at all."""
    text = render(about)
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(path.name + ".part")
    half.write_bytes(text.encode("utf-8", "replace"))
    half.replace(path)
