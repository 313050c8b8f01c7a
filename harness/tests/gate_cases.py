"""What the tests of the gate share: a profile, results, a machine, a tree of files that the command line reads."""

from __future__ import annotations

from pathlib import Path

from test_verdict import made

from execmem_cts.gate import expectations
from execmem_cts.gate.expectations import Expectation, Machine
from execmem_cts.model import Result

ROOT = Path(__file__).resolve().parents[2]
PORTS, REQUIREMENTS = ("p", "q"), ("PO-001", "PO-002")
HEADER = {
    "execmem_cts": "0",
    "format": 1,
    "date": "2026-01-01",
    "ports": {"p": "qemu-p", "q": "qemu-q"},
    "emulators": {"qemu-p": "qemu-p version 7.2.22 (Debian 1:7.2+dfsg-7)", "qemu-q": "qemu-q version 10.0.2"},
    "native": {"p": "yes", "q": "this machine does not run it"},
    "profile": "test",
}
MACHINE = Machine.of(HEADER, {})
ENTRY = {
    "requirement": '"PO-001"',
    "port": '"p"',
    "stub_page": "16384",
    "os_page": "4096",
    "reason": '"a known one"',
    "link": '"https://example.org/1"',
}


def entry(**more: str) -> str:
    """An entry as TOML; a value of "" leaves a key out."""
    return "[[expect_fail]]\n" + "".join(f"{key} = {value}\n" for key, value in {**ENTRY, **more}.items() if value)


def written(folder: Path, *entries: str) -> Path:
    path = folder / "known.toml"
    path.write_text("\n".join(["schema = 1", *entries]))
    return path


def loaded(folder: Path, *entries: str) -> list[Expectation]:
    return expectations.load(written(folder, *entries), ROOT, PORTS, REQUIREMENTS)


def results() -> list[Result]:
    """On two ports, two requirements with two points each; PO-001 fails on p."""
    return [
        made("FAIL" if (port, requirement) == ("p", "PO-001") else "PASS", requirement, port=port, point=point)
        for port in PORTS
        for requirement in REQUIREMENTS
        for point in ("one", "two")
    ]
