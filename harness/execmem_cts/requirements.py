"""Requirements as data: conformance/requirements/*.toml, and the lint between them and the checks, in both directions."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .source import ManifestError, Source

LEVELS = ("MUST", "SHOULD")
PROGRAMS = ("po", "abi", "alloc")
KEYS = {"id", "level", "since", "text", "source", "checks", "mend"}
OPTIONAL = {"once"}


@dataclass(frozen=True)
class Requirement:
    """One normative sentence and the checks that test it."""

    id: str
    level: str
    since: str  # the release that introduced it
    text: str
    source: str
    checks: tuple[str, ...]
    mend: str  # what a reader of a failure should look at first
    program: str = (
        "po"  # that holds the checks: one a configuration; "abi", one a port; "alloc", one a port and subject
    )
    once: bool = False  # program alloc: no page size matters to it, so that it is run at the smallest alone

    @property
    def family(self) -> str:
        return self.id.split("-", 1)[0]


def load(root: Path) -> dict[str, Requirement]:
    """Every requirement of the tree, by id. Raises ManifestError."""
    found: dict[str, Requirement] = {}
    for path in sorted((root / "conformance" / "requirements").glob("*.toml")):
        source = Source(path, root)
        program = source.data.get("program", "po")
        if program not in PROGRAMS:
            raise source.error(["program"], f"found {program!r}", f"use one of {', '.join(PROGRAMS)}")
        for index, entry in enumerate(source.data.get("requirement", [])):
            where: list[str | int] = ["requirement", index]
            for key in sorted(KEYS - set(entry)):
                raise source.error([*where, key], "is missing", f"add `{key} = ...`")
            for key in sorted(set(entry) - KEYS - OPTIONAL):
                raise source.error(
                    [*where, key], f"unknown key {key!r}", f"known are {', '.join(sorted(KEYS | OPTIONAL))}"
                )
            if entry["level"] not in LEVELS:
                raise source.error([*where, "level"], f"found {entry['level']!r}", f"use one of {', '.join(LEVELS)}")
            if entry["id"] in found:
                raise source.error([*where, "id"], f"{entry['id']!r} is there twice", "every requirement has its own")
            if not entry["checks"]:
                raise source.error([*where, "checks"], "is empty", "a requirement that no check tests is not one")
            fields: dict[str, Any] = {**entry, "checks": tuple(entry["checks"]), "program": program}
            found[entry["id"]] = Requirement(**fields)
    if not found:
        raise ManifestError(f"{root / 'conformance' / 'requirements'}: no requirement found")
    return found


def folders(requirements: Mapping[str, Requirement], program: str) -> set[str]:
    """The folders of conformance/ that hold the checks of a program: its own, and one a family, in lower case."""
    return {program, *(r.family.lower() for r in requirements.values() if r.program == program)}


def lint(
    requirements: Mapping[str, Requirement], checks: Mapping[str, str], programs: Container[str] = PROGRAMS
) -> list[str]:
    """What does not agree between requirements and `checks` (id to the requirement that it names), one line each.

    `programs`: those that `checks` comes from. Of the others' requirements nothing is said.
    """
    problems = []
    named: dict[str, str] = {}
    for requirement in requirements.values():
        for check in requirement.checks:
            if check in named:
                problems.append(f"{check}: named by {named[check]} and by {requirement.id}; one check, one requirement")
            named[check] = requirement.id
            if check not in checks and requirement.program not in programs:
                continue
            if check not in checks:
                problems.append(f"{requirement.id}: no check {check} in any program or oracle; write it or remove it")
            elif checks[check] != requirement.id:
                problems.append(f"{requirement.id}: lists {check}, which itself names {checks[check]}")
    for check, of in sorted(checks.items()):
        if of not in requirements:
            problems.append(f"{check}: names {of}, which is no requirement; add it to conformance/requirements/")
        elif check not in named:
            problems.append(f"{check}: names {of}, which does not list it; add it to `checks`")
    return problems
