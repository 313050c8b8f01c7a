"""What is known to fail: the file of expectations, and what it makes of results.

An entry names cells exactly (requirement, port, stub page size, OS page size) and may be narrowed to a check, a point, a
variant or a runner. All results that it names must fail; each of its cells must name one. So an entry can neither hide
a failure beside the known one nor outlive its cause.
"""

from __future__ import annotations

import dataclasses
import datetime
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..matrix import size_text
from ..model import Result, Verdict
from ..source import Source, locate
from ..verdict import Finding
from .version import Range, numbers

SCHEMA = Path("conformance/expectations.schema.json")
NARROW = ("check", "point", "variant", "runner")
_TURNED = {Verdict.FAIL.value: Verdict.XFAIL.value, Verdict.PASS.value: Verdict.XPASS.value}
_RESTORED = {after: before for before, after in _TURNED.items()}

Cell = tuple[str, str, int, int]  # requirement, port, stub page, OS page


@dataclass(frozen=True)
class Expectation:
    """One entry. `narrow`: fields of a result that must have this value. `where`: file and line."""

    requirement: str
    ports: tuple[str, ...]
    stub_pages: tuple[int, ...]
    os_pages: tuple[int, ...]
    reason: str
    link: str
    narrow: tuple[tuple[str, str], ...] = ()
    emulator: Range | None = None
    expires: datetime.date | None = None
    where: str = ""
    index: int = 0  # among the entries of its file

    def cells(self) -> Iterator[Cell]:
        yield from itertools.product((self.requirement,), self.ports, self.stub_pages, self.os_pages)

    def names(self, result: Result) -> bool:
        """Is a result of one of its cells meant? A result of all points of a check ("*") is of each."""
        return all(
            getattr(result, key) == value or (key == "point" and result.point == "*") for key, value in self.narrow
        )

    @property
    def runner(self) -> str:
        return dict(self.narrow).get("runner", "")

    def applies(self, port: str, run: Machine) -> bool:
        """Do its conditions hold where the results come from?"""
        if self.runner == "native" and run.native.get(port) != "yes":
            return False
        return self.emulator is None or self.emulator.holds(run.versions.get(port, ()))


@dataclass(frozen=True)
class Machine:
    """Where results come from: which ports were asked for, where they run natively, and the emulators' versions."""

    ports: frozenset[str]
    native: Mapping[str, str]
    versions: Mapping[str, tuple[int, ...]]

    @staticmethod
    def of(header: Mapping[str, Any], emulators: Mapping[str, str]) -> Machine:
        """From the header of a results file. `emulators`: port -> program, for ports that the header does not name."""
        programs = {**emulators, **header.get("ports", {})}
        said = header.get("emulators", {})
        versions = {port: numbers(said.get(program, "")) for port, program in programs.items()}
        return Machine(frozenset(header.get("ports", ())), header.get("native", {}), versions)


@dataclass
class Judged:
    """Results with FAIL turned to XFAIL and PASS to XPASS, what is wrong with the expectations, and what to know."""

    results: list[Result]
    findings: list[Finding]
    notes: list[str]
    stale: dict[int, list[Cell]]  # index of an entry -> its cells that name nothing, or something that passed
    covered: dict[int, int]  # index of a result -> index of the entry that expects it to fail


def _size(value: object) -> int:
    """Raises ValueError."""
    text = str(value)
    return int(text.removesuffix("K"), 0) * 1024 if text.endswith("K") else int(text, 0)


