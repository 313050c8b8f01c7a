"""The decode oracle: what it makes of many instruction sets, and that each mistake is called by its name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from foreign import PAGE, Bench, path, port, template, through

from execmem_cts import decode
from execmem_cts.model import Field, Patch, Port, Reach, Rule, Template
from execmem_cts.tools import find

ARM64 = port(
    "arm64",
    "aarch64-unknown-linux",
    "EM_AARCH64",
    [
        Rule("load", r"ldr (?P<dst>x\d+), (?P<imm>0x\w+)$", "object", width=8, reach=Reach(19, True, 4)),
        Rule("load", r"ldr (?P<dst>w\d+), (?P<imm>0x\w+)$", "object", width=4, reach=Reach(19, True, 4)),
        Rule("load", r"ldp (?P<dst>x\d+), (?P<dst2>x\d+), \[(?P<base>x\d+)(, #(?P<imm>\w+))?\]$", "base", width=8),
        Rule("load", r"ldr (?P<dst>x\d+), \[(?P<base>x\d+)(, #(?P<imm>\w+))?\]$", "base", width=8),
        Rule("load", r"ldrh (?P<dst>w\d+), \[(?P<base>x\d+)\]$", "base", width=2),
        Rule("store", r"strh w\d+, \[(?P<base>x\d+)\]$", "base", width=2),
        Rule("store", r"str x\d+, \[(?P<base>x\d+)\]$", "base", width=8),
        Rule("address", r"adrp (?P<dst>x\d+), (?P<imm>0x\w+)$", "object", align=4096),
        Rule("address", r"adr (?P<dst>x\d+), (?P<imm>0x\w+)$", "object"),
        Rule("address", r"add (?P<dst>x\d+), (?P<base>x\d+), #(?P<imm>\w+), lsl #12$", "base", scale=4096),
        Rule("address", r"add (?P<dst>x\d+), (?P<base>x\d+), #(?P<imm>\w+)$", "base"),
        Rule("jump", r"br (?P<target>x\d+)$"),
        Rule("branch", r"cbn?z w\d+, (?P<target>0x\w+)$"),
        Rule("goto", r"b (?P<target>0x\w+)$"),
        Rule("barrier", r"dmb ishld$"),
        Rule("pad", r"bti c$"),
        Rule("other", r"sub (?P<dst>w\d+), "),
        Rule("other", r"mov (?P<dst>x\d+), "),
        Rule("other", r"nop(?P<dst>)$"),
    ],
    aliases={f"w{i}": f"x{i}" for i in range(31)},
    general=tuple(f"x{i}" for i in range(31)),
)
RISCV = port(
    "riscv",
    "riscv64-unknown-linux",
    "EM_RISCV",
    [
        Rule("address", r"auipc (?P<dst>\w+), (?P<imm>\w+)$", "pc", scale=4096, reach=Reach(20, True, 4096)),
        Rule("load", r"ld (?P<dst>\w+), (?P<imm>\S+)\((?P<base>\w+)\)$", "base", width=8, reach=Reach(12, True, 1)),
        Rule("jump", r"jr (?P<target>\w+)$"),
    ],
)
X86 = port(
    "x86",
    "i686-unknown-linux",
    "EM_386",
    [
        Rule("load", r"movl (?P<imm>0x\w+), %(?P<dst>\w+)$", "slot", width=4),
        Rule("load", r"movl (?P<imm>-?0x\w+)\(%(?P<base>\w+)\), %(?P<dst>\w+)$", "base", width=4),
        Rule("jump_load", r"jmpl \*(?P<imm>0x\w+)$", "slot", width=4),
        Rule("jump_load", r"jmpl \*(?P<imm>-?0x\w+)\(%(?P<base>\w+)\)$", "base", width=4),
        Rule("call", r"calll (?P<target>0x\w+)$"),
        Rule("pop", r"popl %(?P<dst>\w+)$"),
    ],
    pointer_bytes=4,
    weakly_ordered=False,
)
ARM32_RULES = [
    Rule("address", r"add (?P<dst>\w+), pc, (?P<index>\w+)$", "pc", bias=8),
    Rule("address", r"add (?P<dst>\w+), pc$", "pc", bias=4),
    Rule("jump_load", r"ldr(?P<cond>ne|eq)?(\.w)? pc, \[(?P<base>r\d+), #(?P<imm>\S+)\]$", "base", width=4),
    Rule("jump_load", r"ldr\.w pc, \[pc, #(?P<imm>\S+)\]$", "pc", bias=4, align=4, width=4),
    Rule("load", r"ldr\.w (?P<dst>\w+), \[pc, #(?P<imm>\S+)\]$", "pc", bias=4, align=4, width=4),
    Rule("load", r"ldr (?P<dst>\w+), \[pc, #(?P<imm>\S+)\]$", "pc", bias=8, width=4),
    Rule("load", r"ldr(\.w)? (?P<dst>\w+), \[(?P<base>r\d+)\]$", "base", width=4),
    Rule("other", r"(nop|tst)(?P<dst>)"),
]
ARM32 = port(
    "arm32", "armv7a-unknown-linux-gnueabihf", "EM_ARM", ARM32_RULES, pointer_bytes=4, general=("r0", "r12", "r2")
)

# A template's body, between begin and end. Each makes exactly the accesses of foreign.template().
RIGHT: dict[str, tuple[Port, str]] = {
    "arm64 literal": (ARM64, f"ldr x10, .Lb + {PAGE}\n ldr x9, .Lb + {PAGE + 8}\n br x9"),
    "arm64 adr and add": (ARM64, f"adr x9, .\n add x9, x9, #{PAGE >> 12}, lsl #12\n ldp x10, x9, [x9]\n br x9"),
    "arm64 both ways": (
        ARM64,
        f"ldr x10, .Lb + {PAGE}\n b 1f\n nop\n1: adr x9, .Lb\n add x9, x9, #{PAGE >> 12}, lsl #12\n"
        " ldr x9, [x9, #8]\n br x9",
    ),
    "riscv64 hi and lo": (RISCV, f"auipc t0, {PAGE >> 12}\n ld t1, 0(t0)\n ld t0, 8(t0)\n jr t0"),
    "riscv64 negative lo": (
        RISCV,
        f"auipc t0, {(PAGE >> 12) + 1}\n ld t1, -0x800(t0)\n auipc t0, {(PAGE >> 12) + 1}\n ld t0, -0x800(t0)\n jr t0",
    ),
    "loongarch64 page": (
        port(
            "loongarch64",
            "loongarch64-unknown-linux",
            "EM_LOONGARCH",
            [
                Rule("address", r"pcaddu12i \$(?P<dst>\w+), (?P<imm>-?\d+)$", "pc", scale=4096),
                Rule("load", r"ld\.d \$(?P<dst>\w+), \$(?P<base>\w+), (?P<imm>-?\d+)$", "base", width=8),
                Rule("jump", r"jr \$(?P<target>\w+)$"),
            ],
        ),
        f"pcaddu12i $t0, {PAGE >> 12}\n ld.d $t1, $t0, 0\n ld.d $t0, $t0, 8\n jr $t0",
    ),
    "ppc64le link register": (
        port(
            "ppc64le",
            "powerpc64le-unknown-linux",
            "EM_PPC64",
            [
                Rule("call", r"bcl 20, 31, (?P<target>\S+)$", link="lr"),
                Rule("address", r"mflr (?P<dst>\d+)$", "lr"),
                Rule("load", r"ld (?P<dst>\d+), (?P<imm>-?\d+)\((?P<base>\d+)\)$", "base", width=8),
                Rule("address", r"mt(?P<dst>ctr|lr) (?P<base>\d+)$", "base"),
                Rule("jump", r"b(?P<target>ctr)$"),
            ],
        ),
        f"mflr 0\n bcl 20, 31, .+4\n mflr 12\n mtlr 0\n ld 11, {PAGE - 8}(12)\n ld 12, {PAGE}(12)\n mtctr 12\n bctr",
    ),
    "s390x big-endian": (
        port(
            "s390x",
            "s390x-unknown-linux",
            "EM_S390",
            [
                Rule("address", r"basr %(?P<dst>r\d+), %?(r)?0$", "next"),
                Rule("load", r"lg %(?P<dst>r\d+), (?P<imm>\d+)\(%(?P<base>r\d+)\)$", "base", width=8),
                Rule("jump", r"br %(?P<target>r\d+)$"),
            ],
            endianness="big",
        ),
        f"basr %r1, 0\n lg %r0, {PAGE - 2}(%r1)\n lg %r1, {PAGE + 6}(%r1)\n br %r1",
    ),
    "x64 absolute jump": (
        port(
            "x64",
            "x86_64-unknown-linux",
            "EM_X86_64",
            [
                Rule("load", r"movq (?P<imm>\S+)\(%rip\), %(?P<dst>\w+)$", "next", width=8),
                Rule("jump_load", r"jmpq \*(?P<imm>\S+)\(%rip\)$", "next", width=8),
            ],
            weakly_ordered=False,
        ),
        f"movq .Lb + {PAGE}(%rip), %r10\n jmpq *.Lb + {PAGE + 8}(%rip)",
    ),
}


def bench(directory: Path, chosen: Port, body: str, described: Template | None = None, before: str = "") -> Bench:
    text = f"\t.text\n\t.globl begin, end\n{before}begin:\n.Lb:\n {body}\nend:\n"
    return Bench(directory, chosen, described or template(), text)


def judge(
    directory: Path, body: str, described: Template | None = None, check: str = "po_decode_access"
) -> tuple[str, str]:
    """The verdict on an arm64 template."""
    return bench(directory, ARM64, body, described).judge(check)


@pytest.mark.parametrize("name", RIGHT)
def test_right_templates_of_many_machines(tmp_path: Path, name: str) -> None:
    chosen, body = RIGHT[name]
    described = template(record_offset=0x800) if name == "riscv64 negative lo" else template()
    assert bench(tmp_path, chosen, body, described).judge("po_decode_access") == ("PASS", "")


@pytest.mark.parametrize("name", RIGHT)
def test_wrong_distance_is_red_on_many_machines(tmp_path: Path, name: str) -> None:
    chosen, body = RIGHT[name]
    verdict, message = bench(tmp_path, chosen, body, template(record_offset=16)).judge("po_decode_access")
    assert verdict == "FAIL"
    assert "path call: no way from begin to where Target points" in message


LITERALS = f"ldr x10, .Lb + {PAGE}\n ldr x9, .Lb + {PAGE + 8}\n br x9"
COUNTING = template(
    path("Target", "Data", "Target", name="more", through=(through("Data", 2, "update"),)),
    path("Data", "Data", "Data", name="zero", through=(through("Data", 2, "update"),)),
)
COUNT = f"ldr x9, .Lb + {PAGE}\n ldrh w10, [x9]\n sub w10, w10, #1\n strh w10, [x9]\n cbz w10, 1f\n"
TARGETS = f" ldr x9, .Lb + {PAGE + 8}\n br x9\n1: ldr x9, .Lb + {PAGE}\n br x9"


def test_branches_and_pointers(tmp_path: Path) -> None:
    assert judge(tmp_path, COUNT + TARGETS, COUNTING) == ("PASS", "")


@pytest.mark.parametrize(
    "body, message",
    [
        (f"ldr x9, .Lb + {PAGE + 8}\n ldr x10, .Lb + {PAGE}\n br x9", "path call makes other reads than declared"),
        (f"ldr x9, .Lb + {PAGE + 8}\n br x9", "path call makes other reads than declared"),
        (f"ldr w10, .Lb + {PAGE}\n ldr x9, .Lb + {PAGE + 8}\n br x9", "path call makes other reads than declared"),
        (f"adr x8, .Lb\n add x8, x8, #4, lsl #12\n str x9, [x8]\n {LITERALS}", "other reads than declared"),
        (f"ldr x10, .Lb + {PAGE}\n ldr x9, .Lb + {PAGE}\n br x9", "no way from begin to where Target points"),
        (f"mov x9, x10\n br x9", "no way from begin"),
        (f"ldr x8, [x0]\n {LITERALS}", "'ldr x8, [x0]' at 0x0 reaches an address that the rules cannot tell"),
        (f"ldr x10, .Lb + {PAGE}\n ldr x10, [x10]\n ldr x9, .Lb + {PAGE + 8}\n br x9", "other pointers"),
        (f"cbz w0, 1f\n {LITERALS}\n1: {LITERALS}", "path call: 2 ways from begin to where Target points"),
        (f"cbz w0, 1f\n {LITERALS}\n1: ldr x9, .Lb + {PAGE}\n br x9", "jumps through Data and is no declared path"),
        (
            f"eor x1, x1, x1\n {LITERALS}",
            "no rule describes 'eor x1, x1, x1' at 0x0: extend decode.rules of arm64/port.toml",
        ),
        (f"ldr x9, .Lb + {PAGE}", "runs past the end of the template"),
        ("1: b 1b", "longer than 256 instructions: a loop?"),
        ("b .Lb + 64", "leaves the template"),
        (f"ldr x10, begin + {PAGE}\n br x10", "carries a relocation: the assembler left the distance open"),
    ],
)
def test_each_mistake_is_named(tmp_path: Path, body: str, message: str) -> None:
    verdict, said = judge(tmp_path, body)
    assert verdict == "FAIL"
    assert message in said


@pytest.mark.parametrize(
    "right, wrong",
    [
        (" strh w10, [x9]", " nop"),
        (" strh w10, [x9]", " strh w10, [x9]\n strh w10, [x9]"),
        (" ldrh w10, [x9]", " ldr x10, [x9]"),
        (f"ldr x9, .Lb + {PAGE}\n", f"ldr x10, .Lb + {PAGE}\n ldr x9, .Lb + {PAGE + 8}\n"),
    ],
)
def test_pointers_are_followed_as_declared(tmp_path: Path, right: str, wrong: str) -> None:
    assert right in COUNT
    verdict, message = judge(tmp_path, COUNT.replace(right, wrong) + TARGETS, COUNTING)
    assert verdict == "FAIL"
    assert message.startswith("path more ")


def test_missing_symbol_is_named(tmp_path: Path) -> None:
    verdict, message = judge(tmp_path, LITERALS, template(path("Target", "Data", "Target", entry="tail")))
    assert (verdict, message) == ("FAIL", "templates.o does not define tail")


def test_object_of_another_machine(tmp_path: Path) -> None:
    other = bench(tmp_path, replace(ARM64, elf_machine="EM_S390"), LITERALS)
    assert other.judge("po_decode_access") == ("FAIL", "templates.o is EM_AARCH64, the port's manifest says EM_S390")


def test_data_below_the_code(tmp_path: Path) -> None:
    body = f"ldr x10, .Lb - {PAGE}\n ldr x9, .Lb - {PAGE - 8}\n br x9"
    assert judge(tmp_path, body, template(data_pages=-1)) == ("PASS", "")
    assert judge(tmp_path, body, template())[0] == "FAIL"


def test_field_of_the_page_is_reached_from_every_slot(tmp_path: Path) -> None:
    """An adrp reaches a page's one field from every slot of its 4 KiB, and from no slot behind them."""
    shared = (Field("Data", 4096, 8, "value", in_page=True), Field("Target", -8, 8, "target", in_page=True))
    body = f"adrp x9, #{PAGE + 4096}\n ldr x10, [x9]\n adrp x9, #{2 * PAGE - 4096}\n ldr x9, [x9, #4088]\n br x9"
    near = bench(tmp_path, ARM64, body, template(fields=shared, page_tail=PAGE - 4096))
    assert near.judge("po_decode_access") == ("PASS", "")
    far = bench(tmp_path, ARM64, body, template(fields=shared))
    verdict, message = far.judge("po_decode_access")
    assert verdict == "FAIL"
    assert "no way" in message


