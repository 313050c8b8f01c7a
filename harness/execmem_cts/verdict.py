"""The overall verdict: one function, used by the console, the JSON lines, JUnit and the Markdown summary.

Exit codes: 0 conformant and as expected; 1 regression or unexpected pass; 2 usage or manifest (never decided here);
3 infrastructure; 4 unverified.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from .model import Result, Verdict
from .profile import Profile
from .source import Source

CONFORMANT, REGRESSION, USAGE, INFRASTRUCTURE, UNVERIFIED = range(5)
RAN = frozenset({"PASS", "FAIL", "XFAIL", "XPASS", "NA", "EMU"})
RED = frozenset({"FAIL", "ERROR", "XPASS"})


@dataclasses.dataclass(frozen=True)
class Expectation:
    """A known failure: results whose key matches the glob are expected to FAIL."""

    key: str
    reason: str


@dataclasses.dataclass(frozen=True)
class Overall:
    """`word`: conformant | not conformant | error | unverified | as expected. `exit_status`: what the command ends with."""

    word: str
    exit_status: int
    reason: str
    counts: dict[str, int]
    unverified: int = 0  # required results in EMU, SKIP or NOTRUN


def load_expectations(path: Path | None, root: Path) -> list[Expectation]:
    """[[expect_fail]] key (glob of a result's key), reason. Raises ManifestError."""
    if path is None:
        return []
    source = Source(path, root)
    expectations = []
    for index, entry in enumerate(source.data.get("expect_fail", [])):
        for key in ("key", "reason"):
            if not entry.get(key):
                raise source.error(["expect_fail", index, key], "is missing", "name the result, and why it fails")
        expectations.append(Expectation(entry["key"], entry["reason"]))
    return expectations


def apply_expectations(results: Sequence[Result], expectations: Sequence[Expectation]) -> list[Result]:
    """Results with FAIL turned to XFAIL, and PASS to XPASS, where a failure was expected."""
    turned = {Verdict.FAIL.value: Verdict.XFAIL.value, Verdict.PASS.value: Verdict.XPASS.value}
    applied = []
    for result in results:
        expected = next((e for e in expectations if fnmatchcase(result.key, e.key)), None)
        if expected is not None and result.verdict in turned:
            message = f"{result.message} [expected to fail: {expected.reason}]".strip()
            result = dataclasses.replace(result, verdict=turned[result.verdict], message=message)
        applied.append(result)
    return applied


def overall(results: Sequence[Result], profile: Profile, expectations: Sequence[Expectation] = ()) -> Overall:
    """The verdict over all results. Every result is one of model.Verdict; anything else is an error of the suite."""
    results = apply_expectations(results, expectations)
    counts = Counter(result.verdict for result in results)
    counted = {verdict.value: counts[verdict.value] for verdict in Verdict if counts[verdict.value]}
    open_ = [r for r in results if r.verdict in ("EMU", "SKIP", "NOTRUN") and profile.requires_result(r)]

    def verdict(word: str, status: int, reason: str) -> Overall:
        return Overall(word, status, reason, counted, len(open_))

    unknown = set(counts) - {v.value for v in Verdict}
    if unknown:
        return verdict("error", INFRASTRUCTURE, f"unknown verdict {sorted(unknown)[0]}")
    if counts["FAIL"]:
        return verdict("not conformant", REGRESSION, f"{counts['FAIL']} failed")
    if counts["XPASS"]:
        return verdict("not as expected", REGRESSION, f"{counts['XPASS']} passed that were expected to fail")
    if counts["ERROR"]:
        return verdict(
            "error", INFRASTRUCTURE, f"{counts['ERROR']} could not be judged: the suite or the emulator broke"
        )
    if not any(counts[name] for name in RAN):
        return verdict("error", INFRASTRUCTURE, "no check was executed")
    if open_:
        kinds = Counter(r.verdict for r in open_)
        text = ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items()))
        return verdict("unverified", UNVERIFIED, f"{len(open_)} required results are missing ({text})")
    if not counts["PASS"] and not counts["XFAIL"]:
        return verdict("unverified", UNVERIFIED, "nothing passed: no claim was tested")
    if counts["XFAIL"]:
        return verdict("as expected", CONFORMANT, f"{counts['XFAIL']} known failures: not conformant, no regression")
    return verdict("conformant", CONFORMANT, f"profile {profile.name}")
