"""PO-004: how far each field of each template reaches, and that the build refuses what does not fit.

The limit is computed here from the rule's field width and scale, the place that the instruction counts from and the
manifest's field offset; nothing of it comes from the assembly's own guard. Then three things must hold:

- the assembler gives the instruction form exactly that reach (the rule's `probe`, last and next immediate),
- the templates, assembled for the last stub page size that a field reaches, are not refused for that field, and for the
  size that every field still reaches they decode to the right distances,
- assembled for the next size, they are refused, by port, template, field, reach and distance.

Sources that print no `execmem-reach:` line of their own may leave the refusal to the assembler's words, where its message
points into the template. Such words name no field: where several of a template's fields do not fit, one message stands
for all of them.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .. import decode
from ..build import locked
from ..decode import Address, Examined, Immediate
from ..disassembly import DisassemblyError, disassemble
from ..model import Configuration, Field, Reach, Result, Rule, Runner, Template, TemplateSet, Verdict
from . import Context, HostCheck, result
from .decode import Finding
from .reassembly import Assembled, Assembler

ID, REQUIREMENT = "po_limits_field", "PO-004"
_RELATIVE = ("pc", "next", "object")  # bases to which a distance is added: their immediates need a reach


@dataclass(frozen=True)
class Limit:
    """Up to which stub page size one instruction reaches one field. Bytes."""

    template: Template
    item: Field
    at: int  # offset in the slot of the instruction whose immediate grows with the stub page
    rule: Rule
    reach: Reach
    value: int  # what the immediate holds for `size`
    size: int

    @property
    def sign(self) -> int:
        return self.template.data_pages

    def immediate(self, size: int) -> int:
        return self.value + self.sign * (size - self.size)

    @property
    def last(self) -> int:
        """The largest size that fits, of those that differ from `size` by multiples of the immediate's scale."""
        room = self.reach.highest - self.value if self.sign > 0 else self.value - self.reach.lowest
        return self.size + room // self.reach.scale * self.reach.scale

    @property
    def next(self) -> int:
        return self.last + self.reach.scale

    def describe(self, size: int) -> str:
        return (
            f"execmem-reach: port=* template={self.template.name} field={self.item.name} "
            f"reach={self.reach.lowest}..{self.reach.highest} distance={self.immediate(size)}"
        )


class LimitError(Exception):
    """A limit that cannot be computed; the message says what the manifest lacks."""


def find_limits(template: Template, examined: Examined, stub_page: int) -> list[Limit]:
    """One limit for each field and instruction that reaches it relative to the pc. Empty: nothing is relative.

    A field whose access is not found is left to PO-003, which is red then. LimitError where none is found at all, or a
    rule gives no reach.
    """
    limits: dict[tuple[str, int], Limit] = {}
    found = False
    for path in template.paths:
        for name in path.reads:
            item = template.field_named(name)
            target = template.field_distance(item, stub_page)
            hits = [
                access.target
                for trace in examined.traces
                if trace.entry == path.entry
                for access in trace.accesses
                if isinstance(access.target, Address) and access.target.distance == target
            ]
            found = found or bool(hits)
            for hit in hits:
                limit = limit_of(template, item, hit.immediates, target, stub_page)
                if limit is not None:
                    limits[name, limit.at] = limit
    if not found:
        raise LimitError("no access to any field was found, so that no reach can be told")
    return list(limits.values())


def limit_of(
    template: Template, item: Field, immediates: Iterable[Immediate], target: int, stub_page: int
) -> Limit | None:
    """The limit of one access, made of these immediates, to `target`. None: absolute. LimitError where a rule gives no reach."""
    chain = list(immediates)
    start = next((i for i in chain if i.base is not None), None)
    if start is None or start.rule.base not in _RELATIVE or any(i.rule.form == decode.WORD for i in chain):
        return None  # absolute, or a whole word of the template
    reaching = [(i, i.rule.reach) for i in chain if i.rule.reach is not None]
    if not reaching:
        raise LimitError(f"the rule that reads the access to {item.name} at {start.at:#x} gives no reach")
    # Of a pair, the wide part grows with the stub page; the other holds the offset inside of its unit.
    mover, reach = max(reaching, key=lambda pair: pair[1].highest)
    rest = sum(i.value for i in chain if i is not mover)
    assert start.base is not None
    return Limit(template, item, mover.at, mover.rule, reach, target - start.base - rest, stub_page)


# ---- The assembler's own reach ----

_proved: dict[tuple[str, Rule], str] = {}


def prove_rule(template_set: TemplateSet, rule: Rule, context: Context) -> str:
    """Why the rule's reach is not what the assembler and disassembler give this form; "" where it is."""
    key = (template_set.disassembly_triple, rule)
    if key not in _proved:
        _proved[key] = _kept_proof(template_set, rule, context)
    return _proved[key]


