"""The templates of a manifest: a port's own text over what arch/templates.toml says of their kinds.

A template whose `path` is an array is written in full. Any other takes what it leaves out from its kind; its `path` is a
table, path name to what is its own there, and "*" stands for every path.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from .model import Field, Patch, PathSpec, Port, Template, Through
from .source import TEMPLATES, TEMPLATES_SCHEMA, Source, Where

MAXIMUM_PUSHED = 4  # words; a capture holds twice as many
EVERY = "*"  # in a template's table of paths


class Kinds:
    """arch/templates.toml, read when the first template needs it."""

    def __init__(self, root: Path, cache: Path | None = None) -> None:
        self.root, self.cache = root, cache

    @functools.cached_property
    def top(self) -> Where:
        source = Source(self.root / TEMPLATES, self.root)
        source.validate(self.root, TEMPLATES_SCHEMA, self.cache)
        return Where(source, ())

    def complete(self, entry: dict[str, Any], port: Port, where: Where) -> tuple[dict[str, Any], list[Where]]:
        """A template written in full, and the places of its paths. Raises ManifestError."""
        if isinstance(entry.get("path"), list):
            return entry, [where / "path" / index for index in range(len(entry["path"]))]
        described = {kind["kind"]: (index, kind) for index, kind in enumerate(self.top.source.data["template"])}
        if entry["kind"] not in described:
            raise (where / "kind").error(
                f"{TEMPLATES} describes no kind {entry['kind']!r}",
                f"name one of {', '.join(described)}, or write the template in full, with [[template.path]]",
            )
        index, kind = described[entry["kind"]]
        paths, places = _paths(kind["path"], entry.get("path", {}), self.top / "template" / index, where)
        word = port.pointer_bytes
        shared = {key: value for key, value in kind.items() if key != "record_words"}
        shared["name"] = kind["kind"]
        shared["record_size"] = kind["record_words"] * word
        shared["fields"] = [
            {
                **{k: v for k, v in named.items() if k != "word"},
                "offset": named["word"] * word,
                "width": named.get("width", word),
            }
            for named in kind["fields"]
        ]
        return {**shared, **entry, "path": paths}, places


def _paths(
    shared: list[dict[str, Any]], own: dict[str, dict[str, Any]], kind: Where, where: Where
) -> tuple[list[dict[str, Any]], list[Where]]:
    """The paths of a kind with what is a port's own, and for each where its keys are written."""
    names = [path["name"] for path in shared]
    for name in own:
        if name not in (*names, EVERY):
            raise (where / "path" / name).error(f"no path {name!r}", f"name one of {', '.join(names)}, or {EVERY!r}")
    paths, places = [], []
    for index, path in enumerate(shared):
        merged, moved = dict(path), {key: kind / "path" / index / key for key in path}
        for name in (EVERY, path["name"]):
            for key, value in own.get(name, {}).items():
                merged[key], moved[key] = value, where / "path" / name / key
        paths.append(merged)
        places.append(Where(where.source, (*where.path, "path", path["name"]), moved))
    return paths, places


def _by_variant(entry: dict[str, Any], key: str, variant: str, default: Any, where: Where) -> Any:
    """A value, or the variant's part of a table by variant."""
    value = entry.get(key, default)
    if isinstance(value, dict):
        if variant not in value:
            raise (where / key).error(f"no value for variant {variant!r}", f"add `{variant} = ...` to the table")
        return value[variant]
    return value


def _fields(entries: list[dict[str, Any]], template: dict[str, Any], size: int, where: Where) -> tuple[Field, ...]:
    paths = [path["name"] for path in template["path"]]
    fields: dict[str, Field] = {}
    for index, entry in enumerate(entries):
        at, named = where / index, Field(**entry)
        if named.name in fields:
            raise (at / "name").error(f"{named.name!r} is there twice", "rename one")
        if named.role == "tail" and named.tail not in paths:
            raise (at / "tail").error(f"no path {named.tail!r}", f"name one of {', '.join(paths)}")
        if named.role != "tail" and named.tail:
            raise (at / "tail").error(f"has no meaning for role {named.role!r}", 'remove it, or set role = "tail"')
        if not named.in_page and not 0 <= named.offset <= size - named.width:
            raise (at / "offset").error(
                f"the field lies at {named.offset} to {named.offset + named.width}, outside the record of {size} bytes",
                "mend offset or record_size",
            )
        fields[named.name] = named
    return tuple(fields.values())


def _pushed(words: dict[str, str], bytes_pushed: int, port: Port, where: Where) -> dict[int, str]:
    """The `"sp+N" = FIELD` of a path's carries: words that it pushed."""
    found = {}
    for name, named in words.items():
        offset = int(name.removeprefix("sp+"), 0)
        if offset % port.pointer_bytes or offset + port.pointer_bytes > bytes_pushed:
            raise (where / name).error(
                f"is no word of the {bytes_pushed} bytes that the path pushes", "mend it, or `pushed`"
            )
        found[offset] = named
    return found


def _place(entry: str | int, begin: str) -> str:
    """An entry: "begin", a symbol, or bytes from the template's begin."""
    return f"{begin}+{entry}" if isinstance(entry, int) else entry