def _several(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def load(
    path: Path | None,
    root: Path,
    ports: Sequence[str],
    requirements: Sequence[str],
    renamed: Mapping[str, str] | None = None,
) -> list[Expectation]:
    """The entries of a file, in order. `renamed`: checks, old name to new. Raises ManifestError: a port or requirement that
    is not there, too."""
    renamed = renamed or {}
    if path is None:
        return []
    source = Source(path, root)
    source.validate(root, SCHEMA, root / "build" / "manifests")
    found = []
    for index, entry in enumerate(source.data.get("expect_fail", [])):
        where: list[str | int] = ["expect_fail", index]
        for port in _several(entry["port"]):
            if port not in ports:
                raise source.error([*where, "port"], f"no port {port!r}", f"there are {', '.join(ports)}")
        if entry["requirement"] not in requirements:
            mend = "`execmem-cts list` shows them; patterns are not understood, an entry names one requirement"
            raise source.error([*where, "requirement"], f"no requirement {entry['requirement']!r}", mend)
        sizes: dict[str, tuple[int, ...]] = {}
        for key in ("stub_page", "os_page"):
            try:
                sizes[key] = tuple(_size(value) for value in _several(entry[key]))
            except ValueError:
                raise source.error([*where, key], f"{entry[key]!r} is no size", 'write 16384 or "16K"') from None
        expires = entry.get("expires")
        if expires is not None and type(expires) is not datetime.date:  # a datetime is a date, too
            raise source.error(
                [*where, "expires"], f"expected a date, found {expires!r}", "write it without quotes: 2027-01-31"
            )
        try:
            versions = Range.parse(entry["emulator"]) if "emulator" in entry else None
        except ValueError as error:
            raise source.error([*where, "emulator"], str(error), "write for instance '>=7.2, <9'") from None
        line = locate(source.text, where)
        found.append(
            Expectation(
                requirement=entry["requirement"],
                ports=tuple(_several(entry["port"])),
                stub_pages=sizes["stub_page"],
                os_pages=sizes["os_page"],
                reason=entry["reason"],
                link=entry["link"],
                narrow=tuple((key, renamed.get(entry[key], entry[key])) for key in NARROW if key in entry),
                emulator=versions,
                expires=expires,
                where=f"{source.name}:{line}",
                index=index,
            )
        )
    return found


def cell_text(cell: Cell) -> str:
    requirement, port, stub_page, os_page = cell
    stub = f"stub page {size_text(stub_page)}, " if stub_page else ""
    return f"{requirement} on {port}, {stub}OS page {size_text(os_page)}"


def restore(results: Sequence[Result]) -> list[Result]:
    """Results as they were before any expectation: what a stored file was judged by does not count any more."""
    return [
        dataclasses.replace(result, verdict=_RESTORED[result.verdict], expected="")
        if result.verdict in _RESTORED and result.expected
        else result
        for result in results
    ]


def apply(
    results: Sequence[Result], expectations: Sequence[Expectation], run: Machine, today: datetime.date | None = None
) -> Judged:
    """Judges results by expectations. `today`: by which entries expire."""
    today = today or datetime.date.today()
    judged = Judged(restore(results), [], [], {}, {})
    if not expectations:
        return judged
    cells: dict[Cell, list[int]] = {}
    for number, result in enumerate(judged.results):
        cells.setdefault((result.requirement, result.port, result.stub_page, result.os_page), []).append(number)
    elsewhere = 0
    for entry in expectations:
        bad: list[Cell] = []
        for cell in entry.cells():
            port = cell[1]
            if not entry.applies(port, run) or (run.ports and port not in run.ports):
                elsewhere += 1
                continue
            named = [n for n in cells.get(cell, ()) if entry.names(judged.results[n])]
            if not _turn(judged, entry, cell, named):
                bad.append(cell)
        if bad:
            judged.stale[entry.index] = bad
        if entry.expires is not None and entry.expires < today:
            message = f"expected to fail until {entry.expires}, which has passed: {entry.reason} ({entry.link})"
            judged.findings.append(
                Finding("expired", entry.where, message, "mend the failure, or agree on a later date in `expires`")
            )
    if elsewhere:
        judged.notes.append(f"{elsewhere} expected failures are of ports or conditions that this run does not have")
    return judged


def _turn(judged: Judged, entry: Expectation, cell: Cell, named: Sequence[int]) -> bool:
    """Turns the verdicts of one cell of one entry. False where the entry does not hold there."""
    free = [n for n in named if not judged.results[n].expected]
    kinds = {judged.results[n].verdict for n in free}
    for number in free:
        result = judged.results[number]
        judged.covered[number] = entry.index
        if result.verdict in _TURNED and not result.flaky:  # flaky stays red: it neither fails nor passes
            judged.results[number] = dataclasses.replace(
                result, verdict=_TURNED[result.verdict], expected=f"{entry.reason} ({entry.link}), {entry.where}"
            )
    if "PASS" in kinds:
        return False  # told by XPASS
    if kinds & {"FAIL", "ERROR", "SKIP", "NOTRUN"}:
        return True  # what was not run makes the run unverified, not the entry wrong
    if not named:
        problem = "matches no result"
    elif not free:
        problem = "matches only results that an entry before it already expects to fail"
    else:
        problem = f"matches only results that cannot fail here ({', '.join(sorted(kinds))})"
    mend = "delete or narrow the entry, mend the names in it, or run `execmem-cts update-expectations`"
    judged.findings.append(Finding("stale", entry.where, f"{problem}: {cell_text(cell)}: {entry.reason}", mend))
    return False
