"""The audit's model: each rule speaks where it must, is silent where it must, and is needed: a mutation of it is found."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import pytest
import audit_cases_mappings
import audit_cases_shared
from audit_cases import FILE, MEMFD, Case, case, events

from execmem_cts.audit import aliases, files, kinds, memory, model, partial, space

ROOT = Path(__file__).resolve().parents[2]
CASES = (*audit_cases_mappings.CASES, *audit_cases_shared.CASES)
BY_NAME = {found.name: found for found in CASES}


def modelled(found: Case, made: Any = None) -> model.Model:
    one: model.Model = (made or model.Model)(4096)
    for event in events(found):
        one.feed(event)
    one.finish()
    return one


def right(found: Case, made: Any = None) -> bool:
    one = modelled(found, made)
    return sorted(f.kind for f in one.findings) == sorted(found.kinds) and bool(one.incomplete) == found.incomplete


def test_names_are_not_used_twice() -> None:
    assert len(BY_NAME) == len(CASES)


@pytest.mark.parametrize("found", CASES, ids=lambda found: found.name)
def test_case(found: Case) -> None:
    one = modelled(found)
    assert sorted(f.kind for f in one.findings) == sorted(found.kinds), one.findings
    assert bool(one.incomplete) == found.incomplete, one.incomplete
    assert one.root_status == (0 if found.ended else -11)
    assert not one.tasks


def test_every_kind_that_the_model_finds_has_a_case() -> None:
    shown = {kind for found in CASES for kind in found.kinds}
    assert shown == set(kinds.KINDS) - {"rwx-image"}


def test_a_finding_says_who_when_where_and_what_came_before() -> None:
    (found,) = modelled(BY_NAME["two threads share a space"]).findings
    assert (found.step.process, found.step.thread) == (100, 101)
    assert found.step.text == "mprotect(0x10000, 4096, PROT_READ|PROT_EXEC) = 0"
    assert found.step.time == pytest.approx(0.003, abs=1e-6)
    assert (found.place.start, found.place.end) == (0x10000, 0x11000)
    assert found.place.origin is not None and found.place.origin.thread == 100
    assert found.place.origin.text.startswith("mmap(NULL, 4096")
    (later,) = modelled(BY_NAME["w then r then x"]).findings
    assert (later.place.start, later.place.end) == (0x11000, 0x12000)
    assert [step.text for step in later.place.history] == ["mprotect(0x10000, 8192, PROT_READ) = 0"]


def test_an_alias_says_how_long_it_was_held() -> None:
    lines = [*BY_NAME["alias"].lines[:3], "brk(NULL) = 0x90000", "getpid() = 100", "munmap(0x10000, 4096) = 0"]
    (found,) = modelled(case("longer", lines)).findings
    assert found.calls == 2 and found.seconds == pytest.approx(0.003, abs=1e-6)
    assert found.place.start == 0x10000 and found.other is not None and found.other.start == 0x20000
    assert found.until == "ended by munmap(0x10000, 4096) = 0"
    assert "from 0x0 to 0x1000" in found.detail


def test_rwx_under_a_protection_key_says_so() -> None:
    (found,) = modelled(BY_NAME["rwx under a protection key"]).findings
    assert "protection key 1" in found.detail


def test_lengths_and_offsets_can_be_held_against_a_larger_page() -> None:
    rx, where = "PROT_READ|PROT_EXEC", "MAP_PRIVATE|MAP_ANONYMOUS, -1, 0"
    lines = [
        f"mmap(NULL, 4096, {rx}, {where}) = 0x10000",
        f"mmap(NULL, 65536, {rx}, {where}) = 0x11000",
        MEMFD,
        f"mmap(NULL, 65536, {rx}, MAP_SHARED, {FILE}, 0x1000) = 0x40000",
    ]
    one = model.Model(4096, judged_by=65536)
    for event in events(case("4 KiB", lines)):
        one.feed(event)
    assert [(f.kind, f.detail) for f in one.findings] == [
        ("sub-page", "mmap with 0x1000, page size 0x10000"),
        ("sub-page", "mmap with 0x1000, page size 0x10000"),
    ]
    assert not one.incomplete and not modelled(case("4 KiB", lines)).findings  # ranges stay those of the kernel


def test_a_program_file_that_exec_names_is_looked_at() -> None:
    one = model.Model(4096, lambda path: [f"{path} has a bad segment"])
    for event in events(case("exec", [])):
        one.feed(event)
    assert [(f.kind, f.detail) for f in one.findings] == [("rwx-image", "./program: ./program has a bad segment")]


def test_findings_beyond_the_room_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "KEEP", 1)
    one = modelled(BY_NAME["each toggle counts"])
    assert len(one.findings) == 1 and one.counts["dropped"] == 1


def test_what_lives_at_the_end_of_a_cut_log_is_ended() -> None:
    one = modelled(case("cut", [MEMFD, *BY_NAME["alias"].lines[1:3]], "view-at-end", ended=False))
    assert [(f.kind, f.until) for f in one.findings] == [("view-at-end", "the audit ended")]
    assert one.root_status is None


# Each rule's line, what becomes of it, and a case that must then come out wrong.
MUTATIONS = [
    (memory, "if bits == RWX and fresh:", "if False:", "mapped rwx"),
    (memory, "if bits == RWX and fresh:", "if bits == RWX:", "made rwx again is nothing new"),
    (memory, "RWX = PROT_WRITE | PROT_EXEC", "RWX = 7", "write and exec without read"),
    (memory, "if piece.written:", "if False:", "w then x"),
    (memory, "if piece.written:", "if True:", "x by mprotect"),
    (memory, "piece.written = piece.written or piece.writable", "piece.written = piece.writable", "w then r then x"),
    (memory, "elif fresh & PROT_EXEC:", "elif fresh & PROT_EXEC and not before:", "w then x"),
    (memory, "elif not mapped_now:", "elif False:", "x by mprotect"),
    (memory, "elif not mapped_now:", "else:", "mapped anew over it"),
    (model, "if event.error or event.result is None:", "if event.result is None:\n            event = replace(event, result=0)\n        if False:", "mprotect that failed"),
    (model, "call.name not in (", "call.name in (", "rwx up to a hole"),
    (memory, "if piece.mapping.origin is None:", "if False:", "exec's own page made executable"),
    (partial, "if piece.start > at or", "if", "rwx up to a hole, with more above it"),
    (memory, "if (pieces or call.number(2) & PROT_EXEC) and", "if", "a hole alone, not to be executed"),
    (partial, 'or (error == "EACCES" and piece.mapping.file is not None)', "", "rwx up to a file that may not be written"),
    (partial, "return start if whole else at", "return at", "no memory to cut one mapping"),
    (partial, "return len(rest) > 1 or", "return", "a file that may not be written, and more behind it"),
    (partial, "return len(rest) > 1 or", "return len(rest) > 0 or", "a file alone that may not be written"),
    (partial, 'or (error == "ENOMEM" and (not pieces or pieces[0].start > start))', "", "a hole alone"),
    (partial, 'if error == "ENOMEM" and below > start:', "if False:", "rwx up to a hole, with more above it"),
    (files, 'self.files.guessed += name.startswith("/memfd:")', "pass", "a memory file opened by its mapping"),
    (memory, "gone = task.space.take(*self._range(call))", "gone = []", "unmapped and mapped again"),
    (memory, "return bits | PROT_EXEC if task", "return bits if task", "read implies exec"),
    (memory, "(PROT_EXEC if flags & SHM_EXEC else 0)", "0", "shared memory segment"),
    (memory, "(0 if flags & SHM_RDONLY else PROT_WRITE)", "PROT_WRITE", "read-only shared memory segment"),
    (memory, "if end > space.heap_end:", "if False:", "heap"),
    (memory, "if file is not None and file.was_written(piece.offset, end):", "if False:", "closed before it is executable"),
    (memory, 'if kind == "published" and self.aliases', 'if False and self.aliases', "alias, view first"),
    (memory, "grave = executable or any(", "grave = False and any(", "executable in parts"),
    (memory, "grave = executable or any(", "grave = True or any(", "data in parts"),
    (memory, "grave = executable or any(", "grave = any(", "taking execution away in parts"),
    (memory, "or _is_view(p)", "", "view in parts"),
    (memory, "return piece.mapping.shared and", "return", "a loader's data beside its code"),
    (memory, "grave = False  # to the end of the file", "pass  # ", "a loader's mapping"),
    (model, "if flags & CLONE_VM:\n", "if False:\n", "what a thread maps is there for all"),
    (model, "if flags & CLONE_VM:\n", "if True:\n", "fork copies"),
    (model, "if flags & CLONE_VM:\n", "if True:\n", "a child's doings are not its parent's"),
    (model, "self.aliases.fork(parent.space, space)", "pass", "an alias that came by fork"),
    (model, "task.space, task.descriptors = space,", "task.descriptors =", "exec forgets what was mapped"),
    (model, "task.descriptors.after_exec()", "task.descriptors", "closed on exec"),
    (memory, "self._catch_up(task, piece)", "pass", "addresses reused before the unmapping has returned"),
    (model, "if not task.applied:", "if True:", "addresses reused before the unmapping has returned"),
    (model, "        self.tasks[to] = task\n", "", "exec by a thread"),
    (memory, "replace(piece, forked=call.number(2) == MADV_DOFORK)", "piece", "not forked"),
    (model, "if call.number(1) & O_ACCMODE and", "if", "its own memory, opened for reading"),
    (memory, "replace(moved[-1], end=old + length)", "moved[-1]", "moved by mremap"),
    (memory, "moved = space.take(old, old + old_length)", "moved = space.within(old, old + old_length)", "what mremap moved away is not there any more"),
    (memory, "if not old_length:  # a second", "if False:  # a second", "shared memory mapped twice by mremap"),
    (aliases, "if p.writable and p.mapping.shared and", "if p.mapping.shared and", "read-only view"),
    (aliases, "if p.writable and p.mapping.shared and", "if p.writable and", "private view"),
    (aliases, "if low < high:", "if True:", "other pages"),
    (aliases, "if mapping in pair and pair not in now", "if False", "alias"),
    (aliases, '"alias" if alias.inherited else "view-at-end"', '"view-at-end"', "an alias that came by fork"),
    (aliases, '"alias" if alias.inherited else "view-at-end"', '"alias"', "view held to the end"),
    (aliases, "if mapping is not view.mapping and mapping is not code.mapping:", "if mapping is not view.mapping:", "alias, view first"),
    (files, "self._set(made, self.files.fresh(name),", "self._set(made, self.files.named(name),", "two memory files of one name"),
    (files, "file = self.files.created(name)", "file = self.files.named(name)", "a new file under an old name"),
    (files, "file, name = source.file, source.name", "file = self.files.named(name)", "opened again through /proc"),
    (files, "self._open[result] = _Open(known.file, known.name, close_on_exec)", "pass", "through a duplicate"),
    (files, "if not o.close_on_exec", "if True", "closed on exec"),
    (files, "self.files.guessed += 1", "pass", "a descriptor that came in unseen"),
    (space, "offset=self.offset + low - self.start", "offset=self.offset", "overlapping pages, cut"),
    (space, "if piece.forked:", "if True:", "not forked"),
    (space, "edges += [p.cut(end, p.end) for p in met[-1:] if p.end > end]", "pass", "the rest of a cut mapping was writable"),
]  # fmt: skip

# For a mutation alone: the second half of a code mapping stays, its first half does not.
CUT = case(
    "overlapping pages, cut",
    [
        MEMFD,
        f"mmap(NULL, 8192, PROT_READ|PROT_EXEC, MAP_SHARED, {FILE}, 0) = 0x20000",
        "munmap(0x20000, 4096) = 0",
        f"mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_SHARED, {FILE}, 0x1000) = 0x10000",
    ],
    "view-at-end",
)


def mutated(module: types.ModuleType, line: str, instead: str) -> Any:
    """The class Model of a copy of the modules with one line changed, and whatever rests on it made anew."""
    order = (files, space, partial, aliases, memory, model)  # each rests on those before it
    made: dict[str, types.ModuleType] = {}
    for part in order:
        text = Path(str(part.__file__)).read_text()
        if part is module:
            assert text.count(line) >= 1, f"{part.__name__} has no line {line!r}"
            text = text.replace(line, instead)
        for name in made:
            text = text.replace(f"from .{name} import", f"from {made[name].__name__} import")
        copy = types.ModuleType(f"execmem_cts_audit_mutated_{part.__name__.rsplit('.', 1)[1]}")
        copy.__dict__["__package__"] = "execmem_cts.audit"
        made[part.__name__.rsplit(".", 1)[1]] = copy
        with pytest.MonkeyPatch.context() as patch:
            import sys

            for one in made.values():
                patch.setitem(sys.modules, one.__name__, one)
            exec(compile(text, f"mutated {part.__file__}", "exec"), copy.__dict__)
    return made["model"].__dict__["Model"]


def test_a_copy_without_a_mutation_is_right() -> None:
    made = mutated(memory, "RWX = ", "RWX = ")
    assert all(right(found, made) for found in (*CASES, CUT)) and right(CUT)


@pytest.mark.parametrize(
    ("module", "line", "instead", "name"), MUTATIONS, ids=[f"{m[3]}-{i}" for i, m in enumerate(MUTATIONS)]
)
def test_a_mutation_is_found(module: types.ModuleType, line: str, instead: str, name: str) -> None:
    found = CUT if name == CUT.name else BY_NAME[name]
    assert right(found)
    assert not right(found, mutated(module, line, instead)), f"{name} comes out right with {instead!r} for {line!r}"
