"""conformance/RESULTS.md says what the suite finds in allocators that are not ours; what can be run here still does so."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from execmem_cts import manifest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "conformance/RESULTS.md").read_text(encoding="utf-8")
HERE = ("asmjit", "asmjit-dual")  # what Debian has as a package that can be linked as it is


def table(first: str) -> list[list[str]]:
    """The rows of the table whose heading begins with this column; an empty first cell is that of the row above."""
    rows: list[list[str]] = []
    (text,) = re.findall(rf"^\| {first} \|.*\n\| ---.*\n((?:\|.*\n)+)", TEXT, re.MULTILINE)
    for line in text.splitlines():
        cells = [cell.strip().replace("`", "") for cell in line.strip("|").split("|")]
        rows.append([cells[0] or rows[-1][0], *cells[1:]])
    return rows


@pytest.mark.long
@pytest.mark.parametrize("subject", HERE)
def test_what_is_written_is_what_is_found(subject: str, tmp_path: Path) -> None:
    written = {row[2]: tuple(map(int, row[4:7])) for row in table("subject") if row[0] == subject}
    failing = {row[0] for row in table("requirement") if subject in row[1].split(", at ")[0].split(", ")}
    assert written and failing
    if not Path("/usr/lib/x86_64-linux-gnu/libasmjit.a").is_file():
        pytest.skip("libasmjit.a is missing: toolchains/setup --for test installs it")
    argv = ["run", "--subject", subject, "--port", "x64", "--family", "JA", "--quiet", "--results", str(tmp_path)]
    done = subprocess.run(
        [str(ROOT / "harness/execmem-cts"), *argv], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 1, done.stdout + done.stderr
    counts: dict[str, Counter[str]] = {}
    red = set()
    for line in (tmp_path / "results.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if not str(record.get("requirement", "")).startswith("JA-") or record["verdict"] == "SKIP":
            continue
        counts.setdefault(f"x64 {record['runner']}", Counter())[record["verdict"]] += 1
        if record["verdict"] == "FAIL":
            red.add(record["requirement"])
    found = {place: (count["PASS"], count["FAIL"], count["NA"]) for place, count in counts.items()}
    assert found == {place: written[place] for place in found} and "x64 emulated" in found
    assert red == failing


def test_each_subject_that_is_told_of_is_in_the_tree() -> None:
    told = {row[0] for row in table("subject")}
    assert told >= set(HERE)
    assert told <= {path.parent.name for path in (ROOT / "conformance/subjects").glob("*/subject.toml")}
    ports = manifest.discover_ports(ROOT)
    assert {row[2].split()[0] for row in table("subject")} <= set(ports)
