"""What LLVM's disassembly says of the templates: accesses (PO-003), sizes (PO-005), barriers (PO-024), pads (PO-040)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from .. import decode
from ..decode import Access, Address, Examined, Loaded, Trace
from ..disassembly import DisassemblyError, listing
from ..model import Configuration, PathSpec, Result, Runner, Template, TemplateSet, Verdict
from . import Context, HostCheck, result

Finding = dict[str, str]  # diagnostics of one failure; "message" is its one line


def _judge(
    check_id: str, requirement: str, judge: Callable[[Configuration, Template, Examined], Finding | str | None]
) -> Callable[[Configuration, Context], list[Result]]:
    """One result a template. The judge gives nothing (right), a finding (wrong) or why there is nothing to judge."""

    def run(configuration: Configuration, context: Context) -> list[Result]:
        results = []
        chosen = configuration.template_set
        for template in chosen.templates:
            verdict, message, finding = Verdict.PASS, "", Finding()
            try:
                examined = decode.examine(chosen, template, context.templates_object, context.objdump)
                outcome = judge(configuration, template, examined)
                if isinstance(outcome, str):
                    verdict, message = Verdict.NA, outcome
                elif outcome is not None:
                    finding = {"template": template.name, **outcome, "disassembly": listing(examined.instructions)}
            except DisassemblyError as error:
                finding = {"template": template.name, "message": str(error)}
            if finding:
                verdict, message = Verdict.FAIL, finding.pop("message")
            results.append(result(check_id, requirement, configuration, template.name, verdict, message, finding))
        return results

    return run


# ---- PO-003 ----


def describe_target(value: decode.Value, template: Template, stub_page: int, slot: int = 0) -> str:
    """A field's name where the target is one, else the distance."""
    if isinstance(value, Address):
        for item in template.fields:
            if template.field_distance(item, stub_page, slot) == value.distance:
                return item.name
        return f"slot{value.distance:+#x}"
    if isinstance(value, Loaded):
        name = describe_target(Address(value.distance), template, stub_page, slot)
        return f"[{name}]{value.displacement:+#x}"
    if isinstance(value, decode.Constant):
        return f"the absolute address {value.value:#x}"
    return "an address that the rules cannot tell"


def _expected_reads(template: Template, path: PathSpec, stub_page: int, slot: int) -> list[tuple[str, int, int]]:
    fields = [template.field_named(name) for name in path.reads]
    return [("load", f.width, template.field_distance(f, stub_page, slot)) for f in fields]


Followed = tuple[str, int, Loaded]  # direction, width, pointer


def _merged(accesses: Iterable[Followed]) -> list[Followed]:
    """A load and the store to the same cell that follows it are one update."""
    merged: list[Followed] = []
    for direction, width, pointer in accesses:
        if direction == "store" and merged and merged[-1] == ("load", width, pointer):
            merged[-1] = ("update", width, pointer)
        else:
            merged.append((direction, width, pointer))
    return merged


def _through(trace: Trace) -> list[Followed]:
    return _merged((a.direction, a.width, a.target) for a in trace.accesses if isinstance(a.target, Loaded))


def _expected_through(template: Template, path: PathSpec, stub_page: int, slot: int) -> list[Followed]:
    expected = []
    for through in path.through:
        item = template.field_named(through.field)
        pointer = Loaded(template.field_distance(item, stub_page, slot), item.width, through.offset)
        expected.append((through.direction, through.width, pointer))
    return _merged(expected)


def _wild(trace: Trace) -> Access | None:
    """The first access whose place the rules cannot tell."""
    return next((a for a in trace.accesses if not isinstance(a.target, (Address, Loaded))), None)


def compare_path(template: Template, path: PathSpec, trace: Trace, stub_page: int, slot: int = 0) -> Finding | None:
    """Holds one trace against the path that it should be. None where they agree."""
    wild = _wild(trace)
    if wild is not None:
        what = describe_target(wild.target, template, stub_page, slot)
        return {
            "message": f"path {path.name}: {wild.text!r} at {wild.at:#x} reaches {what}",
            "path": path.name,
            "expected": "only the record, or what a declared pointer names",
            "actual": what,
        }
    reads = _expected_reads(template, path, stub_page, slot)
    found = [
        (a.direction, a.width, a.target.distance) for a in decode.data_accesses(trace) if isinstance(a.target, Address)
    ]
    if reads != found:
        return _difference("reads", template, path, stub_page, slot, reads, found, trace)
    through, followed = _expected_through(template, path, stub_page, slot), _through(trace)
    if through != followed:
        return {
            "message": f"path {path.name} follows other pointers than declared",
            "path": path.name,
            "expected": _pointers(through, template, stub_page, slot),
            "actual": _pointers(followed, template, stub_page, slot),
        }
    return None


def _pointers(accesses: list[Followed], template: Template, stub_page: int, slot: int) -> str:
    shown = [f"{d} of {w} bytes at {describe_target(t, template, stub_page, slot)}" for d, w, t in accesses]
    return ", ".join(shown) or "nothing"


