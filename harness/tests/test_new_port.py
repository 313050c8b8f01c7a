"""new-port: a skeleton for any architecture builds, says what is to be written next, and turns green piece by piece."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from port_cases import MOVED, ROOT, call

from execmem_cts import manifest, new_port, tools, unwritten
from execmem_cts.source import ManifestError

TRIPLE, EMULATOR = f"{MOVED}-unknown-linux", f"qemu-{MOVED} -cpu rv64"
NAME = "fresh"
# In the order in which they are to be written.
START = ["_start", "execmem_port_syscall"]
MACHINE = ["execmem_port_sync_code", "execmem_port_probe_code", "execmem_port_clone"]
CAPTURE = ["capture_enter", "capture_leave", *(f"landing_{n}" for n in range(4))]
TEMPLATES = ["stub_precode", "fixup_precode", "fixup_precode_tail", "call_counting", "closure"]


def made(folder: Path, name: str = NAME, triple: str = TRIPLE, emulator: str = EMULATOR) -> list[Path]:
    return new_port.make(ROOT, folder, name, triple, emulator.split(), tools.find())


class Writer:
    """Someone who writes the port: takes each file of the finished one, under the new name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.build = ROOT / "build" / NAME

    def text(self, file: str) -> str:
        text = (ROOT / file).read_text()
        return re.sub(rf"{MOVED}(?!-unknown)(?<!qemu-{MOVED})", NAME, text)

    def write(self, *files: str) -> None:
        for file in files:
            (self.folder / file.replace(MOVED, NAME)).write_text(self.text(file))

    def closure(self) -> None:
        """The last template alone."""
        path, begin = self.folder / "asm" / f"{NAME}.S", "\tEXECMEM_TEMPLATE_BEGIN closure"
        finished = self.text(f"asm/{MOVED}.S")
        path.write_text(path.read_text().partition(begin)[0] + begin + finished.partition(begin)[2])

    def run(self, *options: str) -> tuple[int, list[str], dict[str, set[str]]]:
        """Exit status; what is still to be written, in order; the verdicts by requirement."""
        results = self.folder / "results"
        given = ["--port-path", str(self.folder), "--results", str(results), "--no-rerun"]
        done = call(ROOT, "run", "--port", NAME, *given, *options)
        lines = (results / "results.jsonl").read_text().splitlines() if results.exists() else []
        assert lines, done.stdout + done.stderr
        notes, verdicts = [], {}
        for record in (json.loads(line) for line in lines):
            if record.get("check") == "build":
                assert record["verdict"] == "FAIL" and record["diagnostics"]["to write"], record
                notes.append(record["point"].partition("-")[2].removeprefix("execmem_port_"))
            elif "check" in record:
                verdicts.setdefault(record["requirement"], set()).add(record["verdict"])
        return done.returncode, notes, verdicts


@pytest.fixture
def writer(tmp_path: Path) -> Writer:
    made(tmp_path)
    one = Writer(tmp_path)
    shutil.rmtree(one.build, ignore_errors=True)
    return one


@pytest.mark.long
@pytest.mark.xdist_group("skeleton")
def test_a_skeleton_turns_green_piece_by_piece(writer: Writer) -> None:
    arch = f"arch/{MOVED}"
    writer.write(*(f"{arch}/{file}" for file in ("port.toml", "abi.h", "syscall.S", "start.S", "port.c")))
    status, notes, verdicts = writer.run("--variant", "alloc", "--family", "PG", "--family", "ABI", "--os-page", "4096")
    assert status == 1 and notes == CAPTURE, "those of the programs that were asked for"
    assert all("PASS" in found for name, found in verdicts.items() if name.startswith("PG-"))
    assert all(found == {"NOTRUN"} for name, found in verdicts.items() if name.startswith("ABI-"))

    writer.write(f"{arch}/capture.S")
    writer.closure()
    narrow = ("--stub-page", "16K", "--os-page", "4096", "--only", "PO-010", "--only", "PO-003", "--family")
    status, notes, verdicts = writer.run(*narrow[:4], "--family", "ABI")
    assert status == 1 and notes == TEMPLATES[:-1]
    assert all(found == {"PASS"} for name, found in verdicts.items() if name.startswith("ABI-"))
    status, notes, verdicts = writer.run(*narrow[:-1])
    assert status == 1 and verdicts["PO-010"] >= {"PASS", "FAIL"} and verdicts["PO-003"] >= {"PASS", "FAIL"}

    writer.write(f"asm/{MOVED}.S")
    (writer.folder / "arch" / NAME / "unwritten.h").unlink()
    status, notes, verdicts = writer.run(*narrow[:-1])
    assert status == 4 and not notes, "unverified: the rest was left out"
    assert "FAIL" not in set().union(*verdicts.values()) and "PASS" in verdicts["PO-010"] & verdicts["PO-003"]
    shutil.rmtree(writer.build)