def test_pc_relative_field_of_the_page_is_reached_from_one_slot_only(tmp_path: Path) -> None:
    shared = (Field("Data", 0, 8, "value", in_page=True), Field("Target", 8, 8, "target", in_page=True))
    assert judge(tmp_path, LITERALS, template(fields=shared))[0] == "FAIL"
    assert judge(tmp_path, LITERALS, template(fields=shared, page_tail=PAGE - 64)) == ("PASS", "")


def test_records_of_another_stride_are_not_at_a_fixed_distance(tmp_path: Path) -> None:
    verdict, message = judge(tmp_path, LITERALS, template(record_stride=48))
    assert verdict == "FAIL"
    assert "path call: no way" in message


def test_absolute_words_must_be_patched(tmp_path: Path) -> None:
    body = f"movl {PAGE}, %ecx\n jmpl *{PAGE + 4}"
    described = template(width=4, patches=(Patch(2, 4), Patch(8, 4)))
    assert bench(tmp_path, X86, body, described).judge("po_decode_access") == ("PASS", "")
    for patches, message in (
        ((Patch(2, 4),), "no declared patch is its word"),
        ((Patch(1, 4), Patch(8, 4)), "no declared patch is its word"),
        ((Patch(2, 4), Patch(8, 4), Patch(16, 4)), "the patch at 0x10 is in no absolute instruction"),
    ):
        verdict, said = bench(tmp_path, X86, body, replace(described, patches=patches)).judge("po_decode_access")
        assert verdict == "FAIL"
        assert message in said


