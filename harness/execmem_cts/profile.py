"""Profiles: what is required for a verdict "conformant" (conformance/profiles/*.toml).

A requirement is due in every cell that a port's manifest declares, unless an [[unshown]] entry of the profile, or of
the port, says that no such runner can show it, and why. Profiles name no port: they hold for ports to come.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from .model import Port, Result, Unshown
from .requirements import LEVELS, Requirement
from .source import ManifestError, Source

RUNNERS = ("emulated", "native", "host", "*")
_REQUIRE = {"requirements", "levels", "runner", "ports", "os_pages"}
_UNSHOWN = {"requirement", "runner", "reason", "port", "os_page"}


@dataclass(frozen=True)
class Require:
    requirements: tuple[str, ...]  # globs
    levels: tuple[str, ...]
    runner: str
    ports: str = "*"
    os_pages: tuple[int, ...] = ()  # empty: every one


@dataclass(frozen=True)
class Profile:
    """`levels`: the level of each requirement that is known. Bound to ports and a machine by `bind`."""

    name: str
    require: tuple[Require, ...]
    unshown: tuple[Unshown, ...]
    levels: dict[str, str]
    _known: dict[tuple[str, str, int, str], bool] = field(default_factory=dict, compare=False, repr=False)

    def bind(self, ports: Iterable[Port]) -> Profile:
        """The profile with what the ports themselves say cannot be shown."""
        own = tuple(entry for port in ports for entry in port.unshown)
        return Profile(self.name, self.require, self.unshown + own, self.levels)

    def why_unshown(self, requirement: str, port: str, os_page: int, runner: str) -> str:
        """The reason why such a runner cannot show the requirement there, or ""."""
        for entry in self.unshown:
            if (
                fnmatchcase(requirement, entry.requirement)
                and fnmatchcase(port, entry.port)
                and entry.runner in ("*", runner)
                and entry.os_page in (0, os_page)
            ):
                return entry.reason
        return ""

    def requires(self, requirement: str, port: str, os_page: int, runner: str) -> bool:
        """Is the requirement due in this cell?"""
        level = self.levels.get(requirement, "MUST")
        due = any(
            any(fnmatchcase(requirement, pattern) for pattern in entry.requirements)
            and level in entry.levels
            and entry.runner in ("*", runner)
            and fnmatchcase(port, entry.ports)
            and (not entry.os_pages or os_page in entry.os_pages)
            for entry in self.require
        )
        return due and not self.why_unshown(requirement, port, os_page, runner)

    def requires_result(self, result: Result) -> bool:
        """The same of a result's cell; remembered, because thousands of results share few cells."""
        cell = (result.requirement, result.port, result.os_page, result.runner)
        known = self._known.get(cell)
        if known is None:
            known = self._known[cell] = self.requires(*cell)
        return known


def profile_path(root: Path, name: str) -> Path:
    """conformance/profiles/<name>.toml, or the path itself where `name` is one."""
    path = Path(name)
    if path.suffix == ".toml":
        return path
    found = root / "conformance" / "profiles" / f"{name}.toml"
    if not found.is_file():
        names = sorted(p.stem for p in (root / "conformance" / "profiles").glob("*.toml"))
        raise ManifestError(f"--profile {name}: no such profile; there are {', '.join(names)}, or give a path to one")
    return found


def load(path: Path, root: Path, requirements: dict[str, Requirement]) -> Profile:
    """Raises ManifestError."""
    source = Source(path, root)
    data = source.data
    for key in sorted(set(data) - {"schema", "name", "require", "unshown"}):
        raise source.error([key], f"unknown key {key!r}", "known are schema, name, require, unshown")
    if data.get("schema") != 1:
        raise source.error(["schema"], f"expected 1, found {data.get('schema')!r}", "write `schema = 1`")
    if not data.get("require"):
        raise source.error(["require"], "is missing", "a profile that requires nothing gates nothing")
    require = []
    for index, entry in enumerate(data["require"]):
        where: list[str | int] = ["require", index]
        for key in sorted(set(entry) - _REQUIRE):
            raise source.error([*where, key], f"unknown key {key!r}", f"known are {', '.join(sorted(_REQUIRE))}")
        for pattern in entry.get("requirements", []):
            if not any(fnmatchcase(name, pattern) for name in requirements):
                raise source.error([*where, "requirements"], f"{pattern!r} matches no requirement", "mend the pattern")
        if not entry.get("requirements"):
            raise source.error([*where, "requirements"], "is missing", 'write for example `requirements = ["PO-*"]`')
        if entry.get("runner", "*") not in RUNNERS:
            raise source.error([*where, "runner"], f"found {entry['runner']!r}", f"use one of {', '.join(RUNNERS)}")
        require.append(
            Require(
                requirements=tuple(entry["requirements"]),
                levels=tuple(entry.get("levels", LEVELS)),
                runner=entry.get("runner", "*"),
                ports=entry.get("ports", "*"),
                os_pages=tuple(entry.get("os_pages", ())),
            )
        )
    unshown = []
    for index, entry in enumerate(data.get("unshown", [])):
        where = ["unshown", index]
        for key in sorted(set(entry) - _UNSHOWN):
            raise source.error([*where, key], f"unknown key {key!r}", f"known are {', '.join(sorted(_UNSHOWN))}")
        for key in ("requirement", "runner", "reason"):
            if not entry.get(key):
                raise source.error([*where, key], "is missing", "say what cannot be shown, by which runner, and why")
        unshown.append(Unshown(**entry))
    levels = {name: requirement.level for name, requirement in requirements.items()}
    return Profile(data.get("name", path.stem), tuple(require), tuple(unshown), levels)
