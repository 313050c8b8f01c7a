"""The overall verdict: one function, used by the console, the JSON lines, JUnit and the Markdown summary.

Exit codes: 0 conformant and as expected; 1 regression or unexpected pass; 2 usage or manifest (never decided here);
3 infrastructure; 4 unverified.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence

from .model import Result, Verdict
from .profile import Profile

CONFORMANT, REGRESSION, USAGE, INFRASTRUCTURE, UNVERIFIED = range(5)
RAN = frozenset({"PASS", "FAIL", "XFAIL", "XPASS", "NA", "EMU"})
RED = frozenset({"FAIL", "ERROR", "XPASS"})


@dataclasses.dataclass(frozen=True)
class Finding:
    """What is wrong beside the results: an expectation that expired or is stale, a shard or a check that is missing.

    `kind`: one of FINDINGS. `where`: file and line, or what it is about.
    """

    kind: str
    where: str
    message: str
    mend: str

    def __str__(self) -> str:
        return f"{self.where}: {self.kind}: {self.message}; {self.mend}"


# Kind of finding -> what the run is called for it, and its exit status.
FINDINGS = {
    "expired": ("expectation expired", REGRESSION),
    "stale": ("stale expectation", REGRESSION),
    "missing shard": ("missing shard", INFRASTRUCTURE),
    "missing check": ("unverified", UNVERIFIED),
}


@dataclasses.dataclass(frozen=True)
class Overall:
    """`word`: conformant | not conformant | error | unverified | as expected. `exit_status`: what the command ends with."""

    word: str
    exit_status: int
    reason: str
    counts: dict[str, int]
    unverified: int = 0  # required results in EMU, SKIP or NOTRUN
    findings: tuple[Finding, ...] = ()


def overall(results: Sequence[Result], profile: Profile, findings: Sequence[Finding] = (), part: str = "") -> Overall:
    """The verdict over all results, as expectations left them, and what else was found.

    `part`: the shard ("2/4") that these results alone are; "" where they are whole. Every result is one of
    model.Verdict; anything else is an error of the suite.
    """
    counts = Counter(result.verdict for result in results)
    counted = {verdict.value: counts[verdict.value] for verdict in Verdict if counts[verdict.value]}
    open_ = [r for r in results if r.verdict in ("EMU", "SKIP", "NOTRUN") and profile.requires_result(r)]

    def verdict(word: str, status: int, reason: str) -> Overall:
        others = [finding for finding in findings if FINDINGS[finding.kind][0] != word]
        if others:
            reason += f"; besides: {_counted(others)}"
        return Overall(word, status, reason, counted, len(open_), tuple(findings))

    unknown = set(counts) - {v.value for v in Verdict}
    if unknown:
        return verdict("error", INFRASTRUCTURE, f"unknown verdict {sorted(unknown)[0]}")
    if counts["FAIL"]:
        flaky = sum(result.flaky for result in results if result.verdict == "FAIL")
        text = f", {flaky} of them flaky: passed when run again" if flaky else ""
        return verdict("not conformant", REGRESSION, f"{counts['FAIL']} failed{text}")
    if counts["XPASS"]:
        return verdict("not as expected", REGRESSION, f"{counts['XPASS']} passed that were expected to fail")
    for kind, (word, status) in FINDINGS.items():
        alike = [finding for finding in findings if finding.kind == kind]
        if alike and status != UNVERIFIED:
            return verdict(word, status, _counted(alike))
    if counts["ERROR"]:
        return verdict(
            "error", INFRASTRUCTURE, f"{counts['ERROR']} could not be judged: the suite or the emulator broke"
        )
    if part:
        text = f"shard {part}, nothing failed in it; `execmem-cts merge` joins the shards and judges them"
        return verdict("unverified", UNVERIFIED, text)
    if not any(counts[name] for name in RAN):
        return verdict("error", INFRASTRUCTURE, "no check was executed")
    missing = [finding for finding in findings if FINDINGS[finding.kind][1] == UNVERIFIED]
    if missing:
        return verdict("unverified", UNVERIFIED, _counted(missing))
    if open_:
        kinds = Counter(r.verdict for r in open_)
        text = ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items()))
        return verdict("unverified", UNVERIFIED, f"{len(open_)} required results are missing ({text})")
    if not counts["PASS"] and not counts["XFAIL"]:
        return verdict("unverified", UNVERIFIED, "nothing passed: no claim was tested")
    if counts["XFAIL"]:
        return verdict("as expected", CONFORMANT, f"{counts['XFAIL']} known failures: not conformant, no regression")
    return verdict("conformant", CONFORMANT, f"profile {profile.name}")


def _counted(findings: Sequence[Finding]) -> str:
    kinds = Counter(finding.kind for finding in findings)
    names = {
        "expired": "expectations have expired",
        "stale": "expectations match nothing",
        "missing shard": "shards are missing",
        "missing check": "checks of the must-pass list have no result",
    }
    return ", ".join(f"{number} {names[kind]}" for kind, number in kinds.items())
