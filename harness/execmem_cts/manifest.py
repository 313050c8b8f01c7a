"""Manifests: arch/<port>/port.toml and a subject's subject.toml, loaded into the dataclasses of `model`.

Ports are discovered, never listed. What the JSON schema cannot say is checked here: names that must exist, sizes that
must be powers of two, sets that must not overlap. Errors are `source.ManifestError`, one line each.
"""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any, Sequence

from . import objects, port_path, subjects, templates
from .model import Library, Port, Reach, Rule, Subject, Template, TemplateSet, Unshown
from .source import PORT_SCHEMA, SUBJECT_SCHEMA, ManifestError, Source, Where

__all__ = ["ManifestError", "discover_ports", "load_port", "load_subject", "subject_path"]


def discover_ports(root: Path, cache: Path | None = None) -> dict[str, Port]:
    """Every port of the tree and of the folders that `port_path` names, by name, in order. Raises ManifestError."""
    paths = port_path.manifests(root)
    kinds = templates.Kinds(root, cache)
    ports = [load_port(path, root, cache, kinds) for path in paths]
    return {port.name: port for port in ports}


def load_port(path: Path, root: Path, cache: Path | None = None, kinds: templates.Kinds | None = None) -> Port:
    """One port. Raises ManifestError."""
    kinds = kinds or templates.Kinds(root, cache)
    source = Source(path, root)
    source.validate(root, PORT_SCHEMA, cache)
    data, top = source.data, Where(source, ())
    if data["name"] != path.parent.name:
        raise (top / "name").error(
            f"expected {path.parent.name!r}, the folder's name, found {data['name']!r}", "rename one of them"
        )
    target, registers = data["target"], data["registers"]
    general, vector = tuple(registers["general"]), tuple(registers["vector"])
    for name in ("argument", "preserved", "reserved"):
        for index, register in enumerate(registers.get(name, ())):
            if register not in general + vector:
                raise (top / "registers" / name / index).error(
                    f"{register!r} is in neither registers.general nor registers.vector",
                    "add it there or mend the name",
                )
    for alias, register in registers.get("aliases", {}).items():
        if register not in general + vector:
            raise (top / "registers" / "aliases" / alias).error(f"{register!r} is no register", "name one of general")
    _powers_of_two(data["pages"]["stub"], top / "pages" / "stub")
    _powers_of_two(data["pages"]["os"], top / "pages" / "os")
    port = Port(
        name=data["name"],
        directory=path.parent,
        triple=target["triple"],
        pointer_bytes=target["pointer_bytes"],
        endianness=target["endianness"],
        elf_machine=target["elf_machine"],
        compile_flags=tuple(target.get("compile_flags", ())),
        weakly_ordered=target.get("weakly_ordered", False),
        emulator_argv=tuple(data["emulator"]["argv"]),
        os_page_argv=tuple(data["emulator"].get("os_page_argv", ())),
        os_pages=tuple(data["pages"]["os"]),
        stub_pages=tuple(data["pages"]["stub"]),
        general=general,
        vector=vector,
        vector_bytes=registers["vector_bytes"],
        argument=tuple(registers["argument"]),
        preserved=tuple(registers["preserved"]),
        reserved=tuple(registers.get("reserved", ())),
        clobber_general=registers["clobber_general"],
        clobber_vector=registers["clobber_vector"],
        clobber_jump=registers["clobber_jump"],
        aliases=dict(registers.get("aliases", {})),
        objdump_argv=tuple(data["decode"].get("objdump_argv", ())),
        rules=_rules(data["decode"]["rules"], {*general, *registers.get("aliases", {})}, top / "decode" / "rules"),
        unshown=tuple(
            Unshown(u["requirement"], u["runner"], u["reason"], data["name"], u.get("os_page", 0))
            for u in data.get("unshown", ())
        ),
        syscalls={name: number for table in data.get("syscalls", {}).values() for name, number in table.items()},
        hosted=Library(data["hosted"]["triple"], tuple(data["hosted"]["packages"])) if "hosted" in data else None,
    )
    _variants(port, kinds, data, top)  # the templates are checked with the port, not with the first subject
    return port


def _powers_of_two(sizes: Sequence[int], where: Where) -> None:
    for index, size in enumerate(sizes):
        if size & (size - 1):
            raise (where / index).error(f"expected a power of two, found {size}", "a page size in bytes, such as 16384")


