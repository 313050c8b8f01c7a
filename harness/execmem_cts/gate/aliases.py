"""Names that checks had in earlier releases: conformance/aliases.toml. An old name goes on working wherever one is given."""

from __future__ import annotations

from collections.abc import Container, Iterable
from pathlib import Path

from ..source import Source

FILE = Path("conformance/aliases.toml")
_KEYS = {"old", "new", "since"}


def load(root: Path, checks: Container[str]) -> dict[str, str]:
    """Old name -> the name of today. `checks`: all that there are. Raises ManifestError."""
    path = root / FILE
    if not path.exists():
        return {}
    source = Source(path, root)
    entries = source.data.get("renamed", [])
    for key in sorted(set(source.data) - {"schema", "renamed"}):
        raise source.error([key], f"unknown key {key!r}", "known are schema, renamed")
    if source.data.get("schema") != 1:
        raise source.error(["schema"], f"expected 1, found {source.data.get('schema')!r}", "write `schema = 1`")
    given: dict[str, str] = {}
    for index, entry in enumerate(entries):
        where: list[str | int] = ["renamed", index]
        if set(entry) != _KEYS:
            raise source.error(where, f"expected old, new and since, found {', '.join(sorted(entry))}", "mend the keys")
        if entry["old"] in checks:
            raise source.error([*where, "old"], f"{entry['old']!r} is a check today", "an old name is never used again")
        if entry["old"] in given:
            raise source.error([*where, "old"], f"{entry['old']!r} is there twice", "leave the last renaming")
        given[entry["old"]] = entry["new"]
    found = {}
    for index, old in enumerate(given):
        new, steps = given[old], 0
        while new in given and steps <= len(given):
            new, steps = given[new], steps + 1
        if new not in checks:
            raise source.error(["renamed", index, "new"], f"{new!r} is no check", "name the check of today")
        found[old] = new
    return found


def today(names: Iterable[str], aliases: dict[str, str]) -> tuple[str, ...]:
    """Checks, and points of them ("check.point"), under the names of today."""
    return tuple(
        aliases.get(check, check) + dot + point for check, dot, point in (name.partition(".") for name in names)
    )