def _difference(
    what: str,
    template: Template,
    path: PathSpec,
    stub_page: int,
    slot: int,
    expected: list[tuple[str, int, int]],
    actual: list[tuple[str, int, int]],
    trace: Trace,
) -> Finding:
    def shown(accesses: list[tuple[str, int, int]]) -> str:
        named = ((d, w, x, describe_target(Address(x), template, stub_page, slot)) for d, w, x in accesses)
        return ", ".join(f"{d} of {w} bytes at slot{x:+#x} ({name})" for d, w, x, name in named) or "nothing"

    at = ", ".join(f"{access.at:#x}" for access in decode.data_accesses(trace))
    place = f" of slot {slot}" if slot else ""
    return {
        "message": f"path {path.name}{place} makes other {what} than declared",
        "path": path.name,
        "expected": shown(expected),
        "actual": f"{shown(actual)} by the instructions at {at or 'none'}",
    }


def slots_to_judge(template_set: TemplateSet, template: Template, stub_page: int) -> list[int]:
    """Slot 0 stands for all where nothing depends on the slot's place; else the ones that differ."""
    slots = range(template.slots(stub_page))
    if not slots:
        return [0]
    if template.record_stride != template.pitch or any(f.in_page for f in template.fields):
        return list(slots)
    modulus = math.lcm(*(rule.align for rule in template_set.port.rules))
    return sorted({(slot * template.pitch) % modulus: slot for slot in reversed(slots)}.values())


def judge_access(configuration: Configuration, template: Template, examined: Examined) -> Finding | None:
    """PO-003 for one template, in every slot whose place makes a difference."""
    for slot in slots_to_judge(configuration.template_set, template, configuration.stub_page):
        port = configuration.template_set.port
        found = examined.traces
        if slot:
            found = decode.traces(
                port, template, examined.instructions, examined.entries, placement=slot * template.pitch
            )
        finding = judge_traces(template, found, configuration.stub_page, slot)
        if finding is not None:
            return finding
    return judge_patches(configuration.template_set, template, examined)


def judge_traces(template: Template, found: Sequence[Trace], stub_page: int, slot: int = 0) -> Finding | None:
    """Every path is one trace, and every trace is a path's."""
    for trace in found:
        if trace.problem:
            return {"message": f"from {trace.entry}: {trace.problem}", "path": trace.entry}
    claimed: set[int] = set()
    for path in template.paths:
        fitting = [i for i, t in enumerate(found) if decode.lands_on(t, template, path, stub_page, slot)]
        if len(fitting) != 1:
            lands = [describe_target(_landing(t), template, stub_page, slot) for t in found if t.entry == path.entry]
            ways = "no way" if not fitting else f"{len(fitting)} ways"
            return {
                "message": f"path {path.name}: {ways} from {path.entry} to where {path.lands} points",
                "path": path.name,
                "expected": f"one jump through {path.lands}, {_at(template, path, stub_page, slot)}",
                "actual": f"jumps through {', '.join(lands) or 'nothing'}",
            }
        claimed.add(fitting[0])
        finding = compare_path(template, path, found[fitting[0]], stub_page, slot)
        if finding is not None:
            return finding
    for index, trace in enumerate(found):
        if index not in claimed:
            where = describe_target(_landing(trace), template, stub_page, slot)
            return {
                "message": f"a way from {trace.entry} jumps through {where} and is no declared path",
                "path": trace.entry,
                "expected": ", ".join(f"{p.name} through {p.lands}" for p in template.paths if p.entry == trace.entry),
                "actual": where,
            }
    return None


def _landing(trace: Trace) -> decode.Value:
    """The place from which the target was loaded."""
    if isinstance(trace.lands, Loaded) and not trace.lands.displacement:
        return Address(trace.lands.distance)
    return trace.lands


def _at(template: Template, path: PathSpec, stub_page: int, slot: int) -> str:
    item = template.field_named(path.lands)
    return f"{item.width} bytes at slot{template.field_distance(item, stub_page, slot):+#x}"


def judge_patches(template_set: TemplateSet, template: Template, examined: Examined) -> Finding | None:
    """Every absolute word is patched with the slot's address, and nothing else is."""
    port = template_set.port
    order: Literal["little", "big"] = "little" if port.endianness == "little" else "big"
    left = list(template.patches)
    for instruction in examined.instructions:
        decoded = decode.match_rule(port, instruction)
        if decoded is None or decoded.rule.base != "slot":
            continue
        inside = [p for p in left if instruction.offset <= p.offset < instruction.offset + instruction.length]
        word = decoded.immediate
        hits = [
            p
            for p in inside
            if int.from_bytes(instruction.code[p.offset - instruction.offset :][: p.width], order)
            == word % (1 << (8 * p.width))
        ]
        if len(hits) != 1:
            return {
                "message": f"{instruction.text!r} at {instruction.offset:#x} is absolute and no declared patch is its word",
                "expected": f"a patch on the word {word:#x}",
                "actual": ", ".join(f"{p.width} bytes at {p.offset:#x}" for p in inside) or "none",
            }
        left.remove(hits[0])
    if left:
        return {
            "message": f"the patch at {left[0].offset:#x} is in no absolute instruction",
            "expected": "one absolute word for each patch",
            "actual": f"{left[0].width} bytes at {left[0].offset:#x}",
        }
    return None


