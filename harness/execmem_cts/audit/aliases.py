"""Pages of a file that are writable at one address and executable at another, and for how long."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .kinds import Finding, Place, Step
from .space import Mapping, Piece, Space, overlaps

Pair = tuple[Mapping, Mapping]  # the writable view, the executable one


@dataclass
class _Alias:
    opened: Step
    view: Place
    code: Place
    inherited: bool = False  # came by fork


class Aliases:
    """The aliases that are open now, by address space. Findings come when they close."""

    def __init__(self) -> None:
        self._open: dict[Space, dict[Pair, _Alias]] = {}

    def is_open(self, space: Space, mapping: Mapping) -> bool:
        """Is some page of this mapping writable or executable elsewhere just now?"""
        return any(mapping in pair for pair in self._open.get(space, ()))

    def update(self, space: Space, touched: Iterable[Mapping], step: Step) -> list[Finding]:
        """To be called after every change, with the mappings that it touched. What closed by it."""
        known = self._open.setdefault(space, {})
        closed = []
        for mapping in dict.fromkeys(touched):
            if mapping.file is None or mapping.file.device:
                continue
            now = _pairs(space, mapping)
            for pair, (view, code) in now.items():
                if pair not in known:
                    known[pair] = _Alias(step, view.place(), code.place())
            for pair in [pair for pair in known if mapping in pair and pair not in now]:
                closed.append(_finding("alias", pair, known.pop(pair), step, _cause(step)))
        return closed

    def fork(self, parent: Space, child: Space) -> None:
        """A child that gets a copy of the mappings gets the aliases as well."""
        self._open[child] = {
            pair: _Alias(alias.opened, alias.view, alias.code, True)
            for pair, alias in self._open.get(parent, {}).items()
            if pair in _pairs(child, pair[0])
        }

    def end(self, space: Space, step: Step, how: str) -> list[Finding]:
        """The address space ends: what is still open was held to the end, unless it merely came by fork."""
        return [
            _finding("alias" if alias.inherited else "view-at-end", pair, alias, step, how)
            for pair, alias in self._open.pop(space, {}).items()
        ]


def _pairs(space: Space, mapping: Mapping) -> dict[Pair, tuple[Piece, Piece]]:
    """Pairs with this mapping on either side. A view that is itself executable is worse than an alias, and told as such."""
    if mapping.file is None:
        return {}
    pieces = space.of_file(mapping.file)
    views = [p for p in pieces if p.writable and p.mapping.shared and not p.executable]
    codes = [p for p in pieces if p.executable] if views else []
    found: dict[Pair, tuple[Piece, Piece]] = {}
    for view in views:
        for code in codes:
            if mapping is not view.mapping and mapping is not code.mapping:
                continue
            low, high = overlaps(view, code)
            if low < high:
                found.setdefault((view.mapping, code.mapping), (view, code))
    return found


def _cause(step: Step) -> str:
    return f"ended by {step.text}"


def _finding(kind: str, pair: Pair, alias: _Alias, step: Step, until: str) -> Finding:
    view, code = alias.view, alias.code
    low = max(view.offset, code.offset)
    high = min(view.offset + view.end - view.start, code.offset + code.end - code.start)
    seconds = None
    if step.time is not None and alias.opened.time is not None:
        seconds = max(step.time - alias.opened.time, 0.0)
    return Finding(
        kind=kind,
        step=alias.opened,
        place=view,
        mapping=pair[0].number,
        detail=f"{view.file} from {low:#x} to {high:#x}" + (", inherited by fork" if alias.inherited else ""),
        other=code,
        seconds=seconds,
        calls=step.number - alias.opened.number,
        until=until,
    )
