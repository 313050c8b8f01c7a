"""Expectations: what the file may say, and what it makes of results. Each way to be wrong has its own words."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest
from gate_cases import MACHINE, entry, loaded, results
from test_verdict import PROFILE, made

from execmem_cts import verdict
from execmem_cts.gate import expectations, version
from execmem_cts.gate.expectations import Judged, Machine
from execmem_cts.model import Result
from execmem_cts.source import ManifestError

DAY = datetime.date(2026, 6, 1)


def judged(folder: Path, found: list[Result], *entries: str) -> tuple[Judged, verdict.Overall]:
    done = expectations.apply(found, loaded(folder, *entries), MACHINE, DAY)
    return done, verdict.overall(done.results, PROFILE, done.findings)


def test_a_known_failure_is_as_expected(tmp_path: Path) -> None:
    done, overall = judged(tmp_path, results(), entry())
    assert (overall.word, overall.exit_status, overall.counts["XFAIL"]) == ("as expected", 0, 2)
    assert not done.findings and not done.stale
    failed = [r for r in done.results if r.verdict == "XFAIL"]
    assert failed[0].expected.startswith("a known one (https://example.org/1), ") and failed[0].expected.endswith(":2")


def test_another_failure_is_a_regression(tmp_path: Path) -> None:
    _, overall = judged(tmp_path, [*results(), made("FAIL", os_page=65536)], entry())
    assert (overall.word, overall.exit_status) == ("not conformant", 1)


def test_a_pass_beside_the_known_failure_is_unexpected(tmp_path: Path) -> None:
    done, overall = judged(tmp_path, [*results(), made("PASS", point="three")], entry())
    assert (overall.word, overall.exit_status) == ("not as expected", 1)
    assert 0 in done.stale
    _, overall = judged(tmp_path, [*results(), made("PASS", check="po_y")], entry(check='"po_x"'))
    assert overall.word == "as expected"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"os_page": "16384"}, "matches no result: PO-001 on p, stub page 16K, OS page 16K: a known one"),
        ({"os_page": "[4096, 16384]"}, "matches no result: PO-001 on p, stub page 16K, OS page 16K"),
        ({"check": '"po_renamed"'}, "matches no result"),
        ({"variant": '"ibt"'}, "matches no result"),
        ({"runner": '"native"'}, "matches no result"),
    ],
)
def test_an_entry_that_matches_nothing_is_stale(tmp_path: Path, more: dict[str, str], said: str) -> None:
    found = results() if "os_page" in more else [*results(), made("FAIL", "PO-002")]
    done, overall = judged(tmp_path, found, entry(**more))
    (finding,) = done.findings
    assert (finding.kind, finding.where) == ("stale", f"{tmp_path}/known.toml:2")
    assert said in finding.message and "update-expectations" in finding.mend
    assert overall.exit_status == 1


def test_two_entries_for_one_failure(tmp_path: Path) -> None:
    done, _ = judged(tmp_path, results(), entry(), entry(check='"po_x"'))
    assert "an entry before it" in done.findings[0].message and done.findings[0].where.endswith(":10")


def test_what_cannot_fail_here_is_stale_and_what_was_not_run_is_open(tmp_path: Path) -> None:
    done, _ = judged(tmp_path, [made("PASS", point="x", check="po_y", port="q"), made("EMU")], entry())
    assert "cannot fail here (EMU)" in done.findings[0].message
    for kind in ("SKIP", "NOTRUN"):
        done, overall = judged(tmp_path, [made("PASS", port="q"), made(kind, point="*")], entry(point='"one"'))
        assert not done.findings and overall.word == "unverified"


def test_an_expired_entry_is_red_though_it_still_fails(tmp_path: Path) -> None:
    done, overall = judged(tmp_path, results(), entry(expires="2026-05-31"))
    assert (overall.word, overall.exit_status) == ("expectation expired", 1)
    assert "until 2026-05-31, which has passed" in done.findings[0].message
    _, overall = judged(tmp_path, results(), entry(expires="2026-06-01"))
    assert overall.word == "as expected"


def test_neither_flaky_failures_nor_errors_are_covered(tmp_path: Path) -> None:
    found = [made("PASS", port="q"), made("FAIL", flaky=True)]
    done, overall = judged(tmp_path, found, entry())
    assert overall.word == "not conformant" and done.results[1].verdict == "FAIL"
    _, overall = judged(tmp_path, [made("PASS", port="q"), made("ERROR")], entry())
    assert (overall.word, overall.exit_status) == ("error", 3)


@pytest.mark.parametrize(
    ("more", "applies"),
    [
        ({"emulator": '">=7.2, <9"'}, True),
        ({"emulator": '">=8"'}, False),
        ({"port": '"q"', "runner": '"native"'}, False),
        ({"port": '"p"', "runner": '"emulated"'}, True),
    ],
)
def test_conditions_that_do_not_hold_leave_results_alone(tmp_path: Path, more: dict[str, str], applies: bool) -> None:
    done, overall = judged(tmp_path, results(), entry(**more))
    assert (overall.word == "as expected") == applies
    assert not done.findings and bool(done.notes) != applies


def test_entries_of_ports_that_were_not_asked_for_are_left_alone(tmp_path: Path) -> None:
    here = Machine(frozenset({"q"}), {}, {})
    done = expectations.apply([made("PASS", port="q")], loaded(tmp_path, entry()), here, DAY)
    assert not done.findings and "1 expected failures" in done.notes[0]


def test_stored_verdicts_are_judged_anew(tmp_path: Path) -> None:
    once, _ = judged(tmp_path, results(), entry())
    again, overall = judged(tmp_path, once.results)
    assert overall.word == "not conformant" and again.results == results()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"reason": ""}, "expect_fail[0].reason: is missing"),
        ({"reason": '" "'}, "expect_fail[0].reason: expected text"),
        ({"link": ""}, "expect_fail[0].link: is missing"),
        ({"link": '"later"'}, "expect_fail[0].link: expected text that matches ^https?://"),
        ({"requirement": '"PO-*"'}, "no requirement 'PO-*'; `execmem-cts list` shows them; patterns"),
        ({"port": '"x46"'}, "no port 'x46'; there are p, q"),
        ({"port": "[]"}, "expected at least 1 entry"),
        ({"os_page": '"big"'}, "'big' is no size; write 16384 or"),
        ({"os_page": ""}, "expect_fail[0].os_page: is missing"),
        ({"expires": '"2027-01-31"'}, "expected a date"),
        ({"expires": "2027-01-31T00:00:00"}, "expected a date"),
        ({"reason": "2027-01-31"}, "expected string"),
        ({"emulator": '"7.2"'}, "'7.2' is no comparison"),
        ({"runner": '"real"'}, "expected one of"),
        ({"chek": '"po_x"'}, "did you mean 'check'?"),
    ],
)
def test_a_mistake_in_the_file_is_named(tmp_path: Path, more: dict[str, str], said: str) -> None:
    with pytest.raises(ManifestError) as error:
        loaded(tmp_path, entry(**more))
    assert said in str(error.value)
    assert str(error.value).startswith(f"{tmp_path}/known.toml:")


def test_versions() -> None:
    assert version.numbers("qemu-arm version 7.2.22 (Debian 1:7.2+dfsg-7)") == (7, 2, 22)
    assert version.numbers("no version at all") == ()
    for text, holds in {">=7.2": True, "<7.2": False, "==7.2.22": True, "!=7.2.22": False, ">7.2, <=7.3": True}.items():
        assert version.Range.parse(text).holds((7, 2, 22)) == holds, text
    assert version.Range.parse("==7.2").holds((7, 2, 0)) and not version.Range.parse(">0").holds(())
