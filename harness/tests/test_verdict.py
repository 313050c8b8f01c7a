"""The one function that decides: its truth table, and the profile that it asks."""

from __future__ import annotations

from pathlib import Path

import pytest

from execmem_cts import profile, requirements, verdict
from execmem_cts.model import Result, Unshown
from execmem_cts.source import ManifestError

ROOT = Path(__file__).resolve().parents[2]
MUST = profile.Require(("PO-*",), ("MUST",), "*")
PROFILE = profile.Profile("test", (MUST,), (), {"PO-001": "MUST", "PO-099": "SHOULD"})


def made(kind: str, requirement: str = "PO-001", **more: object) -> Result:
    given: dict[str, object] = {
        "requirement": requirement,
        "check": "po_x",
        "point": "one",
        "port": "p",
        "subject": "s",
        "variant": "plain",
        "stub_page": 16384,
        "os_page": 4096,
        "runner": "emulated",
        "verdict": kind,
    }
    return Result(**{**given, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kinds", "word", "status"),
    [
        ("PASS", "conformant", 0),
        ("PASS NA", "conformant", 0),
        ("PASS FAIL", "not conformant", 1),
        ("FAIL ERROR EMU", "not conformant", 1),
        ("PASS XPASS", "not as expected", 1),
        ("XPASS ERROR", "not as expected", 1),
        ("PASS XFAIL", "as expected", 0),
        ("PASS ERROR", "error", 3),
        ("PASS ERROR EMU", "error", 3),
        ("", "error", 3),
        ("SKIP", "error", 3),
        ("SKIP NOTRUN", "error", 3),
        ("PASS EMU", "unverified", 4),
        ("PASS SKIP", "unverified", 4),
        ("PASS NOTRUN", "unverified", 4),
        ("XFAIL SKIP", "unverified", 4),
        ("EMU", "unverified", 4),
        ("NA", "unverified", 4),
        ("PASS pass", "error", 3),
    ],
)
def test_truth_table(kinds: str, word: str, status: int) -> None:
    overall = verdict.overall([made(kind) for kind in kinds.split()], PROFILE)
    assert (overall.word, overall.exit_status) == (word, status)


@pytest.mark.parametrize("kind", ["EMU", "SKIP", "NOTRUN"])
def test_what_is_not_required_may_stay_open(kind: str) -> None:
    assert verdict.overall([made("PASS"), made(kind, "PO-099")], PROFILE).exit_status == 0
    shown = profile.Profile("t", (MUST,), (Unshown("PO-001", "native", "why"),), PROFILE.levels)
    assert verdict.overall([made("PASS"), made(kind, runner="native")], shown).exit_status == 0
    assert verdict.overall([made("PASS"), made(kind)], shown).exit_status == 4


def test_unshown_excuses_no_failure() -> None:
    shown = profile.Profile("t", (MUST,), (Unshown("PO-001", "*", "why"),), PROFILE.levels)
    assert verdict.overall([made("PASS"), made("FAIL")], shown).exit_status == 1


def test_unshown_is_for_its_port_and_page() -> None:
    shown = profile.Profile("t", (MUST,), (Unshown("PO-*", "emulated", "why", "p", 65536),), {})
    assert not shown.requires("PO-001", "p", 65536, "emulated")
    assert shown.requires("PO-001", "p", 4096, "emulated")
    assert shown.requires("PO-001", "q", 65536, "emulated")
    assert shown.requires("PO-001", "p", 65536, "native")


@pytest.mark.parametrize(
    ("kinds", "found", "word", "status"),
    [
        ("PASS", "stale", "stale expectation", 1),
        ("PASS", "expired", "expectation expired", 1),
        ("PASS", "missing shard", "missing shard", 3),
        ("PASS ERROR", "stale", "stale expectation", 1),
        ("FAIL", "stale", "not conformant", 1),
        ("PASS XPASS", "expired", "not as expected", 1),
        ("", "missing shard", "missing shard", 3),
    ],
)
def test_what_is_found_beside_the_results_is_red(kinds: str, found: str, word: str, status: int) -> None:
    finding = verdict.Finding(found, "known.toml:3", "m", "d")
    overall = verdict.overall([made(kind) for kind in kinds.split()], PROFILE, [finding])
    assert (overall.word, overall.exit_status) == (word, status)
    assert overall.findings == (finding,)
    assert "besides" in overall.reason or overall.word == verdict.FINDINGS[found][0]


@pytest.mark.parametrize(
    ("kinds", "word", "status"),
    [("PASS", "unverified", 4), ("", "unverified", 4), ("FAIL", "not conformant", 1), ("ERROR", "error", 3)],
)
def test_a_shard_alone_is_never_conformant(kinds: str, word: str, status: int) -> None:
    overall = verdict.overall([made(kind) for kind in kinds.split()], PROFILE, part="2/4")
    assert (overall.word, overall.exit_status) == (word, status)
    assert status != 4 or "shard 2/4" in overall.reason


def test_a_flaky_failure_is_red_and_named() -> None:
    overall = verdict.overall([made("PASS"), made("FAIL", flaky=True)], PROFILE)
    assert overall.exit_status == 1 and "1 of them flaky" in overall.reason


def test_the_profiles_of_the_tree_load() -> None:
    known = requirements.load(ROOT)
    paths = list((ROOT / "conformance" / "profiles").glob("*.toml"))
    assert paths
    for path in paths:
        assert profile.load(path, ROOT, known).require


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("schema = 1\n", "require: is missing"),
        ('schema = 1\n[[require]]\nrequirements = ["ZZ-*"]\n', "'ZZ-\\*' matches no requirement"),
        ('schema = 1\n[[require]]\nrequirements = ["PO-*"]\nrunner = "real"\n', "found 'real'"),
        (
            'schema = 1\n[[require]]\nrequirements = ["PO-*"]\n[[unshown]]\nrequirement = "PO-*"\nrunner = "*"\n',
            "reason: is missing",
        ),
        ('schema = 3\n[[require]]\nrequirements = ["PO-*"]\n', "use a newer execmem-cts"),
        ('schema = 1\nwhatever = 1\n[[require]]\nrequirements = ["PO-*"]\n', "unknown key 'whatever'"),
    ],
)
def test_a_mistake_in_a_profile_is_named(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "profile.toml"
    path.write_text(text)
    with pytest.raises(ManifestError, match=expected):
        profile.load(path, ROOT, requirements.load(ROOT))


def test_lint_goes_both_ways() -> None:
    one = requirements.Requirement("PO-001", "MUST", "0", "t", "s", ("po_a",), "m")
    two = requirements.Requirement("PO-002", "MUST", "0", "t", "s", ("po_b",), "m")
    known = {"PO-001": one, "PO-002": two}
    assert requirements.lint(known, {"po_a": "PO-001", "po_b": "PO-002"}) == []
    assert "no check po_b" in requirements.lint(known, {"po_a": "PO-001"})[0]
    assert any(
        "does not list it" in p
        for p in requirements.lint(known, {"po_a": "PO-001", "po_b": "PO-002", "po_c": "PO-001"})
    )
    assert any("is no requirement" in p for p in requirements.lint(known, {"po_a": "PO-001", "po_b": "PO-009"}))
    assert any("itself names" in p for p in requirements.lint(known, {"po_a": "PO-002", "po_b": "PO-002"}))
