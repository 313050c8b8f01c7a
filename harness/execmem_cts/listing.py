"""Which checks a program has: it is asked itself, by --list."""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from . import process
from .source import ManifestError

MANIFEST_WRONG = "# manifest: "  # how a program says that it and its subject's manifest do not agree


@dataclass(frozen=True)
class Listed:
    """One line of a program's --list."""

    check: str
    requirement: str
    points: tuple[str, ...]
    text: str


def list_checks(programs: Mapping[Path, tuple[str, ...]], root: Path) -> dict[Path, list[Listed]]:
    """The checks of each program, asked of the program itself under its emulator; remembered until it changes. [] where
    it does not say."""

    def one(program: Path) -> list[Listed]:
        emulator = programs[program]
        cache = program.with_name(f"{program.name}.checks.json")
        state = program.stat()
        stamp = [state.st_mtime_ns, state.st_size, *emulator]
        try:
            known = json.loads(cache.read_text())
            if known["stamp"] == stamp:
                return [Listed(c, r, tuple(p), t) for c, r, p, t in known["checks"]]
        except (OSError, ValueError, KeyError):
            pass
        try:
            ended = process.run([*emulator, str(program), "--list"], 10, root)
        except OSError:
            return []
        wrong = next((line for line in ended.output.splitlines() if line.startswith(MANIFEST_WRONG)), "")
        if wrong:
            raise ManifestError(
                f"claims: {wrong.removeprefix(MANIFEST_WRONG)} (in {program.parent.parent.name}); make `claims` of its "
                "subject.toml and the operations of its `struct subject` the same"
            )
        rows = [line.split("\t") for line in ended.output.splitlines()]
        if ended.status != 0 or any(len(row) != 4 for row in rows):
            return []
        checks = [Listed(check, requirement, tuple(p.split(",")), text) for check, requirement, p, text in rows]
        cache.write_text(json.dumps({"stamp": stamp, "checks": [list(vars(line).values()) for line in checks]}))
        return checks

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(programs, pool.map(one, programs)))