def _rules(entries: list[dict[str, Any]], registers: set[str], where: Where) -> tuple[Rule, ...]:
    rules = []
    registers = registers | {entry["link"] for entry in entries if "link" in entry}
    for index, entry in enumerate(entries):
        at = where / index
        try:
            compiled = re.compile(entry["pattern"])
        except re.error as error:
            raise (at / "pattern").error(f"not a regular expression: {error}", "quote it with '...'") from error
        base = entry.get("base", "")
        known = ("pc", "next", "object", "slot", "zero")
        if base and base not in known and base not in compiled.groupindex and base not in registers:
            raise (at / "base").error(
                f"expected {', '.join(known)}, a group of the pattern or a register, found {base!r}",
                "name a group (?P<base>...)",
            )
        plain = {key: value for key, value in entry.items() if key != "reach"}
        rules.append(Rule(**plain, reach=Reach(**entry["reach"]) if "reach" in entry else None))
    return tuple(rules)


@dataclasses.dataclass(frozen=True)
class _Variant:
    name: str
    defines: tuple[str, ...]
    assemble_flags: tuple[str, ...]
    landing_pads: bool
    stub_pages: tuple[int, ...]
    triple: str
    templates: tuple[Template, ...]


def _variants(
    port: Port, kinds: templates.Kinds, data: dict[str, Any], where: Where, fallback: dict[str, Any] | None = None
) -> list[_Variant]:
    """The variants with their templates; what `data` leaves out is taken from `fallback`, the port's own manifest."""
    other = Where(where.source, ("port.toml",)) if fallback is not None else where
    # Templates of another hand do not know the port's own variants.
    inherited = [{"name": "plain"}] if "template" in data else (fallback or {}).get("variant")
    entries = data.get("variant") or inherited or [{"name": "plain"}]
    described = data.get("template") or (fallback or {})["template"]
    at = where if "template" in data else other
    names = [entry["name"] for entry in entries]
    if len(set(names)) != len(names):
        raise (where / "variant").error("two variants have one name", "rename one")
    variants = []
    for index, entry in enumerate(entries):
        pages = tuple(entry.get("stub", data.get("stub_pages", port.stub_pages)))
        _powers_of_two(pages, where / "variant" / index / "stub")
        variants.append(
            _Variant(
                name=entry["name"],
                defines=tuple(entry.get("defines", ())),
                assemble_flags=tuple(entry.get("assemble_flags", ())),
                landing_pads=entry.get("landing_pads", False),
                stub_pages=pages,
                triple=entry.get("triple", ""),
                templates=templates.load(described, kinds, port, entry["name"], at / "template"),
            )
        )
    return variants


subject_path = subjects.find


def _files(patterns: Sequence[str], base: Path, checkout: Path | None, where: Where, what: str) -> tuple[Path, ...]:
    found: list[Path] = []
    for index, pattern in enumerate(patterns):
        mend = "install what brings it" if Path(pattern).is_absolute() else f"paths are relative to {base}"
        if "{checkout}" in pattern:
            if checkout is None:
                raise (where / index).error(
                    "needs the directory that {checkout} stands for", "give --checkout DIRECTORY"
                )
            pattern = pattern.replace("{checkout}", str(checkout.resolve()))
            mend = "--checkout must name the root of the checkout; --port leaves out ports that it does not have"
        path = base / pattern
        matches = sorted(path.parent.glob(path.name)) if any(c in path.name for c in "*?[") else [path]
        matches = [match for match in matches if match.exists()]
        if not matches:
            raise (where / index).error(f"no such {what}: {pattern}", mend)
        found += matches
    return tuple(found)


def _fixed(template_set: TemplateSet, stub_page: int) -> TemplateSet:
    """The part of a set that is for one stub page size, where the sources do not follow EXECMEM_STUB_PAGE."""

    def named(symbol: str) -> str:
        return symbol.replace("{stub_page}", str(stub_page))

    templates = tuple(
        dataclasses.replace(
            template,
            begin=named(template.begin),
            end=named(template.end),
            data_distance=template.distance(stub_page),
            paths=tuple(dataclasses.replace(path, entry=named(path.entry)) for path in template.paths),
        )
        for template in template_set.templates
    )
    return dataclasses.replace(template_set, stub_pages=(stub_page,), templates=templates)


