"""What crosses a boundary inside the harness: ports, templates, configurations, checks and results.

Plain frozen dataclasses. All offsets, sizes and distances are bytes. Loading and validation live in `manifest`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path


ALLOC = "alloc"  # the variant of results of allocator families, and of the program that runs them


class Runner(str, Enum):
    EMULATED = "emulated"
    NATIVE = "native"
    HOST = "host"  # judged by the harness from the built object alone (decode, limits)


class Verdict(str, Enum):
    PASS = "PASS"
    FAIL = "FAIL"
    ERROR = "ERROR"  # the suite or the emulator broke
    NA = "NA"  # not claimed
    EMU = "EMU"  # this emulator was probed now and cannot show it
    SKIP = "SKIP"  # the user's filter
    XFAIL = "XFAIL"
    XPASS = "XPASS"
    NOTRUN = "NOTRUN"


@dataclass(frozen=True)
class Reach:
    """The range of one immediate field: `bits` wide, two's complement if signed, multiplied by scale."""

    bits: int
    signed: bool
    scale: int

    @property
    def lowest(self) -> int:
        return -(1 << (self.bits - 1)) * self.scale if self.signed else 0

    @property
    def highest(self) -> int:
        return ((1 << (self.bits - 1)) - 1) * self.scale if self.signed else ((1 << self.bits) - 1) * self.scale


@dataclass(frozen=True)
class Rule:
    """How one instruction form of the disassembly is read. See `interpret` and arch/PORTING.md, "Decode rules"."""

    form: str  # address | load | store | update | jump_load | jump | branch | goto | call | push | pop | barrier | ...
    pattern: str  # regular expression on the instruction's text, without address, bytes and comment
    base: str = ""  # "pc" | "next" | "object" | "slot" | "zero" | a group that holds a register | a register
    bias: int = 0
    align: int = 1
    scale: int = 1
    width: int = 0
    reach: Reach | None = None
    probe: str = ""  # assembly of this form, "{imm}" for the number as written: proves `reach` against the assembler
    link: str = ""  # form call: the register that holds the return address; "": it is pushed


@dataclass(frozen=True)
class Field:
    name: str
    offset: int
    width: int
    role: str  # target | value | cell | tail | idle
    in_page: bool = False
    tail: str = ""  # role tail: name of the path whose entry the field first holds


@dataclass(frozen=True)
class Through:
    """An access through a pointer that was loaded from a field (the call-counting cell)."""

    field: str
    offset: int
    width: int
    direction: str  # load | store | update


@dataclass(frozen=True)
class PathSpec:
    """One way through a template: entry, the fields read in program order, and where it arrives."""

    name: str
    entry: str  # "begin", or a symbol, or "SYMBOL+OFFSET"
    reads: tuple[str, ...]
    lands: str
    count: int = 0
    through: tuple[Through, ...] = ()
    carries: dict[str, str] = field(default_factory=dict)  # register -> field
    clobbers: tuple[str, ...] = ()
    ordered: bool = False  # entered through a patched field: needs a barrier on a weakly ordered port
    pushed: int = 0  # bytes that it leaves below the caller's stack pointer, for the target to take off
    pushed_words: dict[int, str] = field(default_factory=dict)  # offset from the stack pointer on arrival -> field


@dataclass(frozen=True)
class Patch:
    """A word of each slot to which the page builder adds the slot's executable address."""

    offset: int
    width: int


@dataclass(frozen=True)
class Template:
    name: str
    kind: str
    begin: str  # symbols; also "SYMBOL+OFFSET"
    end: str
    pitch: int
    record_size: int
    record_stride: int
    record_offset: int
    data_distance: int | None  # None: data_pages stub pages
    mode_bit: int
    fields: tuple[Field, ...]
    paths: tuple[PathSpec, ...]
    patches: tuple[Patch, ...]
    data_pages: int = 1  # -1: the data page lies one stub page below the code page
    page_tail: int = 0  # bytes at the end of a page that no slot uses

    def field_named(self, name: str) -> Field:
        return next(f for f in self.fields if f.name == name)

    def path_named(self, name: str) -> PathSpec:
        return next(p for p in self.paths if p.name == name)

    def slots(self, stub_page: int) -> int:
        return (stub_page - self.page_tail) // self.pitch

    def distance(self, stub_page: int) -> int:
        """From the start of the code page to the start of the data page."""
        return self.data_pages * stub_page if self.data_distance is None else self.data_distance

    def first_record(self, stub_page: int) -> int:
        """From the start of the data page to the first record; a negative record_offset counts from its end."""
        return self.record_offset + (stub_page if self.record_offset < 0 else 0)

    def field_offset(self, named: Field, stub_page: int) -> int:
        """From the record, or, in_page, from the data page; a negative in_page offset counts from the page's end."""
        return named.offset + (stub_page if named.in_page and named.offset < 0 else 0)

    def field_distance(self, named: Field, stub_page: int, slot: int = 0) -> int:
        """From the start of slot `slot` to the field that its code must reach."""
        from_page = self.field_offset(named, stub_page)
        if not named.in_page:
            from_page += self.first_record(stub_page) + slot * self.record_stride
        return self.distance(stub_page) + from_page - slot * self.pitch


