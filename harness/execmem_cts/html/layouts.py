"""Where each template reaches: the slot's instructions, the record's fields and the distances between them, as data.

Written beside the results of a run (layouts.json), because the built objects that it is read from do not travel with
them. All offsets, distances and sizes are bytes; distances count from the start of slot 0.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..model import Field
from ..source import ManifestError

if TYPE_CHECKING:
    from ..decode import Access, Address, Examined
    from ..model import Template, TemplateSet

FILE = "layouts.json"
FORMAT = 1


@dataclass(frozen=True)
class Code:
    """One instruction of slot 0."""

    at: int
    text: str


@dataclass(frozen=True)
class Place:
    """One declared field of slot 0's record. `read`: some path declares that it reads it."""

    name: str
    distance: int
    width: int
    read: bool


@dataclass(frozen=True)
class Arrow:
    """One access, as decoded. `field`: the declared field that lies there, or ""."""

    at: int  # offset of the access in the slot
    distance: int
    width: int
    direction: str  # load | store | update
    field: str = ""
    reach: tuple[int, int] | None = None  # of the immediate that carries the distance; None: it has no limit
    immediate: int = 0  # what that immediate holds
    last: int = 0  # the largest stub page size that it reaches; 0 where the stub page does not move the field


@dataclass(frozen=True)
class Layout:
    """One template at one stub page size. `problem`: why it could not be taken apart, or ""."""

    port: str
    variant: str
    stub_page: int
    template: str
    pitch: int
    slots: int
    data: int  # distance of the data page
    record: int  # distance of slot 0's record
    record_size: int
    code: tuple[Code, ...] = ()
    places: tuple[Place, ...] = ()
    arrows: tuple[Arrow, ...] = ()
    problem: str = ""


def _arrows(template: Template, examined: Examined, stub_page: int) -> Iterable[Arrow]:
    from ..decode import Address

    found: dict[tuple[int, int], Arrow] = {}
    for trace in examined.traces:
        for access in trace.accesses:
            if isinstance(access.target, Address):
                found[access.at, access.target.distance] = _arrow(template, access, access.target, stub_page)
    return (found[key] for key in sorted(found))


def _arrow(template: Template, access: Access, target: Address, stub_page: int) -> Arrow:
    from ..oracles.limits import LimitError, limit_of

    named = next((f for f in template.fields if template.field_distance(f, stub_page) == target.distance), None)
    aim = named or Field("", 0, access.width, "idle")
    try:
        limit = limit_of(template, aim, target.immediates, target.distance, stub_page)
    except LimitError:  # told by PO-004
        limit = None
    return Arrow(
        at=access.at,
        distance=target.distance,
        width=access.width,
        direction=access.direction,
        field=aim.name,
        reach=(limit.reach.lowest, limit.reach.highest) if limit else None,
        immediate=limit.value if limit else 0,
        last=limit.last if limit and named and template.data_distance is None else 0,
    )


def of_template(chosen: TemplateSet, template: Template, stub_page: int, obj: Path, objdump: str) -> Layout:
    """What the object says of one template, and the manifest of its record."""
    from ..decode import examine
    from ..disassembly import DisassemblyError

    read = {name for path in template.paths for name in path.reads}
    places = tuple(
        Place(f.name, template.field_distance(f, stub_page), f.width, f.name in read) for f in template.fields
    )
    data = template.distance(stub_page)
    given: dict[str, Any] = {
        "port": chosen.port.name,
        "variant": chosen.variant,
        "stub_page": stub_page,
        "template": template.name,
        "pitch": template.pitch,
        "slots": template.slots(stub_page),
        "data": data,
        "record": data + template.first_record(stub_page),
        "record_size": template.record_size,
        "places": places,
    }
    try:
        examined = examine(chosen, template, obj, objdump)
    except DisassemblyError as error:
        return Layout(**given, problem=str(error))
    code = tuple(Code(i.offset, i.text) for i in examined.instructions)
    return Layout(**given, code=code, arrows=tuple(_arrows(template, examined, stub_page)))


def of_units(units: Iterable[tuple[TemplateSet, int, Path]], objdump: str) -> list[Layout]:
    """Of every template of these sets; each with its stub page size and its object. An object that is not there has none."""
    return [
        of_template(chosen, template, stub_page, obj, objdump)
        for chosen, stub_page, obj in units
        if obj.exists()
        for template in chosen.templates
    ]


def write(path: Path, layouts: Iterable[Layout]) -> None:
    """One layout a line."""
    lines = ",\n".join(json.dumps(asdict(one), ensure_ascii=False, separators=(",", ":")) for one in layouts)
    path.write_text(f'{{"format": {FORMAT}, "layouts": [\n{lines}\n]}}\n')


@dataclass
class Kept:
    """What lies beside stored results, or why nothing does."""

    layouts: list[Layout] = field(default_factory=list)
    missing: str = ""


def read(path: Path) -> Kept:
    """Raises ManifestError where the file is there and is not one of ours."""
    if not path.exists():
        return Kept(missing=f"no {FILE} beside the results: they are of a run that built no templates, or an older one")
    try:
        data = json.loads(path.read_text())
        if data["format"] != FORMAT:
            raise ManifestError(f"{path}: format {data['format']!r}, expected {FORMAT}; use the suite that wrote it")
        return Kept([_from_dict(entry) for entry in data["layouts"]])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ManifestError(f"{path}: cannot be read: {error!r}; write it anew with `execmem-cts run`") from error


def _from_dict(entry: dict[str, Any]) -> Layout:
    arrows = [replace(Arrow(**a), reach=tuple(a["reach"]) if a["reach"] else None) for a in entry["arrows"]]
    code, places = [Code(**c) for c in entry["code"]], [Place(**p) for p in entry["places"]]
    made: dict[str, Any] = {**entry, "code": tuple(code), "places": tuple(places), "arrows": tuple(arrows)}
    return Layout(**made)
