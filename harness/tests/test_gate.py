"""The gate, end to end on stored results: console, files and exit status say one thing, and each red is its own."""

from __future__ import annotations

import json
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from test_verdict import made

from execmem_cts import manifest, requirements, results, verdict
from execmem_cts.gate import badge, sarif
from execmem_cts.model import Result
from execmem_cts.profile import Profile

ROOT = Path(__file__).resolve().parents[2]
COMMAND = ROOT / "harness" / "execmem-cts"
PORT = next(iter(manifest.discover_ports(ROOT).values()))
REQUIREMENT = next(r.id for r in requirements.load(ROOT).values() if r.family == "PO")
HEADER: dict[str, Any] = {
    "execmem_cts": "0",
    "format": results.FORMAT,
    "ports": {PORT.name: PORT.emulator_argv[0]},
    "emulators": {PORT.emulator_argv[0]: "an emulator version 7.2.22"},
    "native": {},
    "templates": {f"{PORT.name}/plain": {"stub_x": ["asm/a b.S", 12]}},
}
NOTHING_REQUIRED = Profile("any", (), (), {})


def one(kind: str, **more: object) -> Result:
    return made(kind, REQUIREMENT, **{"port": PORT.name, "subject": "ref", "point": "stub_x", **more})


def entry(**more: str) -> str:
    given = {"requirement": REQUIREMENT, "port": PORT.name, "reason": "known", "link": "https://example.org/1"}
    lines = [f"{key} = {json.dumps(value)}" for key, value in given.items()]
    lines += [f"{key} = {value}" for key, value in {"stub_page": "16384", "os_page": "4096", **more}.items()]
    return "\n".join(["schema = 1", "[[expect_fail]]", *lines, ""])