@dataclass(frozen=True)
class Unshown:
    """Cells that no such runner can show, with the reason: not required there."""

    requirement: str  # glob
    runner: str  # emulated | native | host | *
    reason: str
    port: str = "*"
    os_page: int = 0  # 0: every one


@dataclass(frozen=True)
class Library:
    """The C library that hosted subjects are linked against on a port."""

    triple: str
    packages: tuple[str, ...]  # of Debian, that bring it


@dataclass(frozen=True)
class Port:
    name: str
    directory: Path  # arch/<port>
    triple: str
    pointer_bytes: int
    endianness: str  # little | big
    elf_machine: str
    compile_flags: tuple[str, ...]
    weakly_ordered: bool
    emulator_argv: tuple[str, ...]
    os_page_argv: tuple[str, ...]  # "{os_page}" is replaced
    os_pages: tuple[int, ...]
    stub_pages: tuple[int, ...]
    general: tuple[str, ...]
    vector: tuple[str, ...]
    vector_bytes: int
    argument: tuple[str, ...]
    preserved: tuple[str, ...]
    reserved: tuple[str, ...]
    clobber_general: str
    clobber_vector: str
    clobber_jump: str  # an unconditional jump to {target} that changes no register
    aliases: dict[str, str]
    objdump_argv: tuple[str, ...]
    rules: tuple[Rule, ...]
    unshown: tuple[Unshown, ...] = ()
    syscalls: dict[str, int] = field(default_factory=dict)  # that change what is mapped and by whom: name -> number
    hosted: Library | None = None  # there is none: hosted subjects do not run there

    @property
    def templates(self) -> Path:
        """Its own templates: asm/<port>.S, beside the arch/ that holds the port."""
        return self.directory.parent.parent / "asm" / f"{self.name}.S"


@dataclass(frozen=True)
class TemplateSet:
    """The templates of one subject on one port in one variant, ready to be assembled for any stub page size."""

    port: Port
    subject: str
    variant: str
    sources: tuple[Path, ...]  # assembly files
    include_directories: tuple[Path, ...]
    defines: tuple[str, ...]  # NAME=VALUE; "{stub_page}" is replaced
    assemble_flags: tuple[str, ...]
    stub_pages: tuple[int, ...]
    landing_pads: bool
    templates: tuple[Template, ...]
    triple: str = ""  # for the disassembly of this variant, where it differs from the port's

    @property
    def disassembly_triple(self) -> str:
        return self.triple or self.port.triple


@dataclass(frozen=True)
class Subject:
    """An implementation under test: its own C sources, its claims, and its templates on each port and variant."""

    name: str
    manifest: Path
    claims: tuple[str, ...]
    sources: tuple[Path, ...]  # C files; none: templates alone
    include_directories: tuple[Path, ...]
    compile_flags: tuple[str, ...]
    template_sets: tuple[TemplateSet, ...]
    everywhere: bool = True  # on every port of the tree; False: on those that its manifest names
    objects: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)  # by port that it covers: prebuilt ones
    port_includes: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)  # by port: of its own sources as well
    hosted: bool = False  # needs a C library
    libraries: tuple[str, ...] = ()  # that a hosted subject is linked with besides

    @property
    def alone(self) -> bool:
        """Templates alone: there is no code of its own."""
        return not self.sources and not any(self.objects.values())


@dataclass(frozen=True)
class Configuration:
    """One built and run combination; `key` names it in results and on the command line."""

    template_set: TemplateSet
    stub_page: int
    os_page: int
    runner: Runner

    @property
    def build_key(self) -> str:
        t = self.template_set
        return f"{t.port.name}/{t.subject}/{t.variant}-{self.stub_page}"

    @property
    def key(self) -> str:
        return f"{self.build_key}/{self.os_page}/{self.runner.value}"


@dataclass
class Result:
    """The verdict of one point of one check in one configuration: one line of the canonical JSON lines."""

    requirement: str
    check: str
    point: str
    port: str
    subject: str
    variant: str
    stub_page: int
    os_page: int  # what the program saw; for host checks the page asked for
    runner: str
    verdict: str
    message: str = ""
    diagnostics: dict[str, str] = field(default_factory=dict)
    argv: list[str] = field(default_factory=list)
    seconds: float = 0.0
    log: str = ""  # tail of the program's output where it did not end as it should
    flaky: bool = False  # failed, and passed when it was run again: never green, and no expectation covers it
    expected: str = ""  # XFAIL and XPASS: why a failure was expected, and the place that says so

    @property
    def key(self) -> str:
        return (
            f"{self.port}/{self.subject}/{self.variant}-{self.stub_page}/{self.os_page}/{self.runner}"
            f"/{self.check}.{self.point}"
        )
