"""The command line, end to end: one port, one configuration, real programs; and what a stranger's mistake looks like."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from execmem_cts import manifest

ROOT = Path(__file__).resolve().parents[2]
COMMAND = ROOT / "harness" / "execmem-cts"
PORT = next(iter(manifest.discover_ports(ROOT).values()))


def called(*argv: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(COMMAND), *argv], cwd=cwd, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    folder = tmp_path_factory.mktemp("results")
    argv = ["--port", PORT.name, "--stub-page", str(PORT.stub_pages[0]), "--only", "PO-030", "--results", str(folder)]
    return folder, called("run", "--jobs", "1", *argv)


def test_a_narrow_run_passes_and_is_unverified(narrow: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, done = narrow
    assert done.returncode == 4, done.stdout + done.stderr
    assert "unverified" in done.stdout
    records = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    assert records[0]["compiler"] and records[0]["emulators"][PORT.emulator_argv[0]]
    results = [record for record in records if "check" in record]
    assert {record["verdict"] for record in results if record["requirement"] == "PO-030"} >= {"PASS"}
    assert {record["verdict"] for record in results if record["requirement"] != "PO-030"} == {"SKIP"}
    assert (folder / "junit.xml").exists() and (folder / "summary.md").exists()


def test_a_report_repeats_the_verdict(narrow: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    done = called("report", "--results", str(narrow[0]))
    assert done.returncode == narrow[1].returncode
    last = [line for line in narrow[1].stdout.splitlines() if line.startswith("unverified")]
    assert last and last[0] in done.stdout


@pytest.mark.parametrize(
    ("argv", "status", "said"),
    [
        (["run", "--port", "nothing"], 2, "--port nothing: no such port; there are"),
        (["run", "--only", "nothing_like_this"], 2, "no such thing here; `execmem-cts list` shows"),
        (["run", "--only", "PO-04"], 2, "did you mean PO-040 or PO-041?"),
        (["run", "--family", "nothing"], 2, "no such thing here; there are ABI"),
        (["run", "--subject", "nothing"], 2, "no such subject; there are"),
        (["run", "--profile", "nothing"], 2, "no such profile; there are"),
        (["run", "--stub-page", "big"], 2, "write 16384, 0x4000 or 16K"),
        (["explain", "PO-999"], 2, "no such requirement or check"),
        (["check-templates", "--manifest", "absent.toml"], 2, "absent.toml"),
        (["report", "--results", "/nonexistent"], 2, "run `execmem-cts run` first"),
        (["nonsense"], 2, "No such command"),
    ],
)
def test_a_mistake_ends_with_two_and_one_line(argv: list[str], status: int, said: str) -> None:
    done = called(*argv)
    assert done.returncode == status
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_explain_teaches() -> None:
    by_check = called("explain", "po_fault_address").stdout
    assert by_check == called("explain", "po-001").stdout
    assert "mend:" in by_check and "source:" in by_check


def test_help_has_examples() -> None:
    assert "execmem-cts run --port" in called("--help").stdout
    assert "--gdb" in called("run", "--help").stdout


def test_ports_are_listed() -> None:
    shown = called("ports").stdout
    for path in (ROOT / "arch").glob("*/port.toml"):
        assert f"\n{path.parent.name}: " in "\n" + shown
