"""Shards and their merge: the same results as one run's, and each way not to be a whole by its own words."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gate_cases import HEADER
from test_verdict import PROFILE, made

from execmem_cts import results as files
from execmem_cts import verdict
from execmem_cts.gate import merge, shards
from execmem_cts.gate.shards import Shard
from execmem_cts.html import layouts
from execmem_cts.html.layouts import Layout
from execmem_cts.model import Result, Verdict
from execmem_cts.plan import Plan
from execmem_cts.runner import Item
from execmem_cts.source import ManifestError

COUNT = 3


def items() -> list[Item]:
    return [
        Item("PO-001", check, ("one", "two"), port, "s", "plain", stub, os_page, "emulated", ("e",), "build/p", 1, 30.0)
        for port in ("p", "q")
        for stub in (4096, 16384)
        for os_page in (4096, 16384)
        for check in ("po_x", "po_y")
    ]


def plan() -> Plan:
    """Some cells are run, one was left out by a filter."""
    chosen = Plan(items=items())
    chosen.results = [made(Verdict.SKIP.value, check="po_z", point="*", port=port) for port in ("p", "q")]
    return chosen


def played(chosen: Plan) -> list[Result]:
    """What a run of the plan gives: one failure, the rest passes."""
    found = [
        item.result(point, "FAIL" if (item.port, item.stub_page, point) == ("q", 4096, "two") else "PASS")
        for item in chosen.items
        for point in item.points
    ]
    return sorted(chosen.results + found, key=lambda result: result.key)


def stored(folder: Path, header: dict[str, Any], chosen: Plan, planned: str) -> Path:
    found = played(chosen)
    files.write_all(folder, header, found, PROFILE, verdict.overall(found, PROFILE, part=header.get("shard", "")))
    (folder / shards.PLAN).write_text(planned)
    return folder


@pytest.fixture
def parts(tmp_path: Path) -> list[Path]:
    """The folders of all shards of one run."""
    planned = shards.plan_text(plan())
    made_of = []
    for number in range(1, COUNT + 1):
        chosen = plan()
        shards.keep(chosen, Shard(number, COUNT))
        header = {**HEADER, "seed": 1, "plan": shards.digest(planned), "shard": f"{number}/{COUNT}"}
        made_of.append(stored(tmp_path / f"shard-{number}", header, chosen, planned))
    return made_of


def edit(folder: Path, change: Callable[[list[Any]], list[Any]]) -> None:
    """Rewrites the records of a results file, with counts that agree."""
    path = folder / files.JSON_LINES
    records = change([json.loads(line) for line in path.read_text().splitlines()])
    counts: dict[str, int] = {}
    for record in records[1:-1]:
        counts[record["verdict"]] = counts.get(record["verdict"], 0) + 1
    records[-1]["counts"] = counts
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def refused(paths: list[Path]) -> str:
    with pytest.raises(merge.MergeError) as error:
        merge.merge(merge.read_all(paths))
    return str(error.value)


def test_merged_is_what_one_run_writes(parts: list[Path], tmp_path: Path) -> None:
    planned = shards.plan_text(plan())
    whole = stored(tmp_path / "whole", {**HEADER, "seed": 1, "plan": shards.digest(planned)}, plan(), planned)
    header, found, text = merge.merge(merge.read_all(list(reversed(parts))))
    files.write_all(tmp_path / "merged", header, found, PROFILE, verdict.overall(found, PROFILE))
    (tmp_path / "merged" / shards.PLAN).write_text(text)
    names = sorted(path.name for path in whole.iterdir())
    assert len(names) == 6
    for name in names:
        assert (tmp_path / "merged" / name).read_bytes() == (whole / name).read_bytes(), name
    assert sum(bool(files.read(p / files.JSON_LINES)[1]) for p in parts) > 1, "one shard had everything: nothing shown"


def test_each_cell_is_in_one_shard_whatever_the_order() -> None:
    cells = {item.cell for item in items()}
    owners = {cell: [n for n in range(1, 4) if Shard(n, 3).has(cell)] for cell in cells}
    assert all(len(numbers) == 1 for numbers in owners.values())
    assert {numbers[0] for numbers in owners.values()} == {1, 2, 3}
    # The hash is the name's alone: this must not change between releases, or shards of two machines do not fit.
    assert Shard(1, 2).has("p/s/plain-4096/4096/emulated") != Shard(2, 2).has("p/s/plain-4096/4096/emulated")
    backwards = Plan(items=list(reversed(items())))
    assert shards.plan_text(backwards) == shards.plan_text(Plan(items=items()))


def test_a_missing_shard_is_named_with_what_it_had(parts: list[Path]) -> None:
    said = refused([parts[0], parts[2]])
    assert (
        "missing shard 2/3: " in said
        and "of 18 planned checks have no result; run `execmem-cts run --shard 2/3" in said
    )


def test_a_killed_worker_leaves_a_merge_that_says_what_is_missing(parts: list[Path]) -> None:
    (parts[1] / files.JSON_LINES).unlink()
    said = refused(parts)
    assert f"{parts[1]}: no results.jsonl in it: its worker was killed" in said
    assert "missing shard 2/3" in said


def test_a_duplicate_shard(parts: list[Path]) -> None:
    assert f"duplicate shard 1/3: {parts[0]} and {parts[0]}" in refused([parts[0], *parts])


def test_duplicate_results(parts: list[Path]) -> None:
    strange = [json.loads(line) for line in (parts[0] / files.JSON_LINES).read_text().splitlines()][1]
    edit(parts[1], lambda records: [*records[:-1], strange, records[-1]])
    assert "duplicate results, in more than one shard: " in refused(parts)


def test_a_planned_check_without_a_result(parts: list[Path]) -> None:
    full = max(parts, key=lambda part: (part / files.JSON_LINES).stat().st_size)
    gone: list[str] = []

    def change(records: list[Any]) -> list[Any]:
        gone.append(records[1]["check"])
        cell = [records[1][key] for key in ("port", "stub_page", "os_page", "check")]
        return [r for r in records if [r.get(key) for key in ("port", "stub_page", "os_page", "check")] != cell]

    edit(full, change)
    said = refused(parts)
    assert "planned checks without a result: 1 of shard " in said and gone[0] in said and str(full) in said


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("execmem_cts", "9.9", "differing versions of execmem-cts: "),
        ("profile", "other", "differing profiles: "),
        ("seed", 2, "differing seeds: "),
        ("compiler", "another", "differing compilers: "),
        ("emulators", {"qemu-p": "qemu-p version 10"}, "differing emulator versions: "),
        ("subject", "mine", "differing subjects: "),
        ("shard", "2/4", "shards of different runs: "),
    ],
)
def test_what_differs_is_named(parts: list[Path], key: str, value: object, said: str) -> None:
    edit(parts[1], lambda records: [{**records[0], key: value}, *records[1:]])
    told = refused(parts)
    assert said in told and str(parts[1]) in told


def test_differing_plans(parts: list[Path]) -> None:
    planned = shards.plan_text(plan()) + "p/s/plain-4096/4096/emulated/po_new\tPO-001\tone\n"
    (parts[1] / shards.PLAN).write_text(planned)
    assert "not the plan of the results beside it" in refused(parts)
    edit(parts[1], lambda records: [{**records[0], "plan": shards.digest(planned)}, *records[1:]])
    assert f"differing plans: {parts[1]} alone plans p/s/plain-4096/4096/emulated/po_new" in refused(parts)


def test_results_of_no_shard(parts: list[Path]) -> None:
    edit(parts[1], lambda records: [{k: v for k, v in records[0].items() if k != "shard"}, *records[1:]])
    assert "results of no shard" in refused(parts)


def test_a_folder_of_folders(parts: list[Path]) -> None:
    assert merge.folders([parts[0].parent]) == parts
    assert merge.folders(parts) == parts


@pytest.mark.parametrize(
    ("environment", "shard"),
    [
        ({"CI_NODE_INDEX": "2", "CI_NODE_TOTAL": "4"}, Shard(2, 4)),
        ({"JOB_COMPLETION_INDEX": "0", "EXECMEM_SHARDS": "4"}, Shard(1, 4)),
        ({"SLURM_ARRAY_TASK_ID": "7", "SLURM_ARRAY_TASK_COUNT": "3", "SLURM_ARRAY_TASK_MIN": "5"}, Shard(3, 3)),
    ],
)
def test_engines_say_which_shard(environment: dict[str, str], shard: Shard) -> None:
    assert shards.wanted("auto", environment) == shard


@pytest.mark.parametrize(
    ("text", "environment", "said"),
    [
        ("0/4", {}, "expected a number from 1 to 4"),
        ("5/4", {}, "expected a number from 1 to 4"),
        ("two", {}, "expected NUMBER/COUNT"),
        ("auto", {}, "none of CI_NODE_INDEX, JOB_COMPLETION_INDEX, SLURM_ARRAY_TASK_ID is set"),
        ("auto", {"JOB_COMPLETION_INDEX": "0"}, "set EXECMEM_SHARDS"),
        ("auto", {"CI_NODE_INDEX": "1"}, "`parallel:` in the job"),
        ("auto", {"CI_NODE_INDEX": "x", "CI_NODE_TOTAL": "2"}, "are no numbers"),
        (
            "auto",
            {"SLURM_ARRAY_TASK_ID": "9", "SLURM_ARRAY_TASK_COUNT": "2", "SLURM_ARRAY_TASK_MIN": "1"},
            "--array=1-4",
        ),
        (
            "auto",
            {"CI_NODE_INDEX": "1", "CI_NODE_TOTAL": "2", "JOB_COMPLETION_INDEX": "1", "EXECMEM_SHARDS": "2"},
            "several shards (GitLab 1/2, Kubernetes 2/2)",
        ),
    ],
)
def test_a_shard_that_is_none(text: str, environment: dict[str, str], said: str) -> None:
    with pytest.raises(ManifestError) as error:
        shards.wanted(text, environment)
    assert said in str(error.value)


def test_where_and_how_fast_is_no_part_of_a_command() -> None:
    argv = ["run", "--shard", "1/2", "--port", "x", "--results=there", "--jobs", "3", "--seed=4"]
    assert shards.without(argv) == ["run", "--port", "x", "--seed=4"]


def test_a_merge_keeps_the_templates_of_every_shard(tmp_path: Path) -> None:
    made_of = [Layout("p", "plain", page, "stub_x", 16, page // 16, page, page, 16) for page in (4096, 16384)]
    parts = []
    for number, known in enumerate((made_of[:1], made_of), 1):
        (tmp_path / f"{number}").mkdir()
        layouts.write(tmp_path / f"{number}" / layouts.FILE, known)
        parts.append(merge.Part(tmp_path / f"{number}", HEADER, (), ""))
    assert merge.layouts_of(parts) == made_of
