"""A template taken apart: disassembled, followed from its entries, and held against the paths of its manifest.

`interpret` says how instructions are read; here are the questions that the build and the oracles ask.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .disassembly import DisassemblyError, Instruction, disassemble, symbol_offsets
from .interpret import WORD, Access, Address, Constant, Immediate, Loaded, Trace, Value, bare, follow, match_rule
from .model import PathSpec, Port, Template, TemplateSet

__all__ = [
    "WORD",
    "Access",
    "Address",
    "Constant",
    "Examined",
    "FieldAccess",
    "Immediate",
    "Loaded",
    "Trace",
    "Value",
    "data_accesses",
    "entry_symbols",
    "examine",
    "lands_on",
    "match_path",
    "match_rule",
    "traces",
]


@dataclass(frozen=True)
class FieldAccess:
    """One entry of a path's accesses in manifest.c. `length` is 0 where the decode could not tell."""

    at: int
    length: int
    field: int  # index into the template's fields
    width: int
    direction: str
    destination: int  # index into the port's general registers; -1 the program counter, -2 unknown


def traces(
    port: Port,
    template: Template,
    instructions: Sequence[Instruction],
    entries: Mapping[str, int],
    placement: int = 0,
) -> list[Trace]:
    """Every way through the template. The rules alone say what instructions do: see interpret.follow."""
    del template
    return follow(port, instructions, entries, placement)


def entry_symbols(template: Template) -> dict[str, str]:
    """Entry names of the template's paths, and their symbols."""
    return {path.entry: template.begin if path.entry == "begin" else path.entry for path in template.paths}


@dataclass(frozen=True)
class Examined:
    """A template of an object, taken apart. Offsets are bytes from the slot's start."""

    instructions: list[Instruction]
    entries: dict[str, int]
    traces: list[Trace]  # of slot 0


_examined: dict[str, Examined] = {}


def examine(template_set: TemplateSet, template: Template, obj: Path, objdump: str) -> Examined:
    """Disassembles a template and follows it; each state of an object once.

    DisassemblyError where the object or a symbol does not allow it.
    """
    try:
        state = obj.stat()
    except OSError as error:
        raise DisassemblyError(f"{obj}: {error.strerror}") from error
    key = repr((obj, state.st_mtime_ns, state.st_size, template_set.port, template_set.triple, template, objdump))
    if key not in _examined:
        _examined[key] = _examine(template_set, template, obj, objdump)
    return _examined[key]


def _examine(template_set: TemplateSet, template: Template, obj: Path, objdump: str) -> Examined:
    port = template_set.port
    instructions = disassemble(port, obj, template.begin, template.end, objdump, template_set.triple)
    symbols = entry_symbols(template)
    offsets = symbol_offsets(obj, template.begin, symbols.values())
    entries = {entry: offsets[symbol] for entry, symbol in symbols.items()}
    return Examined(instructions, entries, traces(port, template, instructions, entries))


def lands_on(trace: Trace, template: Template, path: PathSpec, stub_page: int, slot: int = 0) -> bool:
    """Does the trace start where the path does and leave through the field where the path ends?"""
    item = template.field_named(path.lands)
    here = template.field_distance(item, stub_page, slot)
    return trace.entry == path.entry and not trace.problem and trace.lands == Loaded(here, item.width)


def data_accesses(trace: Trace) -> list[Access]:
    """The accesses at a distance from the slot, as against those through a pointer."""
    return [access for access in trace.accesses if isinstance(access.target, Address)]


def match_path(
    port: Port, template: Template, path: PathSpec, found: Sequence[Trace], stub_page: int
) -> list[FieldAccess]:
    """The path's declared reads, located in the trace that fits best. What is not found keeps length 0."""
    best: list[FieldAccess] = []
    best_score = (False, -1)
    candidates = [trace for trace in found if trace.entry == path.entry]
    for trace in candidates or [Trace(path.entry, (), (), (), None)]:
        accesses = _locate(port, template, path, trace, stub_page)
        score = (lands_on(trace, template, path, stub_page), sum(1 for a in accesses if a.length))
        if score > best_score:
            best, best_score = accesses, score
    return best


def _locate(port: Port, template: Template, path: PathSpec, trace: Trace, stub_page: int) -> list[FieldAccess]:
    general = {bare(name): index for index, name in enumerate(port.general)}
    left = data_accesses(trace)
    located = []
    for name in path.reads:
        item = template.field_named(name)
        index = template.fields.index(item)
        expected = Address(template.field_distance(item, stub_page))
        hit = next((a for a in left if a.target == expected and a.width == item.width), None)
        if hit is None:
            located.append(FieldAccess(0, 0, index, item.width, "load", -2))
            continue
        left = left[left.index(hit) + 1 :]
        destination = -1 if hit.destination == "pc" else general.get(hit.destination or "", -2)
        located.append(FieldAccess(hit.at, hit.length, index, hit.width, hit.direction, destination))
    return located