def test_call_and_pop(tmp_path: Path) -> None:
    body = f"call 1f\n1: popl %eax\n movl {PAGE - 5}(%eax), %ecx\n jmpl *{PAGE - 1}(%eax)"
    assert bench(tmp_path, X86, body, template(width=4)).judge("po_decode_access") == ("PASS", "")


def test_constant_from_the_template_itself(tmp_path: Path) -> None:
    """A32 reaches beyond 4 KiB by a word of its own, added to the pc."""
    body = f"ldr r12, [pc, #8]\n add r12, pc, r12\n ldr r0, [r12]\n ldr pc, [r12, #4]\n .word {PAGE - 12}"
    chosen = bench(tmp_path, ARM32, body, template(width=4), " .syntax unified\n .arm\n")
    assert chosen.judge("po_decode_access") == ("PASS", "")
    assert chosen.judge("po_limits_field")[0] == "NA"


THUMB = " .syntax unified\n .thumb\n .thumb_func\n"


def test_thumb_symbols_and_rounded_pc(tmp_path: Path) -> None:
    """A fixed displacement from the rounded pc is right in every slot only where slots are whole words."""
    body = "ldr.w r12, [pc, #4092]\n ldr.w pc, [pc, #4092]"
    described = template(width=4, data_distance=4096, mode_bit=1)
    assert bench(tmp_path, ARM32, body, described, THUMB).judge("po_decode_access") == ("PASS", "")
    halves = replace(described, pitch=62, record_stride=62)
    verdict, message = bench(tmp_path, ARM32, body, halves, THUMB).judge("po_decode_access")
    assert verdict == "FAIL"
    assert "no way from begin" in message


