"""Which configurations exist, and what becomes of those that are filtered out, refused, or not built."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from execmem_cts import build, manifest, native, plan, requirements
from execmem_cts.model import ALLOC, Port, Runner, Subject, TemplateSet
from execmem_cts.oracles import host_checks
from execmem_cts.refusal import refusals
from execmem_cts.selection import Filter

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = requirements.load(ROOT)


@pytest.fixture
def port() -> Port:
    """A port of the tree, with sizes of our own."""
    first = next(iter(manifest.discover_ports(ROOT).values()))
    return dataclasses.replace(
        first, os_pages=(4096, 16384), stub_pages=(4096, 16384), os_page_argv=("-p", "{os_page}")
    )


@pytest.fixture
def subject(port: Port) -> Subject:
    loaded = manifest.load_subject(manifest.subject_path(ROOT, "ref"), ROOT, {port.name: port})
    return dataclasses.replace(loaded, template_sets=loaded.template_sets[:1])


def planned(subject: Subject, port: Port, chosen: Filter, built: build.Built) -> plan.Plan:
    return plan.Planner(ROOT, subject, REQUIREMENTS, host_checks, chosen, 1, 5).make(built, [port])


def cells(template_set: TemplateSet, chosen: Filter = Filter()) -> set[tuple[int, int, Runner]]:
    found = set()
    for stub_page in template_set.stub_pages:
        for c in plan._of_unit(plan.Unit(template_set, stub_page), chosen):
            if c.runner is not Runner.NATIVE:
                found.add((c.stub_page, c.os_page, c.runner))
    return found


def test_a_stub_page_is_never_smaller_than_the_os_page(subject: Subject) -> None:
    emulated = {(s, o) for s, o, runner in cells(subject.template_sets[0]) if runner is Runner.EMULATED}
    assert emulated == {(4096, 4096), (16384, 4096), (16384, 16384)}


def test_a_larger_os_page_has_the_smallest_stub_page_that_reaches_it_unless_it_is_asked_for(subject: Subject) -> None:
    three = dataclasses.replace(subject.template_sets[0], stub_pages=(65536, 4096, 16384))
    large = {(s, o) for s, o, runner in cells(three) if runner is Runner.EMULATED and o == 16384}
    assert large == {(16384, 16384)}
    asked = cells(three, Filter(os_pages=(16384,)))
    assert {s for s, o, runner in asked if runner is Runner.EMULATED and o == 16384} == {16384, 65536}


def test_where_no_stub_page_reaches_only_the_refusal_is_asked(subject: Subject, port: Port, tmp_path: Path) -> None:
    small = dataclasses.replace(subject.template_sets[0], stub_pages=(4096,))
    assert (4096, 16384, Runner.EMULATED) in cells(small)
    alone = dataclasses.replace(subject, template_sets=(small,))
    made = planned(alone, port, Filter(), build.Built(tmp_path))
    asked = {r.check for r in made.results if (r.stub_page, r.os_page, r.runner) == (4096, 16384, "emulated")}
    assert asked == {plan.REFUSES}


def test_what_was_not_built_is_an_error_and_not_run(subject: Subject, port: Port, tmp_path: Path) -> None:
    keys = [build.Unit(subject.template_sets[0], size).key for size in (4096, 16384)]
    no = dict.fromkeys(keys, "clang: no")
    made = planned(subject, port, Filter(), build.Built(tmp_path, errors=no, abi_errors={port.name: "clang: no"}))
    assert not made.items
    errors = [r for r in made.results if r.verdict == "ERROR"]
    assert {r.stub_page for r in errors if r.check == plan.BUILD} == {0, 4096, 16384}  # 0: the proof of the call stub
    assert all(r.log == "clang: no" for r in errors)
    left = {r.requirement for r in made.results if r.verdict == "NOTRUN"}
    assert left == set(REQUIREMENTS)


def test_a_refused_template_fails_its_requirement_and_nothing_else(
    subject: Subject, port: Port, tmp_path: Path
) -> None:
    key = build.Unit(subject.template_sets[0], 16384).key
    line = f"execmem-reach: port={port.name} template=closure field=Data reach=0..4095 distance=16380"
    built = build.Built(tmp_path, refused={key: refusals(line + "\n" + line)})
    made = planned(subject, port, Filter(stub_pages=(16384,)), built)
    failed = [r for r in made.results if r.verdict == "FAIL"]
    assert [(r.requirement, r.check, r.point) for r in failed] == [("PO-004", plan.REACH, "closure")]
    assert "16380 bytes away, its immediate reaches 0 to 4095" in failed[0].message
    assert {r.verdict for r in made.results} == {"FAIL", "NOTRUN", "SKIP"}


def test_what_a_filter_leaves_out_is_told(subject: Subject, port: Port, tmp_path: Path) -> None:
    made = planned(subject, port, Filter(stub_pages=(8192,)), build.Built(tmp_path))
    assert not made.items
    skipped = [r for r in made.results if r.verdict == "SKIP"]
    assert {(r.stub_page, r.os_page) for r in skipped} >= {(4096, 4096), (16384, 4096), (16384, 16384)}


def test_a_port_without_checks_is_an_error(subject: Subject, port: Port, tmp_path: Path) -> None:
    none = dataclasses.replace(subject, template_sets=())
    made = plan.Planner(ROOT, none, {}, {}, Filter(), 1, 5).make(build.Built(tmp_path), [port])
    assert [(r.port, r.verdict) for r in made.results] == [(port.name, "ERROR")]
    assert "no checks" in made.results[0].message


def test_the_emulator_is_asked_for_the_os_page(port: Port) -> None:
    assert plan.emulator_argv(port, 16384) == (*port.emulator_argv, "-p", "16384")


def test_only_one_point(subject: Subject) -> None:
    chosen = Filter(only=("po_x.one", "PO-009"))
    assert chosen.wants_check("po_x", "PO-001") and chosen.wants_check("po_y", "PO-009")
    assert not chosen.wants_check("po_z", "PO-001")
    assert chosen.points("cell", "po_x", "PO-001") == ["one"]
    assert chosen.points("cell", "po_y", "PO-009") == []


def test_last_failed_selects_points() -> None:
    chosen = Filter(keys=frozenset({"p/s/plain-4096/4096/native/po_x.one"}))
    assert chosen.points("p/s/plain-4096/4096/native", "po_x", "PO-001") == ["one"]
    assert chosen.points("p/s/plain-4096/4096/native", "po_y", "PO-001") == []
    assert chosen.points("p/s/plain-4096/4096/emulated", "po_x", "PO-001") == []


def test_binfmt_misc_hides_an_emulator(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00\xb7\x00")
    registered = tmp_path / "binfmt"
    registered.mkdir()
    entry = registered / "emulator"
    text = "enabled\ninterpreter /usr/bin/emulator\nflags: \noffset 0\nmagic 7f454c46020101000000000000000000{}\n"
    entry.write_text(text.format("0200b700"))
    assert native.hidden_emulator(program, registered) == "/usr/bin/emulator"
    entry.write_text(text.format("02000000"))
    assert native.hidden_emulator(program, registered) == ""
    entry.write_text(text.format("0200b700").replace("enabled", "disabled"))
    assert native.hidden_emulator(program, registered) == ""


def test_a_program_that_does_not_run_is_not_native(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF" + bytes(60))
    program.chmod(0o755)
    assert "does not run it" in native.runs(program)


def test_a_program_of_allocators_that_does_not_build_is_an_error_with_the_compilers_words(
    subject: Subject, port: Port
) -> None:
    built = build.Built(ROOT, alloc_errors={port.name: "port.c:1: error: no such register"})
    made = planned(subject, port, Filter(), built)
    alloc = [r for r in made.results if r.variant == ALLOC]
    assert [(r.check, r.verdict, r.log) for r in alloc if r.verdict == "ERROR"] == [
        (plan.BUILD, "ERROR", "port.c:1: error: no such register")
    ]
    assert {r.verdict for r in alloc if r.check != plan.BUILD} <= {"NOTRUN", "SKIP"}


def test_what_is_judged_once_says_so_where_it_is_asked_for_elsewhere(
    subject: Subject, port: Port, tmp_path: Path
) -> None:
    once = next(r for r in REQUIREMENTS.values() if r.once and r.program == ALLOC)
    made = planned(subject, port, Filter(os_pages=(16384,), only=(once.id,)), build.Built(tmp_path))
    told = [r for r in made.results if r.message.startswith("judged once, at pages of 4096")]
    assert {(r.requirement, r.os_page, r.verdict) for r in told} == {(once.id, 16384, "SKIP")}
    everything = planned(subject, port, Filter(), build.Built(tmp_path))
    assert not [r for r in everything.results if r.message.startswith("judged once")]
