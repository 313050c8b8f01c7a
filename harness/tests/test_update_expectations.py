"""update-expectations: what fails gets entries, what no longer holds goes, the rest stays as it was written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from gate_cases import HEADER, MACHINE, PORTS, REQUIREMENTS, ROOT, entry, loaded, results, written
from test_verdict import PROFILE, made

from execmem_cts import verdict
from execmem_cts.gate import expectations, update
from execmem_cts.model import Result
from execmem_cts.source import ManifestError

asked: list[str] = []


def ask(requirement: str, failures: Sequence[Result]) -> tuple[str, str]:
    asked.append(requirement)
    assert failures
    return 'it "fails"', "https://example.org/new"


def updated(folder: Path, found: list[Result], *entries: str) -> update.Update:
    """Updates a file, and shows that the results are then as expected and a second update changes nothing."""
    asked.clear()
    path = written(folder, *entries)
    known = expectations.load(path, ROOT, PORTS, REQUIREMENTS)
    done = update.update(path.read_text(), known, found, MACHINE, ask, str(path))
    path.write_text(done.text)
    known = expectations.load(path, ROOT, PORTS, REQUIREMENTS)
    judged = expectations.apply(found, known, MACHINE)
    assert not judged.findings and not judged.stale
    assert not any(r.verdict == "XPASS" or (r.verdict == "FAIL" and not r.flaky) for r in judged.results)
    assert update.update(done.text, known, found, MACHINE, ask, str(path)).text == done.text
    return done


def test_new_failures_get_one_exact_entry(tmp_path: Path) -> None:
    found = [made("FAIL", stub_page=s, os_page=o, point=p) for s in (4096, 16384) for o in (4096, 16384) for p in "ab"]
    done = updated(tmp_path, found)
    (new,) = done.added
    assert (new.narrow, new.stub_pages, new.os_pages) == ((), (4096, 16384), (4096, 16384))
    assert 'reason = "it \\"fails\\""' in done.text and asked == ["PO-001"]


@pytest.mark.parametrize(
    ("other", "narrow"),
    [
        ({"check": "po_y"}, {"check": "po_x"}),
        ({"point": "two"}, {"check": "po_x", "point": "one"}),
        ({"variant": "ibt"}, {"check": "po_x", "point": "one", "variant": "plain"}),
        ({"runner": "native"}, {"check": "po_x", "point": "one", "variant": "plain", "runner": "emulated"}),
    ],
)
def test_an_entry_is_as_narrow_as_it_must_be(tmp_path: Path, other: dict[str, str], narrow: dict[str, str]) -> None:
    done = updated(tmp_path, [made("FAIL"), made("PASS", **other)])
    assert [dict(new.narrow) for new in done.added] == [narrow]


def test_what_no_longer_holds_goes_with_its_comment_and_nothing_else(tmp_path: Path) -> None:
    above = "# why this one is here\n"
    gone = "# of the stale one\n" + entry(port='"q"')
    kept = above + entry() + "# a remark below\n\n# and between\n\n"
    path_text = written(tmp_path, kept, gone).read_text()
    done = updated(tmp_path, results(), kept, gone)
    assert [e.ports for e in done.deleted] == [("q",)] and not done.added and not asked
    assert done.text == path_text.replace(gone, "").rstrip("\n") + "\n"


def test_an_entry_that_holds_in_part_is_narrowed_and_keeps_its_reason(tmp_path: Path) -> None:
    whole = entry(os_page="[4096, 65536]", expires="2027-01-31", emulator='">=7.2, <9"')
    done = updated(tmp_path, results(), whole)
    (new,) = done.added
    assert (new.stub_pages, new.os_pages) == ((16384,), (4096,)) and not asked
    for line in ('reason = "a known one"', "expires = 2027-01-31", 'emulator = ">=7.2, <9"'):
        assert line in done.text


def test_what_is_flaky_or_an_error_gets_no_entry(tmp_path: Path) -> None:
    done = updated(tmp_path, [made("FAIL", flaky=True), made("ERROR", point="two")])
    assert (done.added, done.flaky, done.errors) == ((), 1, 1)


def test_entries_in_another_form_are_left_alone(tmp_path: Path) -> None:
    inline = 'expect_fail = [{ requirement = "PO-001", port = "p", stub_page = 16384, os_page = 4096, reason = "r", '
    inline += 'link = "https://e.org" }]\n'
    with pytest.raises(ManifestError, match="not written as"):
        update.update("schema = 1\n" + inline, loaded(tmp_path, inline), results(), MACHINE, ask, "known.toml")


def test_the_head_of_a_new_file_is_valid(tmp_path: Path) -> None:
    path = tmp_path / "new.toml"
    done = update.update(update.HEAD, [], results(), MACHINE, ask, str(path))
    update.write(path, done.text)
    known = expectations.load(path, ROOT, PORTS, REQUIREMENTS)
    assert verdict.overall(expectations.apply(results(), known, MACHINE).results, PROFILE).word == "as expected"
    assert HEADER and not path.with_name("new.toml.part").exists()
