"""Shards: which part of a plan is run here.

A cell (port, subject, variant and stub page, OS page, runner) belongs to a shard by a hash of its name, so that the
order of things, the machine and other cells make no difference, and checks that share a process stay together.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..model import Result
from ..source import ManifestError

if TYPE_CHECKING:
    from ..plan import Plan

PLAN = "plan.txt"  # beside the results: what was planned, over all shards
# Variables of (number, count, lowest number): GitLab `parallel`, our own for Kubernetes indexed jobs (which say no
# count), and Slurm arrays.
ENVIRONMENT = {
    "GitLab": ("CI_NODE_INDEX", "CI_NODE_TOTAL", "1"),
    "Kubernetes": ("JOB_COMPLETION_INDEX", "EXECMEM_SHARDS", "0"),
    "Slurm": ("SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN"),
}


@dataclass(frozen=True)
class Shard:
    """Part `number` of `count`, from 1."""

    number: int
    count: int

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def has(self, cell: str) -> bool:
        digest = hashlib.sha256(cell.encode()).digest()
        return int.from_bytes(digest[:8], "big") % self.count == self.number - 1


def parse(text: str) -> Shard:
    """ "2/4". Raises ManifestError."""
    match = re.fullmatch(r"(\d+)/(\d+)", text.strip())
    if match is None:
        raise ManifestError(f"--shard {text}: expected NUMBER/COUNT; write for instance --shard 2/4, or --shard auto")
    number, count = int(match[1]), int(match[2])
    if not 1 <= number <= count:
        raise ManifestError(f"--shard {text}: expected a number from 1 to {count}; shards are counted from 1")
    return Shard(number, count)


def from_environment(environment: Mapping[str, str]) -> Shard:
    """What the engine that started this process says. Raises ManifestError."""
    found: dict[str, Shard] = {}
    for engine, (index, total, lowest) in ENVIRONMENT.items():
        if index not in environment:
            continue
        if total not in environment:
            mend = "`parallel:` in the job sets it" if engine == "GitLab" else f"set {total} to the number of shards"
            raise ManifestError(f"--shard auto: {engine} gives {index}, and {total} is missing; {mend}")
        first = environment.get(lowest, "0") if lowest.startswith("SLURM") else lowest
        try:
            number, count = int(environment[index]) - int(first) + 1, int(environment[total])
        except ValueError:
            said = f"{index}={environment[index]}, {total}={environment[total]}"
            raise ManifestError(f"--shard auto: {said} are no numbers; give --shard NUMBER/COUNT") from None
        if not 1 <= number <= count:
            said = f"{index}={environment[index]}, {total}={environment[total]}"
            more = ""
            if engine == "Slurm":
                more = f", {lowest}={first}"
            mend = "an array needs indices without gaps: --array=1-4" if engine == "Slurm" else "mend the two"
            raise ManifestError(f"--shard auto: {said}{more} name shard {number} of {count}; {mend}")
        found[engine] = Shard(number, count)
    if not found:
        names = ", ".join(index for index, _, _ in ENVIRONMENT.values())
        raise ManifestError(f"--shard auto: none of {names} is set; give --shard NUMBER/COUNT")
    if len(set(found.values())) > 1:
        said = ", ".join(f"{engine} {shard}" for engine, shard in found.items())
        raise ManifestError(f"--shard auto: the environment names several shards ({said}); give --shard NUMBER/COUNT")
    return next(iter(found.values()))


def wanted(text: str | None, environment: Mapping[str, str]) -> Shard | None:
    """The value of --shard: NUMBER/COUNT, auto, or none at all. Raises ManifestError."""
    if text is None:
        return None
    return from_environment(environment) if text == "auto" else parse(text)


def cell_of(result: Result) -> str:
    return result.key.rsplit("/", 1)[0]


def plan_text(plan: Plan) -> str:
    """What is planned, a line a check and cell: the same on every machine that plans the same."""
    lines = set()
    for item in plan.items:
        rounds = f" rounds={item.rounds}" if item.rounds > 1 else ""
        lines.add(f"{item.cell}/{item.check}\t{item.requirement}\t{','.join(item.wanted)}{rounds}")
    for result in plan.results:
        lines.add(f"{cell_of(result)}/{result.check}\t{result.requirement}\t{result.verdict} {result.point}")
    return "".join(f"{line}\n" for line in sorted(lines))


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def keep(plan: Plan, shard: Shard) -> None:
    """Leaves in the plan what belongs to the shard."""
    plan.items = [item for item in plan.items if shard.has(item.cell)]
    plan.results = [result for result in plan.results if shard.has(cell_of(result))]


def without(argv: Sequence[str], options: Sequence[str] = ("--shard", "--results", "--jobs")) -> list[str]:
    """A command line without options that say where and how fast, not what: all shards of a run have the same."""
    kept: list[str] = []
    skip = False
    for word in argv:
        if skip:
            skip = False
        elif word in options:
            skip = True
        elif not word.startswith(tuple(f"{option}=" for option in options)):
            kept.append(word)
    return kept
