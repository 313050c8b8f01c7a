"""The limits oracle: the reach is computed right, and a build that does not refuse by name is called out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from foreign import PAGE, Bench, port, template

from execmem_cts import decode
from execmem_cts.model import Field, Port, Reach, Rule
from execmem_cts.oracles import limits
from execmem_cts.tools import find

LITERAL = Rule(
    "load",
    r"ldr (?P<dst>x\d+), (?P<imm>0x\w+)$",
    "object",
    width=8,
    reach=Reach(19, True, 4),
    probe="ldr x0, . + {imm}",
)
JUMP = Rule("jump", r"br (?P<target>x\d+)$")
ARM64 = port("arm64", "aarch64-unknown-linux", "EM_AARCH64", [LITERAL, JUMP])
RISCV = port(
    "riscv",
    "riscv64-unknown-linux",
    "EM_RISCV",
    [
        Rule(
            "address",
            r"auipc (?P<dst>\w+), (?P<imm>\w+)$",
            "pc",
            0,
            1,
            4096,
            0,
            Reach(20, True, 4096),
            "auipc t0, {imm}",
        ),
        Rule("load", r"ld (?P<dst>\w+), (?P<imm>\S+)\((?P<base>\w+)\)$", "base", width=8),
        Rule("jump", r"jr (?P<target>\w+)$"),
    ],
)
THUMB = port(
    "arm32",
    "armv7a-unknown-linux-gnueabihf",
    "EM_ARM",
    [
        Rule(
            form,
            pattern,
            "pc",
            bias=4,
            align=4,
            width=4,
            reach=Reach(12, False, 1),
            probe=f".thumb; ldr.w {register}, [pc, #{{imm}}]",
        )
        for form, pattern, register in (
            ("jump_load", r"ldr\.w pc, \[pc, #(?P<imm>\S+)\]$", "pc"),
            ("load", r"ldr\.w (?P<dst>\w+), \[pc, #(?P<imm>\S+)\]$", "r12"),
        )
    ],
    pointer_bytes=4,
    stub_pages=(4096,),
)

# What a template's guard looks like: EXECMEM_REACH of asm/asm.h in small.
GUARD = """
	.macro	REACH field, offset, base, lowest, highest
	.altmacro
	reach_judge \\field, \\lowest, \\highest, %(EXECMEM_STUB_PAGE + \\offset - \\base)
	.noaltmacro
	.endm
	.macro	reach_judge field_, lowest_, highest_, distance_
	.if	(\\distance_ < \\lowest_) || (\\distance_ > \\highest_)
	.error	"execmem-reach: port=arm64 template=foreign field=\\field_ reach=\\lowest_\\()..\\highest_ distance=\\distance_"
	.endif
	.endm
"""
GUARDS = "\tREACH Data, 0, 0, -1048576, 1048572\n\tREACH Target, 8, 4, -1048576, 1048572\n"
BEGIN = "\t.text\n\t.globl begin, end\nbegin:\n.Lb:\n"
BODY = "\tldr x10, .Lb + EXECMEM_STUB_PAGE\n\tldr x9, .Lb + EXECMEM_STUB_PAGE + 8\n\tbr x9\n"
GUARDED = f"{GUARD}{BEGIN}{GUARDS}{BODY}end:\n"


def judge(directory: Path, source: str, chosen: Port = ARM64) -> tuple[str, str]:
    return Bench(directory, chosen, template(), source).judge("po_limits_field")


def found_limits(bench: Bench) -> list[limits.Limit]:
    examined = decode.examine(bench.template_set, bench.template, bench.assemble(), find().objdump)
    return limits.find_limits(bench.template, examined, PAGE)


def test_guarded_template_passes(tmp_path: Path) -> None:
    assert judge(tmp_path, GUARDED) == ("PASS", "")


def test_template_that_the_assembler_refuses_itself_passes(tmp_path: Path) -> None:
    assert judge(tmp_path, BEGIN + BODY + "end:\n") == ("PASS", "")


def test_literal_reach(tmp_path: Path) -> None:
    """19 bits of 4 bytes from the load: Target lies 8 bytes up and is loaded 4 bytes on, Data 0 and 0."""
    data, target = found_limits(Bench(tmp_path, ARM64, template(), GUARDED))
    assert (data.item.name, data.at, data.last, data.next) == ("Data", 0, 1048572, 1048576)
    assert (target.item.name, target.at, target.last, target.next) == ("Target", 4, 1048568, 1048572)
    assert target.immediate(target.last) == 1048572


def test_pair_reach(tmp_path: Path) -> None:
    """The auipc grows with the stub page, by its own unit; the load's offset stays."""
    text = f"{BEGIN}auipc t0, {PAGE >> 12}\n ld t1, 0(t0)\n ld t0, 8(t0)\n jr t0\nend:\n"
    found = found_limits(Bench(tmp_path, RISCV, template(), text))
    assert [(limit.at, limit.last, limit.next) for limit in found] == [(0, 0x7FFFF000, 0x80000000)] * 2


def test_rounded_and_biased_reach(tmp_path: Path) -> None:
    """T32: 4095 bytes from the word that the pc is in, four bytes on."""
    text = "\t.syntax unified\n\t.thumb\n\t.thumb_func\n" + BEGIN
    text += "\tnop\n\tldr.w r12, [pc, #4092]\n\tldr.w pc, [pc, #4092]\nend:\n"
    described = template(width=4, fields=(Field("Data", 0, 4, "value"), Field("Target", 4, 4, "target")))
    bench = Bench(tmp_path, replace(THUMB, rules=(*THUMB.rules, Rule("other", "nop"))), described, text)
    examined = decode.examine(bench.template_set, described, bench.assemble(), find().objdump)
    data, target = limits.find_limits(described, examined, 4096)
    assert (data.at, data.immediate(4096), data.last) == (2, 4092, 4099)
    assert (target.at, target.immediate(4096), target.last) == (6, 4092, 4099)