# ---- PO-005 ----


def judge_size(configuration: Configuration, template: Template, examined: Examined) -> Finding | None:
    """Code fits its slot, a record its stride, entries start instructions, slots keep them aligned."""
    size = max(i.offset + i.length for i in examined.instructions)
    if size > template.pitch:
        return _size("the code is longer than a slot", f"at most {template.pitch} bytes", f"{size} bytes")
    if template.record_size > template.record_stride:
        expected = f"at most {template.record_stride} bytes"
        return _size("a record is longer than its stride", expected, f"{template.record_size} bytes")
    for entry, offset in examined.entries.items():
        within = any(i.offset < offset < i.offset + i.length for i in examined.instructions)
        if within or not any(i.offset == offset for i in examined.instructions):
            return _size(f"entry {entry} starts no instruction", "an instruction's offset", f"{offset:#x}")
    unit = math.gcd(*(i.length for i in examined.instructions))
    if template.pitch % unit:
        expected = f"a multiple of {unit} bytes, the instructions' unit"
        return _size("slots do not keep instructions aligned", expected, f"{template.pitch} bytes")
    if template.slots(configuration.stub_page) < 1:
        return _size("a page holds no slot", f"pitch within {configuration.stub_page}", f"{template.pitch} bytes")
    return None


def _size(message: str, expected: str, actual: str) -> Finding:
    return {"message": message, "expected": expected, "actual": actual}


# ---- PO-024 ----


def judge_barrier(configuration: Configuration, template: Template, examined: Examined) -> Finding | str | None:
    """A barrier stands before the first read of every path that is entered through a patched field."""
    port = configuration.template_set.port
    if not port.weakly_ordered:
        return f"{port.name} orders loads itself"
    tails = {field.tail for field in template.fields}
    ordered = [path for path in template.paths if path.ordered or path.name in tails]
    if not ordered:
        return "no path is entered through a patched field"
    for path in ordered:
        fitting = [t for t in examined.traces if decode.lands_on(t, template, path, configuration.stub_page)]
        # Where no trace lands, PO-003 says so; the barrier is then judged on every way from the entry.
        for trace in fitting or [t for t in examined.traces if t.entry == path.entry]:
            if not any(before == 0 for before in trace.barriers):
                first = trace.accesses[0].at if trace.accesses else 0
                behind = f"first after {trace.barriers[0]} accesses" if trace.barriers else "none"
                return {
                    "message": f"path {path.name} reads its record with no barrier before",
                    "path": path.name,
                    "expected": f"a barrier before the access at {first:#x}",
                    "actual": behind,
                }
        if not any(t.entry == path.entry for t in examined.traces):
            return {"message": f"path {path.name} has no way to judge", "path": path.name}
    return None


# ---- PO-040 ----


def judge_pads(configuration: Configuration, template: Template, examined: Examined) -> Finding | str | None:
    """The first instruction at every entry is a landing pad."""
    if not configuration.template_set.landing_pads:
        return f"variant {configuration.template_set.variant} claims no landing pads"
    starts = {i.offset: i for i in examined.instructions}
    for entry, offset in examined.entries.items():
        instruction = starts.get(offset)
        decoded = decode.match_rule(configuration.template_set.port, instruction) if instruction else None
        if decoded is None or decoded.rule.form != "pad":
            return {
                "message": f"entry {entry} has no landing pad",
                "path": ", ".join(p.name for p in template.paths if p.entry == entry),
                "expected": f"a landing pad at {offset:#x}",
                "actual": instruction.text if instruction else "no instruction",
            }
    return None


def _check(
    name: str, requirement: str, text: str, judge: Callable[[Configuration, Template, Examined], Finding | str | None]
) -> HostCheck:
    return HostCheck(name, requirement, text, Runner.HOST, _judge(name, requirement, judge))


CHECKS = (
    _check(
        "po_decode_access",
        "PO-003",
        "The disassembly of the template, evaluated, makes the declared accesses in order: distance, width, direction.",
        judge_access,
    ),
    _check("po_slot_size", "PO-005", "The code fits its slot and the record its stride.", judge_size),
    _check(
        "po_barrier",
        "PO-024",
        "On a weakly ordered port a path entered through a patched field has a barrier before its first read.",
        judge_barrier,
    ),
    _check("po_pads", "PO-040", "Where pads are claimed, one stands at every entry.", judge_pads),
)