def test_conditional_instructions_are_left_out_too(tmp_path: Path) -> None:
    body = "ldr.w r12, [pc, #4092]\n tst r0, r0\n it ne\n ldrne.w pc, [r12, #8]\n nop\n ldr.w pc, [pc, #4084]"
    rules = [*ARM32_RULES, Rule("other", r"it \w+(?P<dst>)")]
    chosen = replace(ARM32, rules=tuple(rules))
    verdict, message = bench(tmp_path, chosen, body, template(width=4, data_distance=4096), THUMB).judge(
        "po_decode_access"
    )
    assert verdict == "FAIL"
    assert "no declared path" in message  # the way on which the condition held; the other one is the path


def test_accesses_for_the_manifest(tmp_path: Path) -> None:
    chosen = bench(tmp_path, ARM64, LITERALS)
    examined = decode.examine(chosen.template_set, chosen.template, chosen.assemble(), find().objdump)
    located = decode.match_path(ARM64, chosen.template, chosen.template.paths[0], examined.traces, PAGE)
    assert located == [decode.FieldAccess(0, 4, 0, 8, "load", 10), decode.FieldAccess(4, 4, 1, 8, "load", 9)]


def test_accesses_that_were_not_found_have_no_length(tmp_path: Path) -> None:
    chosen = bench(tmp_path, ARM64, f"ldr x9, .Lb + {PAGE + 8}\n br x9")
    examined = decode.examine(chosen.template_set, chosen.template, chosen.assemble(), find().objdump)
    located = decode.match_path(ARM64, chosen.template, chosen.template.paths[0], examined.traces, PAGE)
    assert [access.length for access in located] == [0, 4]
    assert located[0].destination == -2