@pytest.mark.parametrize(
    ("triple", "emulator", "bits", "endianness"),
    [
        ("s390x-unknown-linux", "qemu-s390x", 64, "big"),
        ("mips-unknown-linux", "qemu-mips", 32, "big"),
    ],
)
@pytest.mark.long
@pytest.mark.xdist_group("skeleton")
def test_a_skeleton_builds_for_any_architecture(
    triple: str, emulator: str, bits: int, endianness: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every file of it, in the programs that captured calls are for; and it is in the project's format."""
    files = [str(path) for path in made(tmp_path, NAME, triple, emulator) if path.suffix in (".c", ".h")]
    style = f"--style=file:{ROOT / '.clang-format'}"
    subprocess.run(["clang-format-19", "--dry-run", "--Werror", style, *files], check=True, timeout=60)
    monkeypatch.setenv("EXECMEM_PORT_PATH", str(tmp_path))
    port = manifest.discover_ports(ROOT)[NAME]
    assert (port.pointer_bytes * 8, port.endianness) == (bits, endianness)
    shutil.rmtree(ROOT / "build" / NAME, ignore_errors=True)
    status, notes, verdicts = Writer(tmp_path).run("--stub-page", "16K")
    assert status == 1 and set(notes[:2]) == {"_start", "syscall"}
    machine = [name.removeprefix("execmem_port_") for name in START + MACHINE]
    assert sorted(notes) == sorted(machine + CAPTURE + TEMPLATES)
    assert set().union(*verdicts.values()) == {"NOTRUN", "SKIP"}, "only the filter left anything out"
    shutil.rmtree(ROOT / "build" / NAME)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"name": "9lives"}, "new-port 9lives: no name of a port: begin with a letter"),
        ({"name": MOVED}, f"{MOVED}/port.toml is there already; choose another name"),
        ({"triple": "nosuch-unknown-linux"}, "knows no such architecture: "),
        ({"triple": "wasm32-unknown-unknown"}, "makes no ELF object"),
        ({"triple": "m68k-unknown-linux"}, "links no such objects: "),
        ({"emulator": "qemu-nosuch"}, "--emulator qemu-nosuch: no such program; install the package qemu-user"),
        ({"emulator": "qemu-s390x"}, f"--emulator qemu-s390x: runs no programs of {TRIPLE} (EM_RISCV, little-endian)"),
        ({"emulator": " "}, "--emulator: is empty"),
    ],
)
def test_a_mistake_writes_nothing(options: dict[str, str], said: str, tmp_path: Path) -> None:
    given = {"name": NAME, "triple": TRIPLE, "emulator": EMULATOR} | options
    argv = ["--triple", given["triple"], "--emulator", given["emulator"], "--port-path", str(tmp_path / "mine")]
    done = call(ROOT, "new-port", given["name"], *argv)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done.stderr
    assert said in done.stderr
    assert not (tmp_path / "mine").exists()


def test_what_is_there_is_not_overwritten(tmp_path: Path) -> None:
    first = made(tmp_path)
    before = {path: path.read_bytes() for path in first}
    (tmp_path / "arch" / NAME / "port.toml").unlink()
    with pytest.raises(ManifestError, match="is there already; choose another name, or move it away"):
        made(tmp_path)
    assert all(path.read_bytes() == before[path] for path in first if path.name != "port.toml")


def test_notes_are_told_in_the_order_of_the_steps() -> None:
    text = "6: piece: asm/p.S: closure: c\0" "5: capture: a: leave: l: with: colons\0" "4: piece: a: clone: x\0"
    notes = unwritten.parse((text + "4: start: a: _start: s\0").encode())
    assert [note.name for note in notes] == ["_start", "clone", "leave", "closure"]
    assert notes[2].what == "l: with: colons"
    assert unwritten.withheld(notes, False) == "_start is not written yet"
    assert unwritten.withheld(notes[1:], True) == "leave is not written yet"
    assert not unwritten.withheld(notes[1:], False)
    (strange,) = unwritten.parse(b"7: whole: thing\0")
    assert "expected STEP: PART: FILE: NAME: WHAT" in strange.what and not unwritten.withheld([strange], True)
