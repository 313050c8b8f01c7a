"""Must-pass lists and renamed checks: what a release required is not lost, and can still be judged by."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from gate_cases import PORTS, REQUIREMENTS, entry, written
from test_gate import COMMAND, ROOT, one
from test_verdict import PROFILE, made

from execmem_cts import profile, requirements, results, tree, verdict
from execmem_cts.gate import aliases, expectations, judge, mustpass
from execmem_cts.gate.mustpass import Entry
from execmem_cts.source import ManifestError

CHECKS = {"po_a": "PO-001", "po_b": "PO-002"}
A, B = Entry("PO-001", "po_a", "MUST"), Entry("PO-002", "po_b", "MUST")
RENAMED = '[[renamed]]\nold = "{}"\nnew = "{}"\nsince = "0.2.0"\n'


def renamed(folder: Path, *pairs: tuple[str, str], text: str = "schema = 1\n") -> dict[str, str]:
    (folder / "conformance").mkdir(exist_ok=True)
    (folder / aliases.FILE).write_text(text + "".join(RENAMED.format(*pair) for pair in pairs))
    return aliases.load(folder, CHECKS)


# ---- Renamed checks ----


def test_an_old_name_leads_to_the_one_of_today(tmp_path: Path) -> None:
    assert renamed(tmp_path, ("po_older", "po_old"), ("po_old", "po_a")) == {"po_older": "po_a", "po_old": "po_a"}
    known = {"po_old": "po_a"}
    assert aliases.today(["po_old", "po_old.x", "po_b.y", "PO-001"], known) == ("po_a", "po_a.x", "po_b.y", "PO-001")


@pytest.mark.parametrize(
    ("pairs", "text", "said"),
    [
        ([("po_a", "po_b")], "schema = 1\n", "renamed.*po_a' is a check today"),
        ([("po_old", "po_c")], "schema = 1\n", "po_c' is no check"),
        ([("po_old", "po_a"), ("po_old", "po_b")], "schema = 1\n", "there twice"),
        ([("po_x", "po_y"), ("po_y", "po_x")], "schema = 1\n", "is no check"),
        ([], "schema = 2\n", "expected 1"),
        ([], "schema = 1\nother = 1\n", "unknown key 'other'"),
        ([], 'schema = 1\n[[renamed]]\nold = "po_old"\n', "expected old, new and since"),
    ],
)
def test_a_renaming_that_leads_nowhere_is_told(
    tmp_path: Path, pairs: list[tuple[str, str]], text: str, said: str
) -> None:
    with pytest.raises(ManifestError, match=said):
        renamed(tmp_path, *pairs, text=text)


def test_an_expectation_may_use_the_old_name(tmp_path: Path) -> None:
    path = written(tmp_path, entry(check='"po_old"'))
    (known,) = expectations.load(path, ROOT, PORTS, REQUIREMENTS, {"po_old": "po_new"})
    assert dict(known.narrow)["check"] == "po_new"


def test_the_trees_own_renamings_lead_somewhere() -> None:
    aliases.load(ROOT, tree.checks_of(tree.load_tree(ROOT, "conform")))


# ---- Lists ----


def test_a_list_is_what_the_profile_requires() -> None:
    known = requirements.load(ROOT)
    chosen = profile.load(profile.profile_path(ROOT, "conform"), ROOT, known)
    entries = mustpass.wanted(known, chosen)
    assert entries and {entry.level for entry in entries} == {"MUST"}
    musts = {check for one in known.values() if one.level == "MUST" for check in one.checks}
    assert {entry.check for entry in entries} == musts


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    path = mustpass.path_of(tmp_path, "1.2.3", "test")
    path.parent.mkdir(parents=True)
    path.write_text(mustpass.text([A, B], PROFILE))
    assert mustpass.read(tmp_path, "1.2.3", "test") == [A, B]
    mustpass.path_of(tmp_path, "1.10.0", "test").parent.mkdir()
    mustpass.path_of(tmp_path, "1.10.0", "test").write_text("# nothing\n")
    assert mustpass.versions(tmp_path, "test") == ["1.2.3", "1.10.0"]
    with pytest.raises(ManifestError, match="names no check"):
        mustpass.read(tmp_path, "1.10.0", "test")
    with pytest.raises(ManifestError, match="there are those of 1.2.3, 1.10.0"):
        mustpass.read(tmp_path, "2.0.0", "test")
    path.write_text("PO-001 po_a\n")
    with pytest.raises(ManifestError, match=":1: expected REQUIREMENT LEVEL CHECK"):
        mustpass.read(tmp_path, "1.2.3", "test")


def test_what_changed_since_a_release() -> None:
    old, gone = Entry("PO-001", "po_old", "MUST"), Entry("PO-003", "po_gone", "MUST")
    moved = Entry("PO-002", "po_b", "SHOULD")
    found = mustpass.since([old, gone, moved], [A, B, Entry("PO-001", "po_c", "MUST")], CHECKS, {"po_old": "po_a"})
    assert [entry.check for entry in found.added] == ["po_c"]
    assert found.renamed == ((old, "po_a"),) and found.lost == (gone,) and found.moved == ((moved, B),)
    text = mustpass.notes(found, "0.0.1", requirements.load(ROOT))
    assert "- `po_old` is `po_a`" in text and "- `po_gone` (PO-003)" in text and "(`po_c`)" in text
    assert "`po_b`: PO-002 (SHOULD) is PO-002 (MUST)" in text
    assert "The same checks." in mustpass.notes(mustpass.since([A], [A], CHECKS, {}), "0", {})


def test_a_release_leaves_later_checks_out_and_misses_its_own() -> None:
    found = [made("PASS", check="po_a"), made("FAIL", check="po_b"), made("ERROR", check="build")]
    kept, findings, note = mustpass.restrict(found, [A], CHECKS, {}, "0.1.0")
    assert [result.check for result in kept] == ["po_a", "build"] and not findings
    assert note.endswith("1 results of 1 other checks left out")
    kept, findings, _ = mustpass.restrict(
        found[1:2], [Entry("PO-001", "po_old", "MUST"), B], CHECKS, {"po_old": "po_a"}, "0"
    )
    assert [finding.kind for finding in findings] == ["missing check"] and "po_a has no result" in findings[0].message


@pytest.mark.parametrize(
    ("kind", "word", "status"), [("PASS", "unverified", 4), ("ERROR", "error", 3), ("FAIL", "not conformant", 1)]
)
def test_a_check_that_is_missing_is_not_shown(kind: str, word: str, status: int) -> None:
    finding = verdict.Finding("missing check", "conformance/mustpass/0", "po_a has no result", "run it")
    done = judge.judge({}, [made(kind)], {}, PROFILE, findings=[finding])
    assert (done.overall.word, done.overall.exit_status) == (word, status)


def test_the_gate_judges_by_a_release(tmp_path: Path) -> None:
    version = mustpass.versions(ROOT, "conform")[0]
    known = mustpass.read(ROOT, version, "conform")
    found = [one("PASS", check=entry.check) for entry in known]
    found.append(one("FAIL", check="not_required"))
    chosen = tree.load_tree(ROOT, "conform")
    results.write_all(tmp_path, {"execmem_cts": "0", "format": results.FORMAT}, found, chosen.profile,
                      verdict.overall(found, chosen.profile))  # fmt: skip

    def gate(*argv: str) -> subprocess.CompletedProcess[str]:
        whole = [str(COMMAND), "gate", "--quiet", "--results", str(tmp_path), *argv]
        return subprocess.run(whole, capture_output=True, text=True, timeout=120, check=False)

    assert gate("--mustpass", version).returncode == 1  # it is no check of the suite: nothing says that it may fail
    results.write_all(tmp_path, {"execmem_cts": "0", "format": results.FORMAT}, found[1:-1], chosen.profile,
                      verdict.overall(found[1:-1], chosen.profile))  # fmt: skip
    done = gate("--mustpass", version)
    assert done.returncode == 4 and f"{known[0].check} has no result" in done.stdout, done.stdout + done.stderr
    assert gate().returncode == 0
    assert gate("--mustpass", "9.9").returncode == 2
