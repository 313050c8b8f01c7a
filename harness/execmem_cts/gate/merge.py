"""Joins the results of all shards of one run, or says why they are not that.

What comes out is what one machine would have written: the same results in the same order, judged anew.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import results as files
from ..model import Result
from ..source import ManifestError
from .judge import results_file
from .shards import PLAN, Shard, cell_of, digest, parse

if TYPE_CHECKING:
    from ..html.layouts import Layout

# What all shards must have in common: key of the header -> what it is called.
SAME = {
    "execmem_cts": "versions of execmem-cts",
    "profile": "profiles",
    "seed": "seeds",
    "timeout": "time limits",
    "subject": "subjects",
    "checkout": "checkouts",
    "compiler": "compilers",
    "emulators": "emulator versions",
    "native": "ports that run natively",
    "ports": "ports",
}
MOST = 8  # names listed in one message


class MergeError(Exception):
    """Shards that do not make a whole. One message a line, each about one thing."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = list(problems)


@dataclass(frozen=True)
class Part:
    """The results of one shard, and what it planned."""

    path: Path
    header: Mapping[str, Any]
    results: tuple[Result, ...]
    planned: str

    @property
    def shard(self) -> Shard:
        return parse(str(self.header["shard"]))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:MOST]) + (f" and {len(names) - MOST} more" if len(names) > MOST else "")


def read(path: Path) -> Part:
    """One shard's folder. Raises MergeError."""
    file = results_file(path, files.JSON_LINES)
    if not file.exists():
        mend = "its worker was killed, failed or is still running: run that shard again"
        raise MergeError([f"{path}: no {files.JSON_LINES} in it: {mend}"])
    try:
        header, found = files.read(file)
        if "shard" not in header:
            raise MergeError([f"{file}: results of no shard: a whole run needs no merge; gate it as it is"])
        parse(str(header["shard"]))
        planned = file.with_name(PLAN).read_text()
    except ManifestError as error:
        raise MergeError([str(error)]) from error
    except OSError as error:
        raise MergeError(
            [f"{file.with_name(PLAN)}: cannot be read: {error.strerror}; keep it with the results"]
        ) from None
    if digest(planned) != header.get("plan"):
        mend = "it is another run's, or was changed: keep the files of one shard together"
        raise MergeError([f"{file.with_name(PLAN)}: not the plan of the results beside it; {mend}"])
    return Part(path, header, tuple(found), planned)


def read_all(paths: Sequence[Path]) -> list[Part]:
    """Raises MergeError with all that cannot be read, and the shards that are there all the same."""
    parts, problems = [], []
    for path in paths:
        try:
            parts.append(read(path))
        except MergeError as error:
            problems += error.problems
    if problems:
        raise MergeError(problems + (_missing(parts) if parts else []))
    return parts


def _missing(parts: Sequence[Part]) -> list[str]:
    """Shards that nobody has, counted by those that are there."""
    count = parts[0].shard.count
    have = {part.shard.number for part in parts}
    missing = [number for number in range(1, count + 1) if number not in have]
    if not missing:
        return []
    there = set(parts[0].planned.splitlines())
    lost = sum(any(Shard(n, count).has(line.split("\t")[0].rsplit("/", 1)[0]) for n in missing) for line in there)
    names = ", ".join(f"{number}/{count}" for number in missing)
    few = "shard" if len(missing) == 1 else "shards"
    again = " and ".join(f"`execmem-cts run --shard {number}/{count} ...`" for number in missing[:2])
    return [f"missing {few} {names}: {lost} of {len(there)} planned checks have no result; run {again}"]


def _differing(parts: Sequence[Part]) -> list[str]:
    first = parts[0]
    problems = []
    for part in parts[1:]:
        if part.shard.count != first.shard.count:
            problems.append(
                f"shards of different runs: {first.path} is {first.shard}, {part.path} is {part.shard}; "
                "run all shards with one count"
            )
        for key, name in SAME.items():
            one, other = first.header.get(key), part.header.get(key)
            if one != other:
                problems.append(
                    f"differing {name}: {first.path} has {_short(one, other)}, {part.path} has {_short(other, one)}; "
                    "run all shards with the same tools and options"
                )
        if part.header.get("plan") != first.header.get("plan"):
            a, b = set(first.planned.splitlines()), set(part.planned.splitlines())
            only = [f"{first.path} alone plans {line.split(chr(9))[0]}" for line in sorted(a - b)[:1]]
            only += [f"{part.path} alone plans {line.split(chr(9))[0]}" for line in sorted(b - a)[:1]]
            problems.append(
                f"differing plans: {'; '.join(only)} ({len(a ^ b)} lines differ); "
                "run all shards on one state of the tree, with the same selection, on machines of one kind"
            )
    return problems