def _kept_proof(template_set: TemplateSet, rule: Rule, context: Context) -> str:
    """The proof, kept in the build folder under a name made of the rule and of the tools that were asked."""
    tools = [(path, Path(path).stat().st_mtime_ns) for path in (context.llvm_mc, context.objdump)]
    asked = repr((template_set.disassembly_triple, template_set.port.rules, rule, tools))
    kept = context.directory.parent / "proofs" / hashlib.sha256(asked.encode()).hexdigest()[:16]
    if kept.is_file():
        return kept.read_text()
    said = _prove_rule(template_set, rule, context)
    if said:
        return said  # a failure is asked for again: what disturbed it may be gone
    kept.parent.mkdir(parents=True, exist_ok=True)
    half = kept.with_suffix(f".{os.getpid()}")
    half.write_text(said)
    half.replace(kept)
    return said


def _prove_rule(template_set: TemplateSet, rule: Rule, context: Context) -> str:
    reach = rule.reach
    assert reach is not None
    if not rule.probe:
        return f"the decode rule {rule.pattern!r} has a reach and no probe to prove it"
    ends = [(reach.highest, True), (reach.highest + reach.scale, False)]
    if reach.signed:
        ends += [(reach.lowest, True), (reach.lowest - reach.scale, False)]
    for value, fits in ends:
        written = rule.probe.replace("{imm}", str(value // rule.scale))
        held = _round_trip(template_set, rule, written, context)
        if (held == value) != fits:
            what = "refuses" if held is None else f"encodes {held} bytes for"
            return f"llvm-mc {what} {written.splitlines()[-1]!r}; the rule's reach is {reach.lowest}..{reach.highest}"
    return ""


def _round_trip(template_set: TemplateSet, rule: Rule, text: str, context: Context) -> int | None:
    """What the form's immediate holds after assembly, in bytes. None: refused, or made another form."""
    scratch = context.directory / "oracles"
    scratch.mkdir(parents=True, exist_ok=True)
    obj = scratch / "probe.o"
    triple = template_set.disassembly_triple
    source = f"\t.text\nexecmem_probe_begin:\n\t{text}\nexecmem_probe_end:\n"
    argv = [context.llvm_mc, f"--triple={triple}", "--filetype=obj", "-o", str(obj), "-"]
    done = subprocess.run(argv, input=source, capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        return None
    port = template_set.port
    try:
        shown = disassemble(port, obj, "execmem_probe_begin", "execmem_probe_end", context.objdump, triple)
    except DisassemblyError:
        return None
    for instruction in shown:
        decoded = decode.match_rule(port, instruction)
        if decoded is not None and decoded.rule == rule:
            return decoded.relative(port.pointer_bytes)
    return None


# ---- The templates' refusal ----


def _parametric(template: Template) -> bool:
    """Does the stub page size move the data page at all?"""
    return template.data_distance is None


def judge_refusal(limit: Limit, assembler: Assembler, guarded: bool) -> Finding | None:
    """The last size is not refused for this field, and the next one is, in the right words."""
    last, following = assembler.at(limit.last), assembler.at(limit.next)
    named = [r for r in last.refusals if (r.template, r.field) == (limit.template.name, limit.item.name)]
    wrong = next((r for r in named if r.distance == limit.immediate(limit.last)), None)
    if wrong is not None:
        return _finding(limit, limit.last, "refuses a distance that fits", "accepted", wrong.text)
    if following.object is not None:
        return _finding(
            limit,
            limit.next,
            "accepts a distance that does not fit",
            limit.describe(limit.next),
            _truncated(limit, assembler, following.object),
        )
    named = [r for r in following.refusals if (r.template, r.field) == (limit.template.name, limit.item.name)]
    if any((r.lowest, r.highest) == (limit.reach.lowest, limit.reach.highest) for r in named):
        if any(r.distance == limit.immediate(limit.next) for r in named):
            return None
    if named or guarded:
        text = "; ".join(r.text for r in named) or following.text.strip()[-400:]
        return _finding(limit, limit.next, "is not refused in the right words", limit.describe(limit.next), text)
    return _own_words(limit, assembler, following)


def _own_words(limit: Limit, assembler: Assembler, refused: Assembled) -> Finding | None:
    """Without guards of its own, a source is refused by the assembler, whose message gives a line."""
    own = assembler.places(limit.template, limit.next)
    others: set[tuple[str, int]] = set()
    for template in assembler.template_set.templates:
        others |= assembler.places(template, limit.next) if template is not limit.template else set()
    for file, line, _ in refused.errors:
        place = (re.sub(r"-[0-9a-f]+\.s$", ".s", file), line)
        if place in own or (not own and place not in others):
            return None
    return _finding(
        limit,
        limit.next,
        "is not refused at its own template",
        limit.describe(limit.next),
        refused.text.strip()[-400:],
    )


def _finding(limit: Limit, size: int, what: str, expected: str, actual: str) -> Finding:
    return {
        "message": f"{limit.item.name} at stub page {size}: the assembly {what}",
        "expected": expected,
        "actual": actual,
        "reach": f"{limit.reach.lowest}..{limit.reach.highest} bytes, the immediate at {limit.at:#x}",
        "stub_pages": f"{limit.last} fits, {limit.next} does not",
    }


def _reached(limit: Limit, assembler: Assembler, obj: Path) -> set[int]:
    """Distances that accesses reach by the limit's instruction, in another assembly of the templates."""
    examined = decode.examine(assembler.template_set, limit.template, obj, assembler.context.objdump)
    return {
        access.target.distance
        for trace in examined.traces
        for access in trace.accesses
        if isinstance(access.target, Address) and any(i.at == limit.at for i in access.target.immediates)
    }


def _truncated(limit: Limit, assembler: Assembler, obj: Path) -> str:
    """What the misfit became."""
    try:
        found = ", ".join(f"slot{distance:+#x}" for distance in sorted(_reached(limit, assembler, obj)))
    except DisassemblyError as error:
        return str(error)
    return f"reaches {found or 'nothing'} instead of slot{limit.template.field_distance(limit.item, limit.next):+#x}"


def judge_declared(limits: Iterable[Limit], sizes: Iterable[int]) -> Finding | None:
    """Every stub page size that the subject declares fits every field."""
    for limit in limits:
        for size in sizes:
            value = limit.immediate(size)
            if not limit.reach.lowest <= value <= limit.reach.highest or value % limit.reach.scale:
                return _finding(limit, size, "cannot reach it", f"at most {limit.last}", f"distance {value}")
    return None


def judge_smallest(template: Template, limits: Iterable[Limit], size: int, assembler: Assembler) -> Finding | None:
    """The largest size that every field of the file reaches assembles, and decodes to the right distances."""
    assembled = assembler.at(size)
    what = f"at stub page {size}, the last that every field reaches"
    if assembled.object is None:
        return {"message": f"refused {what}", "expected": "accepted", "actual": assembled.text.strip()[-400:]}
    for limit in limits:
        reached = _reached(limit, assembler, assembled.object)
        wanted = template.field_distance(limit.item, size)
        if wanted not in reached:
            shown = ", ".join(f"slot{distance:+#x}" for distance in sorted(reached)) or "nothing"
            return {
                "message": f"{limit.item.name} {what}: the instruction at {limit.at:#x} reaches elsewhere",
                "expected": f"slot{wanted:+#x}",
                "actual": shown,
            }
    return None


def run(configuration: Configuration, context: Context) -> list[Result]:
    """One result a template. Runs of one tree take turns: what is assembled lies in its build folder."""
    with locked(context.directory.parent):
        return _run(configuration, context)


def _run(configuration: Configuration, context: Context) -> list[Result]:
    chosen, size = configuration.template_set, configuration.stub_page
    outcomes: dict[str, tuple[Verdict, str, Finding]] = {}
    limits: dict[str, list[Limit]] = {}
    for template in chosen.templates:
        try:
            examined = decode.examine(chosen, template, context.templates_object, context.objdump)
            limits[template.name] = find_limits(template, examined, size)
        except (DisassemblyError, LimitError) as error:
            outcomes[template.name] = (Verdict.FAIL, str(error), {"template": template.name})
    assembler = Assembler(chosen, context)
    every = [limit for found in limits.values() for limit in found if _parametric(limit.template)]
    smallest = min((limit.last for limit in every), default=size)
    guarded = any(assembler.at(limit.next).refusals for limit in every)
    for template in chosen.templates:
        if template.name in limits:
            outcomes[template.name] = _judge(
                template, limits[template.name], configuration, assembler, smallest, guarded
            )
    return [
        result(ID, REQUIREMENT, configuration, template.name, *outcomes[template.name]) for template in chosen.templates
    ]


def _judge(
    template: Template,
    limits: list[Limit],
    configuration: Configuration,
    assembler: Assembler,
    smallest: int,
    guarded: bool,
) -> tuple[Verdict, str, Finding]:
    chosen = configuration.template_set
    if not limits:
        return Verdict.NA, "addresses its record absolutely: every distance fits", {}
    for limit in limits:
        problem = prove_rule(chosen, limit.rule, assembler.context)
        if problem:
            return Verdict.FAIL, f"{limit.item.name}: {problem}", {"template": template.name}
    finding = judge_declared(limits, chosen.stub_pages)
    if finding is None and _parametric(template):
        for limit in limits:
            finding = finding or judge_refusal(limit, assembler, guarded)
        finding = finding or judge_smallest(template, limits, smallest, assembler)
    if finding is None:
        return Verdict.PASS, "", {}
    finding = {"template": template.name, **finding}
    return Verdict.FAIL, finding.pop("message"), finding


CHECKS = (
    HostCheck(
        ID,
        REQUIREMENT,
        "The last distance that each field's immediate can hold is accepted, the next one is refused by name.",
        Runner.HOST,
        run,
    ),
)