# Name -> results, expectations, more of the header, exit status, word, what the console says besides.
CASES: dict[str, tuple[list[Result], str, dict[str, str], int, str, str]] = {
    "conformant": ([one("PASS")], "", {}, 0, "conformant", ""),
    "as expected": ([one("FAIL"), one("PASS", os_page=65536)], entry(), {}, 0, "as expected", "1 known failures"),
    "regression": ([one("FAIL"), one("PASS", point="y")], "", {}, 1, "not conformant", "FAIL"),
    "unexpected pass": ([one("PASS")], entry(), {}, 1, "not as expected", "known.toml:2, and it passed; delete or narrow that entry"),
    "stale": ([one("PASS")], entry(os_page="65536"), {}, 1, "stale expectation", "known.toml:2: stale: matches no result"),
    "expired": ([one("FAIL")], entry(expires="2020-01-01"), {}, 1, "expectation expired", "known.toml:2: expired: "),
    "emulator crash": ([one("PASS", point="y"), one("ERROR", message="the emulator crashed: QEMU internal SIGSEGV")], "",
                       {}, 3, "error", "the emulator crashed"),
    "zero checks": ([], "", {}, 3, "error", "no check was executed"),
    "only skips": ([one("SKIP")], "", {}, 3, "error", "no check was executed"),
    "missing shard": ([one("PASS")], "", {"shard": "2/3"}, 3, "missing shard", "shard 2 of 3 alone"),
    "flaky": ([one("FAIL", flaky=True)], entry(), {}, 1, "not conformant", "1 of them flaky"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_console_files_and_exit_status_agree(name: str, tmp_path: Path) -> None:
    found, text, more, status, word, said = CASES[name]
    header = {**HEADER, **more}
    results.write_all(tmp_path / "r", header, found, NOTHING_REQUIRED, verdict.overall(found, NOTHING_REQUIRED))
    profile = tmp_path / "any.toml"
    profile.write_text('schema = 1\n[[require]]\nrequirements = ["PO-*"]\nports = "no-such-port"\n')
    argv = ["gate", "--results", str(tmp_path / "r"), "--profile", str(profile), "--output", str(tmp_path / "o")]
    if text:
        (tmp_path / "known.toml").write_text(text)
        argv += ["--expect", str(tmp_path / "known.toml")]
    done = subprocess.run([str(COMMAND), *argv], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    last = [line for line in done.stdout.splitlines() if line.startswith(f"{word}: ")]
    assert last and said in done.stdout
    out = tmp_path / "o"
    end = json.loads((out / results.JSON_LINES).read_text().splitlines()[-1])
    assert (end["overall"], end["exit_status"]) == (word, status)
    assert last[-1].startswith(f"{word}: {end['reason']}")
    document = ElementTree.parse(out / results.JUNIT).getroot()
    (overall,) = [case for case in document.iter("testcase") if case.get("name") == "overall"]
    children = list(overall)
    assert [child.tag for child in children] == ([] if not status else ["failure" if status == 1 else "error"])
    assert all(child.get("type") == word and child.get("message") == end["reason"] for child in children)
    assert int(document.get("failures", 0)) + int(document.get("errors", 0)) > 0 or not status
    assert (out / results.MARKDOWN).read_text().startswith(f"# execmem-cts: {word}\n\n{end['reason']}.")
    page = (out / "report.html").read_text()
    assert f'<body data-overall="{word}" data-exit-status="{status}">' in page
    assert f'<p id="reason">{end["reason"]}</p>' in page
    shown = json.loads((out / badge.NAME).read_text())
    assert shown["message"].startswith(word) and shown["isError"] == (status != 0) and shown["schemaVersion"] == 1
    run = json.loads((out / sarif.NAME).read_text())["runs"][0]
    assert run["properties"] == {"overall": word, "exitStatus": status, "reason": end["reason"]}
    assert bool([r for r in run["results"] if r["level"] == "error"]) == (
        name in ("regression", "unexpected pass", "stale", "expired", "flaky")
    )


def test_sarif_stands_at_the_template() -> None:
    found = [one("FAIL", os_page=page, message="wrong") for page in (4096, 16384)]
    found.append(one("FAIL", variant="alloc", point="all"))  # has no line
    run = sarif.sarif(HEADER, found, verdict.overall(found, NOTHING_REQUIRED))["runs"][0]
    (result,) = run["results"]
    place = result["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("asm/a%20b.S", 12)
    assert result["ruleId"] == REQUIREMENT and run["tool"]["driver"]["rules"] == [{"id": REQUIREMENT}]
    assert "/4096/" in result["message"]["text"] and "/16384/" in result["message"]["text"]


def test_every_template_of_the_tree_has_a_line() -> None:
    ports = manifest.discover_ports(ROOT)
    subject = manifest.load_subject(manifest.subject_path(ROOT, "ref"), ROOT, ports)
    places = sarif.places(subject.template_sets, ROOT)
    for chosen in subject.template_sets:
        for template in chosen.templates:
            file, line = places[f"{chosen.port.name}/{chosen.variant}"][template.name]
            assert template.name in (ROOT / file).read_text().splitlines()[line - 1]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["gate", "--results", "/nonexistent"], "run `execmem-cts run` first"),
        (["gate", "--expect", "/nonexistent.toml", "--results", "/nonexistent"], "run `execmem-cts run` first"),
        (["gate", "--results", "x", "--", "--port", "y"], "options of `run` make no sense with --results"),
        (["gate", "--today", "soon"], "is no date"),
        (["run", "--shard", "3/2"], "expected a number from 1 to 2"),
        (["merge"], "Missing argument"),
        (["update-expectations", "known.toml", "--results", "/nonexistent"], "run `execmem-cts run` first"),
    ],
)
def test_a_mistake_ends_with_two(argv: list[str], said: str) -> None:
    done = subprocess.run([str(COMMAND), *argv], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr


def test_a_merge_of_nothing_is_no_pass(tmp_path: Path) -> None:
    done = subprocess.run(
        [str(COMMAND), "merge", str(tmp_path)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 3 and "no results.jsonl in it" in done.stderr


def test_update_asks_nobody_where_nobody_is(tmp_path: Path) -> None:
    found = [one("FAIL")]
    results.write_all(tmp_path, {**HEADER, "profile": "conform"}, found, NOTHING_REQUIRED,
                      verdict.overall(found, NOTHING_REQUIRED))  # fmt: skip
    argv = [str(COMMAND), "update-expectations", str(tmp_path / "known.toml"), "--results", str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 2 and "give --reason and --link" in done.stderr
    argv += ["--reason", "r", "--link", "https://example.org/2"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 0 and f"written: {REQUIREMENT} on {PORT.name}" in done.stdout
    gated = [str(COMMAND), "gate", "--quiet", "--results", str(tmp_path), "--expect", str(tmp_path / "known.toml")]
    done = subprocess.run(gated, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0 and "as expected: 1 known failures" in done.stdout
