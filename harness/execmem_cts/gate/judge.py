"""One way from results to a verdict, whoever asks: `run`, `gate`, `report` or `merge`."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..model import Port, Result
from ..profile import Profile
from ..verdict import Finding, Overall, overall
from .expectations import Expectation, Judged, Machine, apply


@dataclass(frozen=True)
class Judgement:
    """Results as expectations left them, the verdict on them, and notes that change nothing."""

    judged: Judged
    overall: Overall

    @property
    def results(self) -> list[Result]:
        return self.judged.results


def machine(header: Mapping[str, Any], ports: Mapping[str, Port]) -> Machine:
    return Machine.of(header, {name: port.emulator_argv[0] for name, port in ports.items()})


def judge(
    header: Mapping[str, Any],
    results: Sequence[Result],
    ports: Mapping[str, Port],
    profile: Profile,
    expectations: Sequence[Expectation] = (),
    today: datetime.date | None = None,
    whole: bool = False,
    findings: Sequence[Finding] = (),
) -> Judgement:
    """`whole`: the results ought to be a whole run, so that a single shard of one is a finding. `findings`: others already made."""
    shard = str(header.get("shard", ""))
    judged = apply(results, expectations, machine(header, ports), today)
    judged.findings += findings
    if shard:  # what an entry names may be in another shard
        judged.findings = [finding for finding in judged.findings if finding.kind != "stale"]
    if shard and whole:
        number, _, count = shard.partition("/")
        message = f"these results are shard {number} of {count} alone"
        judged.findings.append(
            Finding(
                "missing shard", "results", message, "join the shards with `execmem-cts merge DIR...` and gate that"
            )
        )
    return Judgement(judged, overall(judged.results, profile, judged.findings, "" if whole else shard))


def results_file(path: Path, name: str) -> Path:
    """A results file, given itself or its folder."""
    return path / name if path.is_dir() or not path.suffix else path