def test_jump_through_memory_loads_the_program_counter(tmp_path: Path) -> None:
    chosen = bench(tmp_path, *RIGHT["x64 absolute jump"])
    examined = decode.examine(chosen.template_set, chosen.template, chosen.assemble(), find().objdump)
    located = decode.match_path(chosen.port, chosen.template, chosen.template.paths[0], examined.traces, PAGE)
    assert [(a.at, a.length, a.destination) for a in located] == [(0, 7, -2), (7, 6, -1)]


# ---- PO-005, PO-024, PO-040 ----


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"pitch": 8, "record_stride": 16}, "the code is longer than a slot"),
        ({"record_stride": 8}, "a record is longer than its stride"),
        ({"pitch": 62}, "slots do not keep instructions aligned"),
        ({"page_tail": PAGE - 60}, "a page holds no slot"),
        ({"paths": (path("Target", "Data", "Target", entry="tail"),)}, "entry tail starts no instruction"),
    ],
)
def test_sizes_that_are_wrong(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    assert judge(tmp_path, LITERALS, check="po_slot_size") == ("PASS", "")
    body = f"{LITERALS}\n .globl tail\n .set tail, .Lb + {2 if message.startswith('entry') else 4}"
    assert judge(tmp_path, body, template(**changes), "po_slot_size") == ("FAIL", message)


TAIL = template(path("Target", "Data", "Target", ordered=True))


@pytest.mark.parametrize(
    "body, verdict, message",
    [
        (f"dmb ishld\n {LITERALS}", "PASS", ""),
        (LITERALS, "FAIL", "path call reads its record with no barrier before"),
        (LITERALS.replace("\n", "\n dmb ishld\n", 1), "FAIL", "path call reads its record with no barrier before"),
        (f"cbz w0, 1f\n dmb ishld\n1: {LITERALS}", "FAIL", "path call reads its record with no barrier before"),
    ],
)
def test_barriers(tmp_path: Path, body: str, verdict: str, message: str) -> None:
    assert judge(tmp_path, body, TAIL, "po_barrier") == (verdict, message)


def test_barrier_is_not_asked_for_where_loads_are_ordered(tmp_path: Path) -> None:
    assert judge(tmp_path, LITERALS, check="po_barrier")[0] == "NA"
    strong = bench(tmp_path, replace(ARM64, weakly_ordered=False), LITERALS, TAIL)
    assert strong.judge("po_barrier") == ("NA", "arm64 orders loads itself")


def test_pads(tmp_path: Path) -> None:
    two = template(path("Target", "Data", "Target"), path("Target", "Target", name="tail", entry="tail"))
    inner = f"bti c\n ldr x10, .Lb + {PAGE}\n .globl tail\ntail: bti c\n ldr x9, .Lb + {PAGE + 8}\n br x9"
    chosen = bench(tmp_path, ARM64, inner, two)
    assert chosen.judge("po_pads") == ("NA", "variant plain claims no landing pads")
    chosen.landing_pads = True
    assert chosen.judge("po_pads") == ("PASS", "")
    chosen.source = chosen.source.replace("tail: bti c\n", "tail:")
    assert chosen.judge("po_pads") == ("FAIL", "entry tail has no landing pad")
    chosen.source = chosen.source.replace("bti c\n", "nop\n")
    assert chosen.judge("po_pads") == ("FAIL", "entry begin has no landing pad")
