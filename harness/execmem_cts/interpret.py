"""What a template does, read from its disassembly with the rules of a port's `[decode]` table.

A small abstract interpretation follows every way through a template from each entry. Registers hold an address (a
distance from the slot's start), a constant, a value loaded from such an address, or nothing known. The result is a list
of traces: the accesses in program order, and where control leaves. Nothing here knows an instruction set.

A rule's groups name what it takes from the text:
  imm, index      immediate; register added to the base
  dst, dst2       registers written (dst may be a list with commas; dst2 is the second of a pair, loaded from behind it)
  target          of a jump: the register. Of a branch, goto or call: the number shown
  cond            when it matched anything, the instruction may also be left out
and its `base` says what the immediate is added to:
  pc, next        the instruction's address (after `bias` and `align`); the address behind it
  object          as pc, where the disassembler shows the sum as an address in the object instead of the immediate
  slot            the slot's start: an absolute word to which the page builder adds the slot's address
  zero            nothing: a constant
  GROUP or NAME   the register that this group matched, or of this name
Forms: address, load, store, update (load, then store), jump_load, jump, branch (conditional), goto, call (`link` names
the register that holds the return address; without it, it is pushed), push, pop, barrier, pad, trap, other. An `other`
without a dst group makes every register that its text names unknown; an empty dst group says that it writes none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from .disassembly import Instruction
from .model import Port, Rule

WORD = "word"  # form of the rule that stands for a constant which the template loads from its own bytes
MAXIMUM_STEPS = 256  # instructions on one way; templates have a dozen
MAXIMUM_TRACES = 64
_NUMBER = re.compile(r"^#?(?P<sign>[-+]?)(?P<digits>0[xX][0-9a-fA-F]+|[0-9]+)$")
_REGISTER = re.compile(r"[%$]?[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Immediate:
    """One number that an address is made of: `value` bytes were added to `base`, a distance from the slot."""

    at: int  # offset in the slot of the instruction
    rule: Rule
    value: int
    base: int | None  # None where the base is a register or nothing


@dataclass(frozen=True)
class Address:
    """The slot's start plus `distance`."""

    distance: int
    immediates: tuple[Immediate, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Constant:
    value: int
    immediates: tuple[Immediate, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Loaded:
    """What lies `distance` from the slot's start, plus `displacement`."""

    distance: int
    width: int
    displacement: int = 0


Value = Address | Constant | Loaded | None


@dataclass(frozen=True)
class Access:
    at: int
    length: int
    width: int
    direction: str  # load | store | update
    target: Value  # Address: of the slot's own pages. Loaded: through a pointer. Else it could not be told
    destination: str | None  # canonical register; "pc" for a jump through memory
    text: str = ""


@dataclass(frozen=True)
class Trace:
    entry: str
    accesses: tuple[Access, ...]
    barriers: tuple[int, ...]  # for each barrier, how many accesses came before it
    forms: tuple[tuple[int, str], ...]  # offset and form of each instruction, in order
    lands: Value  # what control leaves through: a Loaded value; an Address where it leaves directly
    problem: str = ""  # why this way could not be followed to its end


class _Undecodable(Exception):
    pass


@dataclass(frozen=True)
class Decoded:
    """An instruction with the rule that reads it."""

    instruction: Instruction
    rule: Rule
    groups: Mapping[str, str | None]

    def number(self, name: str) -> int:
        text = self.groups.get(name)
        if not text:
            return 0
        match = _NUMBER.match(text)
        if match is None:
            raise _Undecodable(f"{text!r} in {self.instruction.text!r} is not a number")
        value = int(match["digits"], 0)
        return -value if match["sign"] == "-" else value

    @property
    def immediate(self) -> int:
        """Bytes as shown. A disassembler that shows a signed field as an unsigned number is put right."""
        value = self.number("imm") * self.rule.scale
        reach = self.rule.reach if self.rule.base != "object" else None
        if reach is not None and reach.signed and reach.highest < value < (1 << reach.bits) * reach.scale:
            value -= (1 << reach.bits) * reach.scale
        return value

    def relative(self, pointer_bytes: int) -> int:
        """The immediate in bytes, also where the disassembler shows the address that it leads to."""
        if self.rule.base != "object":
            return self.immediate
        shown = self.instruction.address + self.rule.bias
        return wrapped(self.immediate - (shown - shown % self.rule.align), pointer_bytes)


def wrapped(value: int, pointer_bytes: int) -> int:
    """As a signed number of pointer width."""
    modulus = 1 << (8 * pointer_bytes)
    value %= modulus
    return value - modulus if value >= modulus // 2 else value


def match_rule(port: Port, instruction: Instruction) -> Decoded | None:
    """The first rule of the port that describes the instruction."""
    for rule in port.rules:
        match = re.match(rule.pattern, instruction.text)
        if match is not None:
            return Decoded(instruction, rule, match.groupdict())
    return None


@dataclass
class _State:
    position: int
    registers: dict[str, Value]
    pushed: list[Value]
    accesses: list[Access]
    barriers: list[int]
    forms: list[tuple[int, str]]

    def copy(self) -> "_State":
        return _State(
            self.position,
            dict(self.registers),
            list(self.pushed),
            list(self.accesses),
            list(self.barriers),
            list(self.forms),
        )


class _Machine:
    def __init__(self, port: Port, instructions: Sequence[Instruction], placement: int) -> None:
        self.port = port
        self.placement = placement
        self.at = {i.offset: i for i in instructions}
        self.size = max((i.offset + i.length for i in instructions), default=0)
        self.code = bytearray(self.size)
        for i in instructions:
            self.code[i.offset : i.offset + len(i.code)] = i.code
        self.decoded: dict[int, Decoded | None] = {}
        self.traces: list[Trace] = []
        self.aliases = {bare(k): bare(v) for k, v in port.aliases.items()}

    def register(self, name: str) -> str:
        plain = bare(name)
        return self.aliases.get(plain, plain)

    def wrap(self, distance: int) -> int:
        return wrapped(distance, self.port.pointer_bytes)

    def finish(self, state: _State, lands: Value, problem: str = "", entry: str = "") -> None:
        self.traces.append(
            Trace(entry, tuple(state.accesses), tuple(state.barriers), tuple(state.forms), lands, problem)
        )

    def run(self, entry: str, offset: int) -> None:
        waiting = [_State(offset, {}, [], [], [], [])]
        first = len(self.traces)
        while waiting:
            state = waiting.pop()
            if len(self.traces) - first + len(waiting) >= MAXIMUM_TRACES:
                return self.finish(state, None, f"more than {MAXIMUM_TRACES} ways lead from {entry}", entry)
            if len(state.forms) >= MAXIMUM_STEPS:
                self.finish(state, None, f"longer than {MAXIMUM_STEPS} instructions: a loop?", entry)
                continue
            if state.position == self.size:
                self.finish(state, Address(self.size), "runs past the end of the template", entry)
                continue
            instruction = self.at.get(state.position)
            if instruction is None:
                self.finish(state, None, f"goes to offset {state.position:#x}, where no instruction starts", entry)
                continue
            try:
                waiting += self.step(state, instruction, entry)
            except _Undecodable as error:
                self.finish(state, None, str(error), entry)

    def step(self, state: _State, instruction: Instruction, entry: str) -> list[_State]:
        if instruction.offset not in self.decoded:
            self.decoded[instruction.offset] = match_rule(self.port, instruction)
        decoded = self.decoded[instruction.offset]
        if decoded is None:
            raise _Undecodable(
                f"no rule describes {instruction.text!r} at {instruction.offset:#x}: "
                f"extend decode.rules of {self.port.directory.name}/port.toml"
            )
        state.forms.append((instruction.offset, decoded.rule.form))
        after = instruction.offset + instruction.length
        ways = []
        if decoded.groups.get("cond"):
            skipped = state.copy()
            skipped.position = after
            ways.append(skipped)
        state.position = after
        form = decoded.rule.form
        if form == "jump":
            self.finish(state, self.jump_target(state, decoded), entry=entry)
        elif form == "jump_load":
            self.jump_load(state, decoded, entry)
        elif form == "trap":
            self.finish(state, None, f"ends in {instruction.text!r} at {instruction.offset:#x}", entry)
        elif form in ("branch", "goto", "call"):
            ways += self.branch(state, decoded, entry)
        else:
            self.plain(state, decoded)
            ways.append(state)
        return ways

    def plain(self, state: _State, decoded: Decoded) -> None:
        form = decoded.rule.form
        if form == "address":
            self.write(state, decoded.groups.get("dst"), self.effective(state, decoded))
        elif form in ("load", "store", "update"):
            self.access(state, decoded)
        elif form == "push":
            state.pushed.append(self.read(state, decoded.groups.get("src")))
        elif form == "pop":
            self.write(state, decoded.groups.get("dst"), state.pushed.pop() if state.pushed else None)
        elif form == "barrier":
            state.barriers.append(len(state.accesses))
        elif form == "other":
            if "dst" in decoded.groups:
                self.write(state, decoded.groups["dst"], None)
            else:
                for name in _REGISTER.findall(decoded.instruction.text):
                    state.registers.pop(self.register(name), None)
        elif form != "pad":
            raise _Undecodable(f"{form!r} is not a form of a decode rule")

    def read(self, state: _State, name: str | None) -> Value:
        return state.registers.get(self.register(name)) if name else None

    def write(self, state: _State, names: str | None, value: Value) -> None:
        for name in (names or "").split(","):
            if name.strip():
                state.registers[self.register(name.strip())] = value

    def effective(self, state: _State, decoded: Decoded) -> Value:
        """Base, plus index, plus immediate."""
        rule, here = decoded.rule, decoded.instruction
        value = decoded.relative(self.port.pointer_bytes)
        biased = here.offset + rule.bias
        base: Value
        if rule.base in ("pc", "next", "object"):
            if rule.base == "next":
                biased += here.length
            placed = biased + self.placement
            start = placed - placed % rule.align - self.placement
            base = Address(start)
        elif rule.base == "slot":
            start, base = 0, Address(0)
        elif rule.base == "zero":
            start, base = 0, Constant(0)
        elif rule.base:
            base = self.read(state, decoded.groups.get(rule.base) if rule.base in decoded.groups else rule.base)
        else:
            raise _Undecodable(f"the rule that reads {here.text!r} names no base")
        own = rule.base in ("pc", "next", "object", "slot")
        total = self.add(base, value, Immediate(here.offset, rule, value, start if own else None))
        if decoded.groups.get("index"):
            total = self.sum(total, self.read(state, decoded.groups["index"]))
        return total

    def add(self, base: Value, value: int, immediate: Immediate) -> Value:
        if isinstance(base, Address):
            return Address(self.wrap(base.distance + value), base.immediates + (immediate,))
        if isinstance(base, Constant):
            return Constant(self.wrap(base.value + value), base.immediates + (immediate,))
        if isinstance(base, Loaded):
            return replace(base, displacement=self.wrap(base.displacement + value))
        return None

    def sum(self, one: Value, other: Value) -> Value:
        if isinstance(one, Constant) and isinstance(other, Address):
            one, other = other, one
        if not isinstance(other, Constant):
            return None
        if isinstance(one, Address):
            return Address(self.wrap(one.distance + other.value), one.immediates + other.immediates)
        if isinstance(one, Constant):
            return Constant(self.wrap(one.value + other.value), one.immediates + other.immediates)
        return None

    def access(self, state: _State, decoded: Decoded) -> None:
        rule, here = decoded.rule, decoded.instruction
        first = self.effective(state, decoded)
        names = [decoded.groups.get("dst")]
        if decoded.groups.get("dst2"):
            names.append(decoded.groups["dst2"])
        loads = rule.form == "load"
        for number, name in enumerate(names):
            target = self.add(first, number * rule.width, Immediate(here.offset, rule, 0, None)) if number else first
            if loads and isinstance(target, Address) and 0 <= target.distance <= self.size - rule.width:
                self.write(state, name, self.word(here, target.distance, rule.width))
                continue
            destination = self.register(name) if loads and name else None
            state.accesses.append(
                Access(here.offset, here.length, rule.width, rule.form, target, destination, here.text)
            )
            if rule.form != "store":
                self.write(state, name, Loaded(target.distance, rule.width) if isinstance(target, Address) else None)

    def word(self, here: Instruction, distance: int, width: int) -> Constant:
        """A constant that lies in the template itself: no access to the data page."""
        order: Literal["little", "big"] = "little" if self.port.endianness == "little" else "big"
        value = self.wrap(int.from_bytes(self.code[distance : distance + width], order))
        return Constant(value, (Immediate(here.offset, Rule(form=WORD, pattern=""), value, None),))

    def jump_target(self, state: _State, decoded: Decoded) -> Value:
        if decoded.groups.get("target"):
            value = self.read(state, decoded.groups["target"])
            return self.add(value, decoded.immediate, Immediate(decoded.instruction.offset, decoded.rule, 0, None))
        return self.effective(state, decoded)

    def jump_load(self, state: _State, decoded: Decoded, entry: str) -> None:
        here, rule = decoded.instruction, decoded.rule
        target = self.effective(state, decoded)
        state.accesses.append(Access(here.offset, here.length, rule.width, "load", target, "pc", here.text))
        self.finish(state, Loaded(target.distance, rule.width) if isinstance(target, Address) else None, entry=entry)

    def branch(self, state: _State, decoded: Decoded, entry: str) -> list[_State]:
        rule, here = decoded.rule, decoded.instruction
        shown = decoded.number("target") * rule.scale
        after = state.position
        target = here.offset + rule.bias + shown if rule.base == "pc" else shown - here.address + here.offset
        ways = []
        if rule.form == "branch":
            ways.append(state.copy())
        if rule.form == "call":
            if rule.link:
                state.registers[self.register(rule.link)] = Address(after)
            else:
                state.pushed.append(Address(after))
        if 0 <= target < self.size:
            state.position = target
            ways.append(state)
        else:
            self.finish(state, Address(target), f"{here.text!r} leaves the template", entry)
        return ways


def bare(name: str) -> str:
    return name.lstrip("%$")


def follow(
    port: Port, instructions: Sequence[Instruction], entries: Mapping[str, int], placement: int = 0
) -> list[Trace]:
    """Every way through a template from each entry (name to offset in the slot).

    `placement` is the slot's address modulo the largest `align` of the rules: bases that are rounded depend on it.
    """
    machine = _Machine(port, instructions, placement)
    for entry, offset in entries.items():
        machine.run(entry, offset)
    return machine.traces