def load_subject(
    path: Path,
    root: Path,
    ports: dict[str, Port],
    cache: Path | None = None,
    checkout: Path | None = None,
    only: Sequence[str] = (),
) -> Subject:
    """A subject and its templates on every port that it covers, or on those of `only`. Raises ManifestError."""
    source = Source(path, root)
    source.validate(root, SUBJECT_SCHEMA, cache)
    data, top, base = source.data, Where(source, ()), path.parent
    claims = subjects.claims(root)
    for index, claim in enumerate(data.get("claims", [])):
        if claim not in claims:
            raise (top / "claims" / index).error(f"unknown claim {claim!r}", f"known are {', '.join(claims)}")
        if claim in data["claims"][:index]:
            raise (top / "claims" / index).error(f"{claim!r} is there twice", "remove one")
    if data.get("libraries") and not data.get("hosted"):
        raise (top / "libraries").error("is there without a C library", "say `hosted = true`, or name `objects`")
    tables: dict[str, dict[str, Any]] = data.get("ports") or {name: {} for name in ports}
    sets: list[TemplateSet] = []
    prebuilt: dict[str, tuple[Path, ...]] = {}
    port_includes: dict[str, tuple[Path, ...]] = {}
    kinds = templates.Kinds(root, cache)
    shared = data.get("decode", {}).get("rules", [])
    for name, table in tables.items():
        where = top / "ports" / name if "ports" in data else top
        if name not in ports:
            raise where.error(f"no port {name!r}", f"there are {', '.join(ports)}")
        if only and name not in only:
            continue
        prebuilt[name] = _files(table.get("objects", []), base, checkout, where / "objects", "file")
        for path_of_one in prebuilt[name]:
            objects.check(path_of_one, ports[name], where / "objects")
        includes = _files(
            table.get("include_directories", []), base, checkout, where / "include_directories", "directory"
        )
        port_includes[name] = includes
        if not subjects.has_templates(data, table):
            continue
        own = table.get("decode", {}).get("rules", [])
        known = {*ports[name].general, *ports[name].aliases}
        rules = _rules(own, known, where / "decode" / "rules") + _rules(shared, known, top / "decode" / "rules")
        scratch = table.get("scratch", ())
        for index, register in enumerate(scratch):
            if register not in ports[name].preserved:
                raise (where / "scratch" / index).error(
                    f"{register!r} is no register that the port preserves", "name it in a path's clobbers alone"
                )
        preserved = tuple(register for register in ports[name].preserved if register not in scratch)
        port = dataclasses.replace(ports[name], rules=rules + ports[name].rules, preserved=preserved)
        _powers_of_two(table.get("stub_pages", []), where / "stub_pages")
        if "sources" in table:
            sources = _files(table["sources"], base, checkout, where / "sources", "file")
        else:
            sources = (port.templates,)
        native = Source(port.directory / "port.toml", root).data
        fixed = table.get("fixed_stub_pages", False)
        for variant in _variants(port, kinds, table, where, native):
            made = TemplateSet(
                port=port,
                subject=data["name"],
                variant=variant.name,
                sources=sources,
                include_directories=includes,
                defines=tuple(table.get("defines", ())) + variant.defines,
                assemble_flags=tuple(table.get("assemble_flags", ())) + variant.assemble_flags,
                stub_pages=variant.stub_pages,
                landing_pads=variant.landing_pads,
                templates=variant.templates,
                triple=variant.triple,
            )
            sets += [_fixed(made, page) for page in made.stub_pages] if fixed else [made]
    return Subject(
        name=data["name"],
        manifest=path,
        claims=tuple(data.get("claims", ())),
        sources=_files(data.get("sources", []), base, checkout, top / "sources", "file"),
        include_directories=_files(
            data.get("include_directories", []), base, checkout, top / "include_directories", "directory"
        ),
        compile_flags=tuple(data.get("compile_flags", ())),
        template_sets=tuple(sets),
        everywhere="ports" not in data,
        objects=prebuilt,
        port_includes=port_includes,
        hosted=data.get("hosted", False),
        libraries=tuple(data.get("libraries", ())),
    )
