"""Planted faults: each breaks a copy of the tree in one way, and must turn exactly the requirements that it names red.

A fault is one file, conformance/faults/<name>.toml. The whole tree is copied, the edits are made in the copy, and the
copy's own `execmem-cts run` judges it; nothing in the product knows that faults exist. An edit that does not match
exactly as often as it says is an error, so that a fault cannot quietly stop being one.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Iterable

from . import port_path
from .source import ManifestError

SCHEMA = 1
RED = frozenset({"FAIL", "ERROR", "XPASS"})
# What a copy needs to build and run the suite; the rest (build output, version control) stays behind.
COPIED = ("ref", "asm", "arch", "conformance", "harness/execmem_cts", "harness/execmem-cts", "toolchains")


class FaultError(ManifestError):
    """A fault file that cannot be used; the text says which, where and how to mend it."""


@dataclass(frozen=True)
class Edit:
    file: str  # from the top of the tree
    find: str  # regular expression, multi-line
    replace: str
    count: int  # how many places it must match
    after: str = ""  # only behind the first match of this
    before: str = ""  # and before the next match of this


@dataclass(frozen=True)
class Planting:
    """One place where the fault is planted: a port, and which of its configurations are run."""

    port: str
    edits: tuple[Edit, ...]
    options: tuple[str, ...]  # more options of `execmem-cts run`
    add: dict[str, str]  # new files: path in the copy -> text


@dataclass(frozen=True)
class Fault:
    name: str
    path: Path
    summary: str
    source: str
    must_red: tuple[str, ...]
    may_red: dict[str, str]  # requirement -> reason
    exit_status: int
    expects: tuple[str, ...]  # regular expressions that the console output must match
    plantings: tuple[Planting, ...]


@dataclass
class Outcome:
    """What one planting did. `problems` is empty when it behaved."""

    fault: Fault
    planting: Planting
    red: dict[str, set[str]] = field(default_factory=dict)  # requirement -> checks
    failed: dict[str, set[str]] = field(default_factory=dict)  # the same, for what failed and did not merely break
    problems: list[str] = field(default_factory=list)
    output: str = ""


# Sets of may_red entries that several faults share, by name: conformance/faults/_sets.toml.
FAULTS = Path("conformance") / "faults"
SETS = "_sets.toml"
_KEYS = {"schema", "summary", "source", "must_red", "may_red", "may_red_sets", "exit_status", "expects", "on"}
_ON_KEYS = {"port", "options", "edit", "add"}
_EDIT_KEYS = {"file", "find", "replace", "count", "after", "before"}


def _unknown(path: Path, table: str, found: Iterable[str], known: set[str]) -> None:
    extra = sorted(set(found) - known)
    if extra:
        raise FaultError(f"{path}: {table}: unknown key {extra[0]!r}; known are {', '.join(sorted(known))}")


def load(path: Path, root: Path | None = None) -> Fault:
    """Reads one fault file. Raises FaultError naming file, key and what was expected.

    `root`: the tree with the shared sets, where the file lies outside of it.
    """
    try:
        data: dict[str, Any] = tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as error:
        raise FaultError(f"{path}: not valid TOML: {error}") from error
    _unknown(path, "top level", data, _KEYS)
    if data.get("schema") != SCHEMA:
        raise FaultError(f"{path}: schema: expected {SCHEMA}, found {data.get('schema')!r}")
    for key in ("summary", "source", "must_red", "on"):
        if key not in data:
            raise FaultError(f"{path}: {key}: missing")
    if not data["must_red"] and (data.get("exit_status", 1) == 1 or not data.get("expects")):
        raise FaultError(f"{path}: must_red: empty, and no other exit_status with an `expects`: it would prove nothing")
    may: dict[str, str] = {}
    sets = (
        tomllib.loads(((root / FAULTS if root else path.parent) / SETS).read_text()) if data.get("may_red_sets") else {}
    )
    entries = list(data.get("may_red", []))
    for name in data.get("may_red_sets", []):
        if name not in sets:
            raise FaultError(f"{path}: may_red_sets: {name!r} is not in {SETS}; known are {', '.join(sorted(sets))}")
        entries += sets[name]
    for entry in entries:
        if not entry.get("reason"):
            raise FaultError(f"{path}: may_red: {entry.get('requirement')!r} needs a reason")
        may[entry["requirement"]] = entry["reason"]
    plantings = []
    for number, on in enumerate(data["on"], 1):
        _unknown(path, f"on[{number}]", on, _ON_KEYS)
        edits = []
        for edit in on.get("edit", []):
            _unknown(path, f"on[{number}].edit", edit, _EDIT_KEYS)
            edits.append(
                Edit(
                    file=edit["file"],
                    find=edit["find"],
                    replace=edit["replace"],
                    count=edit.get("count", 1),
                    after=edit.get("after", ""),
                    before=edit.get("before", ""),
                )
            )
        if not edits and not on.get("add"):
            raise FaultError(f"{path}: on[{number}]: neither edit nor add: nothing would be planted")
        plantings.append(Planting(on["port"], tuple(edits), tuple(on.get("options", [])), dict(on.get("add", {}))))
    return Fault(
        name=path.stem,
        path=path,
        summary=data["summary"],
        source=data["source"],
        must_red=tuple(data["must_red"]),
        may_red=may,
        exit_status=data.get("exit_status", 1),
        expects=tuple(data.get("expects", [])),
        plantings=tuple(plantings),
    )


def load_all(root: Path) -> list[Fault]:
    """Every fault of the tree and of the folders of ports outside of it, by name."""
    found: dict[str, Path] = {}
    for top in (root, *port_path.folders()):
        for path in (top / FAULTS).glob("[!_]*.toml"):
            if found.setdefault(path.name, path) != path:
                raise FaultError(f"{path}: {found[path.name]} has this name; begin it with the port's: <port>-...")
    if not found:
        raise FaultError(f"{root / FAULTS}: no fault found; the checks would go unproved")
    return [load(found[name], root) for name in sorted(found)]


def apply_edit(text: str, edit: Edit, fault: Fault) -> str:
    """The text with the edit made. Raises FaultError when it does not match as often as declared."""
    try:
        return _edited(text, edit, fault)
    except re.error as error:
        raise FaultError(
            f"{fault.path}: edit of {edit.file}: {error} in {error.pattern!r}; `find`, `after` and `before` are regular "
            "expressions, `replace` is re.sub's: write a backslash twice"
        ) from error


def _edited(text: str, edit: Edit, fault: Fault) -> str:
    start, end = 0, len(text)
    if edit.after:
        found = re.search(edit.after, text, re.MULTILINE)
        if not found:
            raise FaultError(f"{fault.path}: edit of {edit.file}: `after` {edit.after!r} is not in the file")
        start = found.end()
    if edit.before:
        found = re.compile(edit.before, re.MULTILINE).search(text, start)
        if not found:
            raise FaultError(f"{fault.path}: edit of {edit.file}: `before` {edit.before!r} is not behind `after`")
        end = found.start()
    changed, times = re.compile(edit.find, re.MULTILINE).subn(edit.replace, text[start:end])
    if times != edit.count:
        raise FaultError(
            f"{fault.path}: edit of {edit.file}: {edit.find!r} matched {times} times, expected {edit.count}; "
            "bring the fault up to date with the file"
        )
    result = text[:start] + changed + text[end:]
    if result == text:
        raise FaultError(f"{fault.path}: edit of {edit.file}: the replacement changes nothing")
    return result


def plant(root: Path, fault: Fault, planting: Planting, tree: Path) -> None:
    """Makes `tree` a copy of the project with the fault in it."""
    if tree.exists():
        shutil.rmtree(tree)
    ignore = shutil.ignore_patterns("__pycache__", ".mypy_cache")
    for name in COPIED:
        source, target = root / name, tree / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=ignore)
        else:
            shutil.copy2(source, target)
    # A port outside of the tree is within the copy: its folder is laid out as the tree is.
    for folder in port_path.folders():
        for name in ("arch", "asm", "toolchains"):
            if (folder / name).is_dir():
                shutil.copytree(folder / name, tree / name, dirs_exist_ok=True, ignore=ignore)
    # What is built of the whole tree is built of the copy as well, all but what the edits touch.
    for built in (root / "build" / planting.port, *(root / "build").glob(".ninja_*")):
        target = tree / "build" / built.name
        target.parent.mkdir(exist_ok=True)
        if built.is_dir():
            shutil.copytree(built, target)
        elif built.is_file():
            shutil.copy2(built, target)
    for edit in planting.edits:
        path = tree / edit.file
        if not path.is_file():
            raise FaultError(f"{fault.path}: edit.file: {edit.file} does not exist")
        path.write_text(apply_edit(path.read_text(), edit, fault))
    for name, text in planting.add.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def judge(fault: Fault, outcome: Outcome, status: int, results: list[dict[str, Any]]) -> None:
    """Compares what went red with what the fault names, and fills outcome.red and outcome.problems."""
    for result in results:
        if result["verdict"] in RED:
            outcome.red.setdefault(result["requirement"], set()).add(result["check"])
        if result["verdict"] == "FAIL":
            outcome.failed.setdefault(result["requirement"], set()).add(result["check"])
    for requirement in fault.must_red:
        if requirement not in outcome.failed:
            outcome.problems.append(f"{requirement} must fail and did not")
    for requirement in sorted(set(outcome.red) - set(fault.must_red) - set(fault.may_red)):
        checks = ", ".join(sorted(outcome.red[requirement]))
        outcome.problems.append(f"{requirement} went red ({checks}) and is in neither must_red nor may_red")
    if status != fault.exit_status:
        outcome.problems.append(f"exit status {status}, expected {fault.exit_status}")
    for pattern in fault.expects:
        if not re.search(pattern, outcome.output, re.MULTILINE):
            outcome.problems.append(f"the output does not match {pattern!r}")


def _inner() -> dict[str, str]:
    """The environment of a copy, which holds every port itself."""
    return {name: value for name, value in os.environ.items() if name != port_path.VARIABLE}


def run_one(root: Path, work: Path, fault: Fault, planting: Planting, seconds: float = 300) -> Outcome:
    """Plants, runs and judges one planting in `work`/<fault>-<port>."""
    outcome = Outcome(fault, planting)
    tree = work / f"{fault.name}-{planting.port}"
    try:
        plant(root, fault, planting, tree)
    except FaultError as error:
        outcome.problems.append(str(error))
        return outcome
    results_directory = tree / "build" / "results"
    argv = [str(tree / "harness" / "execmem-cts"), "run", "--port", planting.port, "--jobs", "1", "--no-rerun"]
    argv += ["--results", str(results_directory), *planting.options]
    try:
        done = subprocess.run(
            argv, cwd=tree, env=_inner(), capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        outcome.problems.append(f"did not end within {seconds:.0f} s")
        return outcome
    outcome.output = done.stdout + done.stderr
    path = results_directory / "results.jsonl"
    lines = path.read_text().splitlines() if path.is_file() else []
    records = [json.loads(line) for line in lines]
    judge(fault, outcome, done.returncode, [record for record in records if "check" in record])
    if not outcome.problems:
        shutil.rmtree(tree)
    return outcome


def run_all(
    root: Path, work: Path, faults: list[Fault], full: bool, jobs: int, done: Callable[[Outcome], None]
) -> list[Outcome]:
    """Runs the first planting of each fault, or all of them; calls `done` as each ends."""
    wanted = [(f, p) for f in faults for p in (f.plantings if full else f.plantings[:1])]

    def one(pair: tuple[Fault, Planting]) -> Outcome:
        outcome = run_one(root, work, *pair)
        done(outcome)
        return outcome

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(one, wanted))


def unkilled(outcomes: list[Outcome], checks: Iterable[str]) -> list[str]:
    """The checks that failed under no fault whose requirement names them: may_red proves nothing."""
    killed = {check for o in outcomes for name in o.fault.must_red for check in o.failed.get(name, ())}
    return sorted(set(checks) - killed)