def _path(
    entry: dict[str, Any], begin: str, fields: dict[str, Field], port: Port, variant: str, where: Where
) -> PathSpec:
    def known(name: str, at: Where) -> str:
        if name not in fields:
            raise at.error(f"no field {name!r}", f"name one of {', '.join(fields)}")
        return name

    def register(name: str, at: Where) -> str:
        resolved = port.aliases.get(name, name)
        if resolved not in port.general:
            raise at.error(f"no register {name!r}", "name one of the port's registers.general")
        return resolved

    raw = entry.get("carries", {})
    at = where / "carries"
    if raw and all(isinstance(value, dict) for value in raw.values()):
        raw, at = _by_variant(entry, "carries", variant, {}, where), at / variant
    carried = {r: known(str(f), at / r) for r, f in raw.items()}
    on_stack = {r: f for r, f in carried.items() if r.startswith("sp+")}
    pushed = int(_by_variant(entry, "pushed", variant, 0, where))
    if pushed % port.pointer_bytes or not 0 <= pushed <= MAXIMUM_PUSHED * port.pointer_bytes:
        raise (where / "pushed").error(
            f"expected up to {MAXIMUM_PUSHED} words of {port.pointer_bytes} bytes, found {pushed}", "bytes are counted"
        )
    clobbers = _by_variant(entry, "clobbers", variant, [], where)
    for index, through in enumerate(entry.get("through", [])):
        at = where / "through" / index / "field"
        if known(through["field"], at) not in entry["reads"]:
            raise at.error(f"{through['field']!r} is not in reads", "the pointer must be read before it is followed")
    lands = known(entry["lands"], where / "lands")
    if fields[lands].role not in ("target", "tail"):
        raise (where / "lands").error(f"{lands!r} is a {fields[lands].role}", "name a field of role target or tail")
    if entry.get("count") and not any(f.role == "cell" for f in fields.values()):
        raise (where / "count").error("the template has no field of role cell", "remove count")
    return PathSpec(
        name=entry["name"],
        entry=_place(_by_variant(entry, "entry", variant, "begin", where), begin),
        reads=tuple(known(name, where / "reads" / i) for i, name in enumerate(entry["reads"])),
        lands=lands,
        count=entry.get("count", 0),
        through=tuple(Through(**through) for through in entry.get("through", [])),
        carries={register(r, at / r): f for r, f in carried.items() if r not in on_stack},
        clobbers=tuple(register(name, where / "clobbers" / i) for i, name in enumerate(clobbers)),
        ordered=entry.get("ordered", False),
        pushed=pushed,
        pushed_words=_pushed(on_stack, pushed, port, at),
    )


def _end(entry: dict[str, Any], begin: str, code_bytes: int, where: Where) -> str:
    """Where the code of a slot ends: a symbol, or a size."""
    if ("end" in entry) == bool(code_bytes):
        raise (where / ("code_size" if "end" in entry else "end")).error(
            "expected one of end and code_size", "name the symbol at the end of the code, or give the code's bytes"
        )
    return str(entry["end"]) if "end" in entry else f"{begin}+{code_bytes}"


def _template(entry: dict[str, Any], kinds: Kinds, port: Port, variant: str, where: Where) -> Template:
    entry, places = kinds.complete(entry, port, where)

    def integer(key: str, default: int) -> int:
        return int(_by_variant(entry, key, variant, default, where))

    pitch, size = integer("pitch", 0), integer("record_size", 0)
    for key, value in (("pitch", pitch), ("record_size", size)):
        if value <= 0:
            raise (where / key).error(f"expected more than 0 bytes, found {value}", "a slot or record has a size")
    stride = integer("record_stride", pitch)
    fields = _fields(entry["fields"], entry, size, where / "fields")
    by_name = {f.name: f for f in fields}
    begin = entry["begin"]
    paths = tuple(_path(p, begin, by_name, port, variant, at) for p, at in zip(entry["path"], places, strict=True))
    if len({p.name for p in paths}) != len(paths):
        raise (where / "path").error("two paths have one name", "rename one")
    patches = tuple(Patch(**patch) for patch in _by_variant(entry, "patches", variant, [], where))
    for index, patch in enumerate(patches):
        if patch.offset + patch.width > pitch:
            raise (where / "patches" / index).error(f"lies outside the slot of {pitch} bytes", "mend offset or pitch")
    distance = entry.get("data_distance", "stub_page")
    if distance == 0:
        raise (where / "data_distance").error("expected a distance that is not 0", "code and data never share a page")
    return Template(
        name=entry["name"],
        kind=entry.get("kind", "other"),
        begin=begin,
        end=_end(entry, begin, integer("code_size", 0), where),
        pitch=pitch,
        record_size=size,
        record_stride=stride,
        record_offset=integer("record_offset", 0),
        data_distance=distance if isinstance(distance, int) else None,
        data_pages=-1 if distance == "-stub_page" else 1,
        page_tail=integer("page_tail", 0),
        mode_bit=integer("mode_bit", 0),
        fields=fields,
        paths=paths,
        patches=patches,
    )


def load(entries: list[dict[str, Any]], kinds: Kinds, port: Port, variant: str, where: Where) -> tuple[Template, ...]:
    """The templates of one variant. Raises ManifestError."""
    templates = tuple(_template(entry, kinds, port, variant, where / i) for i, entry in enumerate(entries))
    for key in ("name", "begin", "end"):
        seen: set[str] = set()
        for index, template in enumerate(templates):
            value = getattr(template, key)
            if value in seen:
                raise (where / index / key).error(f"{value!r} is there twice", "every template has its own")
            seen.add(value)
    return templates