def test_data_below_the_code(tmp_path: Path) -> None:
    text = BEGIN + BODY.replace("+ EXECMEM_STUB_PAGE", "- EXECMEM_STUB_PAGE") + "end:\n"
    below = template(data_pages=-1)
    data, target = found_limits(Bench(tmp_path, ARM64, below, text))
    assert (data.last, target.last) == (1048576, 1048580)
    assert Bench(tmp_path, ARM64, below, text).judge("po_limits_field") == ("PASS", "")


@pytest.mark.parametrize(
    "right, wrong, message",
    [
        # a guard of another reach, of another field, of another distance; a guard that is too strict; one that is gone
        (
            "8, 4, -1048576, 1048572",
            "8, 4, -1048576, 2097148",
            "Target at stub page 1048572: the assembly is not refused in",
        ),
        ("REACH Target", "REACH Type", "Target at stub page 1048572: the assembly is not refused in the right words"),
        ("8, 4, -1048576", "12, 4, -1048576", "Target at stub page 1048572: the assembly is not refused in the right"),
        (
            "8, 4, -1048576, 1048572",
            "8, 4, -1048576, 1048568",
            "Target at stub page 1048568: the assembly refuses a distance",
        ),
        ("\tREACH Data", "//", "Data at stub page 1048576: the assembly is not refused in the right words"),
    ],
)
def test_wrong_guards_are_red(tmp_path: Path, right: str, wrong: str, message: str) -> None:
    assert right in GUARDED
    verdict, said = judge(tmp_path, GUARDED.replace(right, wrong))
    assert verdict == "FAIL"
    assert message in said


def test_distance_that_is_cut_without_a_word_is_red(tmp_path: Path) -> None:
    """What an assembler does that keeps the low 19 bits of the count of words."""
    cut = "(((EXECMEM_STUB_PAGE + {0}) & 0x1fffff) ^ 0x100000) - 0x100000"
    body = f"\tldr x10, .Lb + {cut.format(0)}\n\tldr x9, .Lb + 4 + {cut.format(4)}\n\tbr x9\n"
    verdict, message = judge(tmp_path, BEGIN + body + "end:\n")
    assert verdict == "FAIL"
    assert message == "Data at stub page 1048576: the assembly accepts a distance that does not fit"


def test_refusal_at_another_template_does_not_count(tmp_path: Path) -> None:
    """The assembler's own words must point into the template whose field does not fit."""
    elsewhere = '\t.if EXECMEM_STUB_PAGE > 1048571\n\t.error "too far"\n\t.endif\n'
    cut = BODY.replace("EXECMEM_STUB_PAGE", "(EXECMEM_STUB_PAGE & 0xfffff)")
    verdict, message = judge(tmp_path, elsewhere + BEGIN + cut + "end:\n")
    assert verdict == "FAIL"
    assert "is not refused at its own template" in message


@pytest.mark.parametrize(
    "rule, message",
    [
        (replace(LITERAL, reach=Reach(18, True, 4)), "llvm-mc encodes 524288 bytes for"),
        (replace(LITERAL, reach=Reach(20, True, 4)), "llvm-mc refuses"),
        (replace(LITERAL, probe=""), "has a reach and no probe to prove it"),
        (replace(LITERAL, reach=None), "gives no reach"),
    ],
)
def test_wrong_rules_are_red(tmp_path: Path, rule: Rule, message: str) -> None:
    verdict, said = judge(tmp_path, GUARDED, replace(ARM64, rules=(rule, JUMP)))
    assert verdict == "FAIL"
    assert message in said


def test_declared_size_that_is_out_of_reach_is_red(tmp_path: Path) -> None:
    verdict, message = judge(tmp_path, GUARDED, replace(ARM64, stub_pages=(PAGE, 1 << 20)))
    assert (verdict, message) == ("FAIL", "Data at stub page 1048576: the assembly cannot reach it")


def test_template_whose_accesses_are_not_found_is_red(tmp_path: Path) -> None:
    verdict, message = judge(tmp_path, f"{BEGIN}\tbr x9\nend:\n")
    assert (verdict, message) == ("FAIL", "no access to any field was found, so that no reach can be told")


def test_fields_that_are_found_are_judged_where_others_are_not(tmp_path: Path) -> None:
    """An instruction without a rule ends the way: the fields behind it are PO-003's, the ones before it are not."""
    unknown = BODY.replace("\tldr x9", "\teor x1, x1, x1\n\tldr x9")
    assert judge(tmp_path, f"{BEGIN}{unknown}end:\n") == ("PASS", "")
    cut = unknown.replace("EXECMEM_STUB_PAGE", "(EXECMEM_STUB_PAGE & 0xfffff)")
    assert judge(tmp_path, f"{BEGIN}{cut}end:\n")[0] == "FAIL"


def test_absolute_addresses_have_no_limit(tmp_path: Path) -> None:
    rules = [
        Rule("load", r"movl (?P<imm>0x\w+), %(?P<dst>\w+)$", "slot", width=4),
        Rule("jump_load", r"jmpl \*(?P<imm>0x\w+)$", "slot", width=4),
    ]
    chosen = port("x86", "i686-unknown-linux", "EM_386", rules, pointer_bytes=4)
    text = f"{BEGIN}\tmovl EXECMEM_STUB_PAGE, %ecx\n\tjmpl *EXECMEM_STUB_PAGE + 4\nend:\n"
    verdict, message = Bench(tmp_path, chosen, template(width=4), text).judge("po_limits_field")
    assert (verdict, message) == ("NA", "addresses its record absolutely: every distance fits")
