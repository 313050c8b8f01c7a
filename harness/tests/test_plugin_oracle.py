"""The plugin oracle: what the observer prints, how it is judged, and one observation under the emulator."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from foreign import ROOT, path, template, through

from execmem_cts import tools
from execmem_cts.model import Template
from execmem_cts.oracles import plugin
from execmem_cts.oracles.plugin import Observation, Seen, Watched
from execmem_cts.process import run

PAGE, CODE, CELLS = 4096, 0x2000000, 0x9000000
SLOTS = PAGE // 64
COUNTING = template(path("Target", "Data", "Target", through=(through("Data", 2, "update"),)))
DATA = Seen(0, 0, 0, 8, False, SLOTS, CODE + PAGE, 64, True)
CELL_LOAD = Seen(0, 1, 4, 2, False, SLOTS, CELLS, 16, True)
CELL_STORE = Seen(0, 2, 8, 2, True, SLOTS, CELLS, 16, True)
TARGET = Seen(0, 3, 12, 8, False, SLOTS, CODE + PAGE + 8, 64, True)
RIGHT = (DATA, CELL_LOAD, CELL_STORE, TARGET)
STACK = Seen(0, 4, 16, 8, True, SLOTS, 0x7FFF0000, 0, True)


def judge(*seen: Seen, described: Template = COUNTING, calls: int = SLOTS, astray: int = 0, lost: int = 0) -> str:
    """The message of the finding, or ""."""
    finding = plugin.judge(described, PAGE, CODE, Observation(calls, astray, lost, seen))
    return finding["message"] if finding else ""


def test_right_observation() -> None:
    assert judge(*RIGHT) == ""


def test_the_subjects_own_page_is_judged_as_well() -> None:
    second = tuple(replace(access, number=1) for access in RIGHT)
    assert judge(*RIGHT, *second, calls=2 * SLOTS) == ""
    assert (
        judge(*RIGHT, *second[1:], calls=2 * SLOTS) == "path call makes other accesses to its data page than declared"
    )


def test_stack_and_the_templates_own_words_are_not_the_data_page() -> None:
    assert judge(*RIGHT, STACK, replace(DATA, index=5, first=CODE + 32)) == ""


@pytest.mark.parametrize(
    "seen",
    [
        RIGHT[1:],
        (replace(DATA, first=CODE + 4 * PAGE), *RIGHT[1:]),
        (replace(DATA, first=CODE - PAGE), *RIGHT[1:]),
        (replace(DATA, width=4), *RIGHT[1:]),
        (replace(DATA, store=True), *RIGHT[1:]),
        (replace(DATA, stride=0), *RIGHT[1:]),
        (replace(DATA, index=4), *RIGHT[1:]),
        (*RIGHT, replace(TARGET, index=4, first=CODE + PAGE + 16)),
        (*RIGHT, replace(DATA, index=4, first=CODE, store=True)),
    ],
    ids="missing word-counted below narrow stored standing late undeclared self-written".split(),
)
def test_accesses_to_the_data_page_are_exactly_the_declared_ones(seen: tuple[Seen, ...]) -> None:
    assert judge(*seen) == "path call makes other accesses to its data page than declared"


@pytest.mark.parametrize(
    "seen",
    [
        (DATA, CELL_LOAD, TARGET),
        (DATA, CELL_STORE, TARGET),
        (DATA, replace(CELL_LOAD, width=4), CELL_STORE, TARGET),
        (*RIGHT, replace(CELL_LOAD, index=4)),
        (DATA, replace(CELL_LOAD, stride=0), CELL_STORE, TARGET),
    ],
    ids="never-stored never-loaded wide twice same-cell".split(),
)
def test_accesses_through_pointers_are_exactly_the_declared_ones(seen: tuple[Seen, ...]) -> None:
    assert judge(*seen) == "path call makes other accesses through pointers than declared"


def test_every_slot_makes_the_same_accesses() -> None:
    assert "not the same in every slot" in judge(replace(DATA, count=SLOTS - 1), *RIGHT[1:])
    assert "not the same in every slot" in judge(replace(DATA, steady=False), *RIGHT[1:])


def test_every_slot_is_called_and_stays_in_its_own() -> None:
    assert judge(*RIGHT, calls=SLOTS - 1) == "not every slot was called on every path"
    assert judge(calls=0) == "not every slot was called on every path"
    assert judge(*RIGHT, astray=1) == "code of another slot runs within a call"
    assert judge(*RIGHT, lost=1) == "more kinds of access than the observer has room for"


def test_a_single_slot_cannot_move() -> None:
    alone = replace(COUNTING, page_tail=PAGE - 64)
    seen = [replace(access, count=1, stride=0) for access in (*RIGHT, STACK)]
    assert judge(*seen, described=alone, calls=1) == ""
    assert "through pointers" in judge(*seen[:1], *seen[3:], described=alone, calls=1)


def test_lines_of_the_plugin() -> None:
    text = (
        "noise\nexecmem-plugin: page=1 pass=1 index=2 at=8 width=2 store=1 count=64 first=4096 stride=-16 steady=1\n"
        "execmem-plugin: page=0 calls=0 astray=0 lost=0\nexecmem-plugin: page=1 calls=64 astray=1 lost=2\n"
    )
    access = Seen(1, 2, 8, 2, True, 64, 4096, -16, True)
    assert plugin.parse(text) == [Observation(0, 0, 0, ()), Observation(64, 1, 2, (access,))]
    assert plugin.parse(text.splitlines()[1]) == []


def test_option_of_the_emulator() -> None:
    pages = [Watched(4096, 4096, 24, 170), Watched(8192, 4096, 16, 256)]
    given = "page=0x1000:4096:24:170,page=0x2000:4096:16:256"
    assert plugin.plugin_argv(Path("/a,b/x.so"), [page.option for page in pages]) == [
        "-plugin",
        f"file=/a,,b/x.so,{given}",
    ]


PROGRAM = f"""
	.text
	.globl _start