def _short(value: Any, other: Any) -> str:
    """A header's value; of a table what the other has not."""
    if isinstance(value, dict) and isinstance(other, dict):
        value = {key: entry for key, entry in value.items() if other.get(key) != entry} or "nothing else"
    return str(value)


def _duplicates(parts: Sequence[Part]) -> list[str]:
    problems = []
    by_number: dict[int, list[Part]] = {}
    for part in parts:
        by_number.setdefault(part.shard.number, []).append(part)
    for number, same in sorted(by_number.items()):
        if len(same) > 1:
            names = " and ".join(str(part.path) for part in same)
            problems.append(f"duplicate shard {same[0].shard}: {names}; give each once")
    if problems:
        return problems
    counts = Counter(result.key for part in parts for result in part.results)
    twice = sorted(key for key, number in counts.items() if number > 1)
    # The plan itself may name a cell twice: a check left out in part has a line of its own. Then one shard has both.
    spread = [key for key in twice if sum(any(r.key == key for r in part.results) for part in parts) > 1]
    if spread:
        problems.append(
            f"duplicate results, in more than one shard: {_listed(spread)}; a shard ran what is not its own"
        )
    return problems


def _unplanned(parts: Sequence[Part]) -> list[str]:
    """Planned checks without a result, shard by shard."""
    problems = []
    count = parts[0].shard.count
    have = {f"{cell_of(result)}/{result.check}" for part in parts for result in part.results}
    lost: dict[int, list[str]] = {}
    for line in parts[0].planned.splitlines():
        name = line.split("\t")[0]
        if name not in have:
            cell = name.rsplit("/", 1)[0]
            owner = next(number for number in range(1, count + 1) if Shard(number, count).has(cell))
            lost.setdefault(owner, []).append(name)
    paths = {part.shard.number: part.path for part in parts}
    for number, names in sorted(lost.items()):
        problems.append(
            f"planned checks without a result: {len(names)} of shard {number}/{count} ({paths[number]}): "
            f"{_listed(names)}; its results are cut short: run it again"
        )
    return problems


def merge(parts: Sequence[Part]) -> tuple[dict[str, Any], list[Result], str]:
    """Header, results and plan of the whole run. Raises MergeError."""
    if not parts:
        raise MergeError(["no shard was given; name the folders of their results"])
    problems = _differing(parts) or _duplicates(parts) + _missing(parts)
    problems = problems or _unplanned(parts)
    if problems:
        raise MergeError(problems)
    ordered = sorted(parts, key=lambda part: part.shard.number)
    header = {key: value for key, value in ordered[0].header.items() if key != "shard"}
    header["date"] = min(str(part.header.get("date", "")) for part in ordered)
    results = sorted((result for part in ordered for result in part.results), key=lambda result: result.key)
    return header, results, ordered[0].planned


def layouts_of(parts: Sequence[Part]) -> list[Layout]:
    """The templates that the shards built, each once. Raises ManifestError."""
    from ..html import layouts

    found: dict[tuple[str, str, int, str], Layout] = {}
    for part in parts:
        beside = results_file(part.path, files.JSON_LINES).with_name(layouts.FILE)
        for one in layouts.read(beside).layouts:
            found.setdefault((one.port, one.variant, one.stub_page, one.template), one)
    return list(found.values())


def folders(paths: Sequence[Path]) -> list[Path]:
    """The folders given, or, for one without results of its own, the folders in it that hold shards (shard-1, ...)."""
    found: list[Path] = []
    for path in paths:
        inner = [entry for entry in path.iterdir() if entry.is_dir()] if path.is_dir() else []
        if inner and not (path / files.JSON_LINES).exists():
            found += sorted(inner, key=lambda p: [int(n) for n in re.findall(r"\d+", p.name)] or [0])
        else:
            found.append(path)
    return found
