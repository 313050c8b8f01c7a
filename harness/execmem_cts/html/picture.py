"""The picture of one template: code page left, data page right, an arrow from each access to what it reaches.

Geometry alone: the page's template draws what is computed here. All numbers are pixels of the picture's own system.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..matrix import size_text
from .layouts import Arrow, Layout

ROW = 20  # height of a line of text
TOP = 72  # of the first line, below the page's two titles
GAP = 12


@dataclass(frozen=True)
class Line:
    """A line of text in a page."""

    y: int
    text: str
    kind: str = ""  # field | idle | missed | stray


@dataclass(frozen=True)
class Drawn:
    """An arrow: from the right edge of an instruction to the left edge of what it reaches."""

    y1: int
    y2: int
    text: str
    kind: str  # hit | stray
    at: int  # where its text stands, y


@dataclass(frozen=True)
class Picture:
    layout: Layout
    height: int
    code: tuple[Line, ...]
    data: tuple[Line, ...]
    arrows: tuple[Drawn, ...]
    code_titles: tuple[str, str]
    data_titles: tuple[str, str]

    @property
    def title(self) -> str:
        one = self.layout
        return f"{one.template} on {one.port} ({one.variant}), stub page {size_text(one.stub_page)}"

    @property
    def summary(self) -> str:
        """The picture in words, for who does not see it."""
        parts = [arrow_text(arrow) for arrow in self.layout.arrows]
        return "; ".join(parts) + "." if parts else f"Nothing could be drawn: {self.layout.problem}"


def reach_text(arrow: Arrow) -> str:
    """How far the access can reach, as a range of its immediate."""
    if arrow.reach is None:
        return "no limit: the address is absolute, or a whole word"
    return f"{arrow.reach[0]} to {arrow.reach[1]}, holds {arrow.immediate}"


def last_text(arrow: Arrow) -> str:
    """The last stub page size that it reaches, or a dash."""
    return str(arrow.last) if arrow.last else "-"


def arrow_text(arrow: Arrow) -> str:
    where = arrow.field or "no field of the record"
    return f"the {arrow.direction} at {arrow.at} reaches {where} at a distance of {arrow.distance} bytes"


def picture(layout: Layout) -> Picture:
    """Where everything stands."""
    code = tuple(Line(TOP + ROW * n, f"{c.at:>3}  {c.text}") for n, c in enumerate(layout.code))
    reached = {arrow.field for arrow in layout.arrows}
    lines: list[tuple[int, str, str]] = []  # distance, text, kind
    for place in layout.places:
        kind = "field" if place.name in reached else "missed" if place.read else "idle"
        more = {"missed": ", nothing reaches it", "idle": ", not read"}.get(kind, "")
        lines.append((place.distance, f"{place.name} ({place.width} bytes{more})", kind))
    stray = sorted({arrow.distance for arrow in layout.arrows if not arrow.field})
    lines += [(distance, f"no field, at {distance:#x}", "stray") for distance in stray]
    lines.sort(key=lambda line: line[0])
    data = tuple(Line(TOP + ROW * n, text, kind) for n, (_, text, kind) in enumerate(lines))
    at_code = {c.at: line.y for c, line in zip(layout.code, code)}
    at_data = {distance: line.y for (distance, _, _), line in zip(lines, data)}
    arrows: list[Drawn] = []
    for arrow in layout.arrows:
        y1, y2 = at_code.get(arrow.at, TOP), at_data[arrow.distance]
        reach = f", up to {arrow.reach[1]:+#x}" if arrow.reach else ", no limit"
        text = f"{arrow.distance:+#x}{reach}"
        taken = {drawn.at for drawn in arrows}
        at = (y1 + y2) // 2
        while any(abs(at - other) < 14 for other in taken):
            at += 14
        arrows.append(Drawn(y1, y2, text, "hit" if arrow.field else "stray", at))
    lowest = max([TOP, *(line.y for line in (*code, *data)), *(drawn.at for drawn in arrows)])
    return Picture(
        layout,
        lowest + ROW + GAP,
        code,
        data,
        tuple(arrows),
        (f"code page: {layout.slots} slots of {layout.pitch} bytes", "slot 0"),
        (f"data page at {layout.data:+#x}", f"record 0 at {layout.record:+#x}, {layout.record_size} bytes"),
    )
