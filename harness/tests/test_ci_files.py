"""The YAML of ci/: it parses, calls ci/gate and nothing else, and names inputs and steps that there are."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
CI = ROOT / "ci"
STEPS = {"all", "shard", "verdict"}


def read(name: str) -> dict[str, Any]:
    data = yaml.safe_load((CI / name).read_text())
    assert isinstance(data, dict)
    return data


def test_the_action_calls_the_script_and_nothing_else() -> None:
    action = read("github/action.yml")
    assert set(action) == {"name", "description", "inputs", "runs"} and action["runs"]["using"] == "composite"
    (step,) = action["runs"]["steps"]
    assert step["shell"] == "bash" and step["run"] == '"$EXECMEM_PATH/ci/gate" "$EXECMEM_STEP" $EXECMEM_OPTIONS'
    # Inputs reach the script as variables, never as text of a command: each is used, each that is used is there.
    used = re.findall(r"\$\{\{ inputs\.(\w+) \}\}", " ".join(step["env"].values()))
    assert sorted(used) == sorted(action["inputs"]) and "${{" not in step["run"]
    assert all(
        entry.get("description") and ("default" in entry or entry["required"]) for entry in action["inputs"].values()
    )
    script = (CI / "gate").read_text()
    own = {"EXECMEM_PATH", "EXECMEM_STEP", "EXECMEM_OPTIONS"}
    assert all(name in own or name in script for name in step["env"])


def test_the_workflow_runs_every_shard_and_then_judges() -> None:
    workflow = read("github/workflow.yml")
    assert set(workflow) == {"name", True, "permissions", "jobs"}  # YAML 1.1 reads `on` as true
    jobs = workflow["jobs"]
    inputs = read("github/action.yml")["inputs"]
    for job in jobs.values():
        assert {"runs-on", "steps"} <= set(job) <= {
            "runs-on", "steps", "container", "strategy", "needs", "if", "permissions"
        }  # fmt: skip
        for step in job["steps"]:
            assert "run" not in step, "no logic in YAML"
            if step["uses"].startswith("./"):
                assert (ROOT / step["uses"] / "action.yml").is_file()
                assert set(step["with"]) <= set(inputs) and step["with"]["step"] in STEPS
            else:
                assert re.fullmatch(r"[\w-]+/[\w/-]+@v\d+", step["uses"])
    matrix = jobs["shard"]["strategy"]["matrix"]
    assert [matrix["index"]] == [list(range(1, n + 1)) for n in matrix["total"]]
    assert jobs["shard"]["strategy"]["fail-fast"] is False
    # The verdict is given though a shard failed: what is missing is its to tell.
    assert jobs["verdict"]["needs"] == "shard" and "!cancelled()" in jobs["verdict"]["if"]


def test_the_gitlab_template_calls_the_script_and_nothing_else() -> None:
    jobs = read("gitlab/execmem-cts.yml")
    assert [job["script"] for job in jobs.values()] == [["ci/gate shard"], ["ci/gate verdict"]]
    shard, judged = jobs.values()
    assert shard["parallel"] > 1 and judged["needs"] == [next(iter(jobs))] and judged["when"] == "always"
    assert shard["artifacts"]["when"] == "always" and judged["artifacts"]["reports"] == {
        "junit": "build/gate/junit.xml"
    }
    assert all("before_script" not in job and "rules" not in job for job in jobs.values())


def test_the_script_explains_itself() -> None:
    done = subprocess.run([str(CI / "gate"), "--help"], capture_output=True, text=True, timeout=30, check=True)
    assert all(f"ci/gate {step}" in done.stdout for step in STEPS)
    for name in set(re.findall(r"\$\{(EXECMEM_[A-Z]+)", (CI / "gate").read_text())) - {"EXECMEM_CTS"}:
        assert name in done.stdout


def test_the_expectations_that_ci_reads_are_there() -> None:
    named = read("gitlab/execmem-cts.yml")["execmem-cts-verdict"]["variables"]["EXECMEM_EXPECT"]
    assert (ROOT / named).read_text().count("schema = 1") == 1