_start:
	pushq	%rbx
	leaq	slots(%rip), %rbx
1:	callq	*%rbx
	addq	$64, %rbx
	leaq	slots + {PAGE}(%rip), %rax
	cmpq	%rax, %rbx
	jne	1b
	movl	$60, %eax
	xorl	%edi, %edi
	syscall
land:	popq	%rax
	jmpq	*%rax
	.section .slots, "awx", @progbits
slots:
	.rept	{SLOTS}
0:	movq	0b + {PAGE}(%rip), %rax
	jmpq	*0b + {PAGE + 8}(%rip)
	.balign	64
	.endr
	.rept	{SLOTS}
	.quad	0, land, 0, 0, 0, 0, 0, 0
	.endr
"""


def test_observation_under_the_emulator(tmp_path: Path) -> None:
    """A page of slots at a known address, called in order by a program that does nothing else."""
    if shutil.which("qemu-x86_64") is None:
        pytest.skip("qemu-x86_64 is missing: it runs the observed program")
    found = tools.find()
    source, obj, program = tmp_path / "p.S", tmp_path / "p.o", tmp_path / "p"
    source.write_text(PROGRAM)
    subprocess.run([found.clang, "--target=x86_64-unknown-linux", "-c", str(source), "-o", str(obj)], check=True)
    subprocess.run([found.lld, f"--section-start=.slots={CODE:#x}", str(obj), "-o", str(program)], check=True)
    observer = plugin.build_plugin(found.clang, ROOT, 1)
    watched = [Watched(CODE, PAGE, 64, SLOTS), Watched(CODE + 16 * PAGE, PAGE, 64, SLOTS)]
    options = plugin.plugin_argv(observer, [page.option for page in watched])
    ended = run(["qemu-x86_64", *options, str(program)], 30)
    assert ended.status == 0, ended.errors
    if not (both := plugin.parse(ended.errors)):
        pytest.skip(f"this emulator loads no plugin: {ended.errors.strip()}")
    observed, unused = both
    assert unused == Observation(0, 0, 0, ())
    assert observed.calls == SLOTS
    assert observed.accesses == (
        Seen(0, 0, 0, 8, False, SLOTS, CODE + PAGE, 64, True),
        Seen(0, 1, 7, 8, False, SLOTS, CODE + PAGE + 8, 64, True),
    )
    assert plugin.judge(template(), PAGE, CODE, observed) is None
    assert plugin.judge(template(record_offset=8), PAGE, CODE, observed) is not None
