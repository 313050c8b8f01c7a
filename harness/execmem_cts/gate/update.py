"""Brings a file of expectations up to date: what no longer holds goes, what fails comes. The rest stays as it is written."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..model import Result
from ..source import ManifestError
from .expectations import NARROW, Expectation, Judged, Machine, apply

HEAD = """\
# What is known to fail: `execmem-cts gate --help` has the grammar, `execmem-cts update-expectations` writes it.
schema = 1
"""
# Narrower and narrower: the first that names failures alone is taken.
_STEPS = ((), ("check",), ("check", "point"), ("check", "point", "variant"), ("check", "point", "variant", "runner"))

Ask = Callable[[str, Sequence[Result]], tuple[str, str]]  # requirement, its failures -> reason, link


@dataclass(frozen=True)
class New:
    """An entry to be written. The pages are a product: every stub page with every OS page."""

    requirement: str
    port: str
    narrow: tuple[tuple[str, str], ...]
    stub_pages: tuple[int, ...]
    os_pages: tuple[int, ...]
    before: Expectation | None = None  # the entry that covered these failures

    def text(self, reason: str, link: str) -> str:
        def sizes(values: Sequence[int]) -> str:
            return str(values[0]) if len(values) == 1 else str(list(values))

        quoted = {"requirement": self.requirement, "port": self.port, **dict(self.narrow)}
        lines = ["[[expect_fail]]", *(f"{key} = {_string(value)}" for key, value in quoted.items())]
        lines += [f"stub_page = {sizes(self.stub_pages)}", f"os_page = {sizes(self.os_pages)}"]
        lines += [f"reason = {_string(reason)}", f"link = {_string(link)}"]
        if self.before and self.before.expires:
            lines.append(f"expires = {self.before.expires}")
        if self.before and self.before.emulator:
            parts = (sign + ".".join(map(str, numbers)) for sign, numbers in self.before.emulator.parts)
            lines.append(f"emulator = {_string(', '.join(parts))}")
        return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Update:
    """The new text, and what was done."""

    text: str
    deleted: tuple[Expectation, ...]
    added: tuple[New, ...]
    flaky: int  # failures that no entry may cover
    errors: int


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _narrow(failures: Sequence[Result], others: Sequence[Result]) -> set[tuple[tuple[str, str], ...]]:
    """What names all these failures of a cell and none of the others."""
    for step in _STEPS:
        named = {tuple((key, str(getattr(result, key))) for key in step) for result in failures}
        free = {tuple((key, str(getattr(result, key))) for key in step) for result in others}
        if not named & free:
            return {tuple(sorted(entry, key=lambda pair: NARROW.index(pair[0]))) for entry in named}
    return named


def wanted(results: Sequence[Result], before: Callable[[Result], Expectation | None]) -> list[New]:
    """The entries that cover every failure exactly, few of them."""
    cells: dict[tuple[str, str, int, int], list[Result]] = {}
    for result in results:
        cells.setdefault((result.requirement, result.port, result.stub_page, result.os_page), []).append(result)
    Key = tuple[str, str, tuple[tuple[str, str], ...], Expectation | None]
    pages: dict[Key, dict[int, set[int]]] = {}
    for (requirement, port, stub_page, os_page), here in cells.items():
        failures = [result for result in here if result.verdict == "FAIL" and not result.flaky]
        meant = {id(result) for result in failures}
        others = [result for result in here if id(result) not in meant and result.verdict not in ("NA", "SKIP")]
        for narrow in _narrow(failures, others) if failures else ():
            first = next(r for r in failures if all(getattr(r, key) == value for key, value in narrow))
            key = (requirement, port, narrow, before(first))
            pages.setdefault(key, {}).setdefault(stub_page, set()).add(os_page)
    found = []
    for (requirement, port, narrow, entry), by_stub in pages.items():
        by_os: dict[tuple[int, ...], list[int]] = {}
        for stub_page, os_pages in by_stub.items():
            by_os.setdefault(tuple(sorted(os_pages)), []).append(stub_page)
        for os_set, stubs in by_os.items():
            found.append(New(requirement, port, narrow, tuple(sorted(stubs)), os_set, entry))
    return sorted(found, key=lambda new: (new.requirement, new.port, new.narrow, new.stub_pages, new.os_pages))


def _blocks(text: str) -> tuple[list[str], list[list[str]]]:
    """The lines before the first entry, and each entry's: from the comments above it to those above the next."""
    lines = text.splitlines(keepends=True)
    heads = [n for n, line in enumerate(lines) if re.match(r"\s*\[\[\s*expect_fail\s*\]\]", line)]
    starts = []
    for head in heads:
        start = head
        while start and lines[start - 1].lstrip().startswith("#"):
            start -= 1
        starts.append(start)
    if not starts:
        return lines, []
    if starts[0] == 0:  # a comment at the very top is the file's
        starts[0] = heads[0]
    return lines[: starts[0]], [lines[a:b] for a, b in zip(starts, [*starts[1:], len(lines)])]


def update(
    text: str, entries: Sequence[Expectation], results: Sequence[Result], run: Machine, ask: Ask, name: str
) -> Update:
    """`ask` gives reason and link of failures that no entry covered. Raises ManifestError."""
    head, blocks = _blocks(text)
    if len(blocks) != len(entries):
        raise ManifestError(f"{name}: entries are not written as [[expect_fail]] tables; write them so, one key a line")
    judged = apply(results, entries, run)
    kept = [entry for entry in entries if entry.index not in judged.stale]
    again = apply(results, kept, run)
    by_key = _covering(judged, entries)
    new = wanted(again.results, lambda result: by_key.get(result.key))
    answers: dict[str, tuple[str, str]] = {}
    added = []
    for entry in new:
        if entry.before:
            reason, link = entry.before.reason, entry.before.link
        else:
            if entry.requirement not in answers:
                failures = [
                    r
                    for r in again.results
                    if r.requirement == entry.requirement and r.verdict == "FAIL" and not r.flaky
                ]
                answers[entry.requirement] = ask(entry.requirement, failures)
            reason, link = answers[entry.requirement]
        added.append(entry.text(reason, link))
    indices = {entry.index for entry in kept}
    body = "".join(line for number, block in enumerate(blocks) if number in indices for line in block)
    whole = ("".join(head) + body).rstrip("\n") + "\n"
    whole += "".join(f"\n{entry}" for entry in added)
    flaky = sum(r.flaky and r.verdict == "FAIL" for r in again.results)
    errors = sum(r.verdict == "ERROR" for r in again.results)
    return Update(whole, tuple(e for e in entries if e.index in judged.stale), tuple(new), flaky, errors)


def _covering(judged: Judged, entries: Sequence[Expectation]) -> dict[str, Expectation]:
    by_index = {entry.index: entry for entry in entries}
    return {judged.results[number].key: by_index[index] for number, index in judged.covered.items()}


def write(path: Path, text: str) -> None:
    """As a whole, or not at all."""
    half = path.with_name(path.name + ".part")
    half.write_text(text)
    half.replace(path)
