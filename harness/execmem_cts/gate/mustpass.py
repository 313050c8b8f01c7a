"""Must-pass lists: the checks that a profile required at a release, conformance/mustpass/VERSION/PROFILE.txt.

A list is data of a release and stays as it is. It lets a port be judged by a release that is not the newest, shows that no
check was lost since, and says what an upgrade brings.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .. import __version__
from ..model import Result
from ..profile import RUNNERS, Profile
from ..requirements import Requirement
from ..source import ManifestError
from ..verdict import Finding

FOLDER = Path("conformance/mustpass")
_LINE = re.compile(r"(?P<requirement>\S+) (?P<level>MUST|SHOULD) (?P<check>\S+)")


@dataclass(frozen=True, order=True)
class Entry:
    requirement: str
    check: str
    level: str


def wanted(requirements: Mapping[str, Requirement], profile: Profile) -> list[Entry]:
    """What the profile requires of any port, by some runner."""
    ports = sorted({require.ports for require in profile.require})
    return sorted(
        Entry(one.id, check, one.level)
        for one in requirements.values()
        if any(profile.requires(one.id, port, -1, runner) for port in ports for runner in RUNNERS[:3])
        for check in one.checks
    )


def text(entries: Iterable[Entry], profile: Profile) -> str:
    """The file. What no runner can show is in the profile and in the ports' manifests, with its reason."""
    head = [
        f"# execmem-cts {__version__}, profile {profile.name}: the checks that must pass. Written by `execmem-cts mustpass",
        "# --write` at the release, and left alone. Requirement, level, check.",
    ]
    return "\n".join([*head, *(f"{e.requirement} {e.level} {e.check}" for e in entries)]) + "\n"


def path_of(root: Path, version: str, profile: str) -> Path:
    return root / FOLDER / version / f"{profile}.txt"


def versions(root: Path, profile: str) -> list[str]:
    """The releases that have a list for this profile, oldest first."""
    found = [path.parent.name for path in (root / FOLDER).glob(f"*/{profile}.txt")]
    return sorted(found, key=lambda version: [int(part) for part in re.findall(r"\d+", version)])


def read(root: Path, version: str, profile: str) -> list[Entry]:
    """Raises ManifestError."""
    path = path_of(root, version, profile)
    try:
        lines = path.read_text().splitlines()
    except OSError:
        there = versions(root, profile)
        raise ManifestError(
            f"{FOLDER}: no must-pass list of {version} for profile {profile}; "
            + (f"there are those of {', '.join(there)}" if there else "`execmem-cts mustpass --write` writes one")
        ) from None
    found = []
    for number, line in enumerate(lines, 1):
        if line and not line.startswith("#"):
            match = _LINE.fullmatch(line)
            if match is None:
                raise ManifestError(
                    f"{path}:{number}: expected REQUIREMENT LEVEL CHECK, found {line!r}; restore the file of the release"
                )
            found.append(Entry(match["requirement"], match["check"], match["level"]))
    if not found:
        raise ManifestError(f"{path}: names no check; restore the file of the release")
    return found


# ---- What became of a release's checks ----


@dataclass(frozen=True)
class Since:
    """What is otherwise than in an earlier list."""

    added: tuple[Entry, ...]
    renamed: tuple[tuple[Entry, str], ...]
    lost: tuple[Entry, ...]  # no check has that name or had it
    moved: tuple[tuple[Entry, Entry], ...]  # another requirement or level


def since(
    before: Sequence[Entry], now: Sequence[Entry], checks: Mapping[str, str], aliases: Mapping[str, str]
) -> Since:
    """`checks`: all that there are today, required or not, to their requirement."""
    today = {entry.check: entry for entry in now}
    known = {aliases.get(entry.check, entry.check): entry for entry in before}
    return Since(
        added=tuple(entry for entry in now if entry.check not in known),
        renamed=tuple((entry, check) for check, entry in known.items() if check != entry.check),
        lost=tuple(entry for check, entry in known.items() if check not in checks),
        moved=tuple(
            (entry, today[check])
            for check, entry in known.items()
            if check in today and (entry.requirement, entry.level) != (today[check].requirement, today[check].level)
        ),
    )


def notes(changes: Since, version: str, requirements: Mapping[str, Requirement]) -> str:
    """Upgrade notes in Markdown."""
    lines = [f"# From {version} to {__version__}", ""]
    if changes.renamed:
        lines += ["## Renamed", "", "The old names go on working.", ""]
        lines += [f"- `{entry.check}` is `{new}`" for entry, new in changes.renamed] + [""]
    if changes.moved:
        lines += ["## Another requirement or level", ""]
        lines += [
            f"- `{new.check}`: {old.requirement} ({old.level}) is {new.requirement} ({new.level})"
            for old, new in changes.moved
        ] + [""]
    if changes.lost:
        lines += ["## Gone", "", *(f"- `{entry.check}` ({entry.requirement})" for entry in changes.lost), ""]
    if changes.added:
        lines += ["## New: to be passed now", ""]
        for name in sorted({entry.requirement for entry in changes.added}):
            checks = ", ".join(f"`{entry.check}`" for entry in changes.added if entry.requirement == name)
            lines += [f"- {name} ({requirements[name].level}): {requirements[name].text} ({checks})"]
        lines += [""]
    if len(lines) == 2:
        lines += ["The same checks.", ""]
    return "\n".join(lines)


# ---- Judging by a release ----


def restrict(
    results: Sequence[Result],
    entries: Sequence[Entry],
    checks: Container[str],
    aliases: Mapping[str, str],
    version: str,
) -> tuple[list[Result], list[Finding], str]:
    """Results as that release judges them, what is missing of it, and a note of what was left out.

    Checks that it did not require are left out; each that it did must have a result. `checks`: all that there are today;
    what belongs to none of them (a build that failed, a port without a check) stays.
    """
    wanted = {aliases.get(entry.check, entry.check): entry for entry in entries}
    kept = [result for result in results if result.check in wanted or result.check not in checks]
    known = {result.check for result in kept}
    findings = [
        Finding(
            "missing check",
            str(FOLDER / version),
            f"{entry.requirement}: {check} has no result",
            "run all of the suite, and gate that",
        )
        for check, entry in sorted(wanted.items())
        if check not in known
    ]
    left = {result.check for result in results if result.check not in wanted and result.check in checks}
    note = f"judged by the must-pass list of {version}: {len(results) - len(kept)} results of {len(left)} other checks left out"
    return kept, findings, note
