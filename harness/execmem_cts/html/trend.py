"""What changed since an earlier run: results compared by their keys, verdict by verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..model import Result
from ..verdict import RED

# Kind of change -> what it means, in the order in which they are told.
KINDS = {
    "broke": "failed or broke now, and did not before",
    "mended": "failed or broke before, and is well now",
    "lost": "passed before, and was not shown now",
    "shown": "passed now, and was not shown before",
    "gone": "had a result before, and has none now",
    "new": "has a result now, and had none before",
}
COMPARED = ("execmem_cts", "compiler", "emulators", "native", "profile", "subject", "seed")  # of the header
_WORST = ("FAIL", "XPASS", "ERROR", "NOTRUN", "SKIP", "EMU", "NA", "XFAIL", "PASS")
_WELL = ("PASS", "XFAIL")


@dataclass(frozen=True)
class Change:
    """One key whose verdict changed. A side that has no result is ""."""

    kind: str
    key: str
    requirement: str
    before: str
    after: str
    message: str  # of the worse side


@dataclass(frozen=True)
class Trend:
    """What an earlier run said, and what is otherwise now."""

    date: str
    word: str
    reason: str
    counts: Mapping[str, int]
    changes: tuple[Change, ...]
    differing: tuple[tuple[str, str, str], ...]  # of the header: key, before, now

    def of(self, kind: str) -> list[Change]:
        return [change for change in self.changes if change.kind == kind]


def _rank(result: Result) -> int:
    return _WORST.index(result.verdict) if result.verdict in _WORST else 0


def _worst(results: Sequence[Result], names: Mapping[str, str]) -> dict[str, Result]:
    """By key, checks under the names that they have today."""
    found: dict[str, Result] = {}
    for result in results:
        if result.check in names:
            result = replace(result, check=names[result.check])
        held = found.get(result.key)
        if held is None or _rank(result) < _rank(held):
            found[result.key] = result
    return found


def _kind(before: str, after: str) -> str:
    """ "" where nothing that counts changed."""
    if (after in RED) != (before in RED):
        return "broke" if after in RED else "mended"
    if after in RED:
        return ""
    if (before in _WELL) != (after in _WELL):
        return "shown" if after in _WELL else "lost"
    return ""


def compare(
    before: Sequence[Result],
    after: Sequence[Result],
    headers: tuple[Mapping[str, Any], Mapping[str, Any]],
    said: Mapping[str, Any],
    names: Mapping[str, str] | None = None,
) -> Trend:
    """`headers`: of both files, the earlier first. `said`: the last line of the earlier. `names`: of renamed checks, old to new."""
    old, new = _worst(before, names or {}), _worst(after, names or {})
    changes = []
    for key, result in new.items():
        if key not in old:
            changes.append(Change("new", key, result.requirement, "", result.verdict, result.message))
            continue
        kind = _kind(old[key].verdict, result.verdict)
        if kind:
            worse = old[key] if kind in ("mended", "shown") else result
            changes.append(Change(kind, key, result.requirement, old[key].verdict, result.verdict, worse.message))
    for key, result in old.items():
        if key not in new:
            changes.append(Change("gone", key, result.requirement, result.verdict, "", result.message))
    order = list(KINDS)
    changes.sort(key=lambda change: (order.index(change.kind), change.requirement, change.key))
    differing = [
        (key, _short(headers[0].get(key), headers[1].get(key)), _short(headers[1].get(key), headers[0].get(key)))
        for key in COMPARED
        if headers[0].get(key) != headers[1].get(key)
    ]
    return Trend(
        str(headers[0].get("date", "")),
        str(said.get("overall", "")),
        str(said.get("reason", "")),
        dict(said.get("counts", {})),
        tuple(changes),
        tuple(differing),
    )


def _short(value: Any, other: Any) -> str:
    """A header's value; of a table the entries that the other has not."""
    if isinstance(value, dict) and isinstance(other, dict):
        own = {key: entry for key, entry in value.items() if other.get(key) != entry}
        return ", ".join(f"{key}: {entry}" for key, entry in own.items()) or "nothing else"
    return "" if value is None else str(value)
