"""How a program ended decides what its points are: a crash, a hang, an emulator's crash, a missing emulator, no result.

The programs are shell scripts that print what a conformance program would, or do not.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from execmem_cts import process, runner
from execmem_cts.model import Result

PRELUDE = """\
#!/bin/sh
only= nonce=
while [ $# -gt 0 ]; do
	case $1 in
	--only) only=$2; shift ;;
	--nonce) nonce=$2; shift ;;
	esac
	shift
done
end() { echo "# seen os_page=${os_page:-4096} stub_page=${stub_page:-16384}"; echo "# complete nonce=$nonce points=$1 assertions=${2:-5}"; }
"""


@pytest.fixture
def item(tmp_path: Path) -> "Maker":
    return Maker(tmp_path)


class Maker:
    """Makes an item whose program is a script."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(
        self, body: str, points: tuple[str, ...] = ("one",), emulator: tuple[str, ...] = (), **more: object
    ) -> runner.Item:
        program = self.folder / "program"
        program.write_text(PRELUDE + body)
        program.chmod(0o755)
        given: dict[str, object] = {
            "requirement": "PO-001",
            "check": "po_x",
            "points": points,
            "port": "p",
            "subject": "s",
            "variant": "plain",
            "stub_page": 16384,
            "os_page": 4096,
            "runner": "emulated" if emulator else "native",
            "emulator": emulator,
            "program": str(program),
            "seed": 1,
            "seconds": 5.0,
        }
        return runner.Item(**{**given, **more})  # type: ignore[arg-type]


def only(results: list[Result]) -> Result:
    assert len(results) == 1
    return results[0]


PASS = 'echo "KTAP version 1"; echo "1..1"; echo "ok 1 - po_x.one"; end 1'


def test_a_pass(item: Maker) -> None:
    result = only(runner.run_item(item(PASS)))
    assert (result.verdict, result.point, result.requirement) == ("PASS", "one", "PO-001")
    assert result.argv[-3:] == ["po_x.one", "--seed", "1"]


def test_a_program_is_told_the_page_size_and_how_often_to_try(item: Maker) -> None:
    result = only(runner.run_item(item(PASS, os_page=4096, page=4096, rounds=3)))
    assert result.verdict == "PASS"
    assert result.argv[-6:] == ["--seed", "1", "--page", "4096", "--rounds", "3"]


def test_a_failure_keeps_its_diagnostics(item: Maker) -> None:
    body = 'printf "KTAP version 1\\n1..1\\nnot ok 1 - po_x.one\\n  ---\\n  message: wrong\\n  actual: 0x10\\n  ...\\n"; end 1; exit 1'
    result = only(runner.run_item(item(body)))
    assert (result.verdict, result.message, result.diagnostics["actual"]) == ("FAIL", "wrong", "0x10")


@pytest.mark.parametrize(
    ("body", "verdict", "message"),
    [
        ("kill -SEGV $$", "FAIL", "killed by SIGSEGV"),
        ("exit 0", "FAIL", "ended without a result"),
        (PASS.replace("end 1", "true"), "FAIL", "no `# complete` line"),
        (PASS.replace("end 1", "nonce=old; end 1"), "FAIL", "nonce 'old' is not the one given"),
        (PASS.replace("end 1", "end 1 0"), "FAIL", "nothing was asserted"),
        (PASS + "; exit 1", "FAIL", "exit status 1 with 0 failed points"),
        (PASS + "; kill -ABRT $$", "FAIL", "killed by SIGABRT"),
        (PASS.replace("ok 1", "not ok 1"), "FAIL", "exit status 0 with 1 failed points"),
        ('echo "KTAP version 1"; echo "1..0"; end 0', "FAIL", "no point was reported"),
        (PASS.replace("po_x.one", "po_x.two"), "FAIL", "reported two"),
        ("echo hello", "FAIL", "expected `KTAP version 1`"),
        ("echo '# broken no memory'; exit 3", "ERROR", "the suite could not go on: # broken no memory"),
        ("echo '# broken a'; echo '# os_calls ; b'; exit 3", "ERROR", "the suite could not go on: # broken a"),
        ("echo '# usage' >&2; exit 2", "ERROR", "exit status 2"),
        ("stub_page=4096; " + PASS, "ERROR", "built for stub pages of 4096 bytes, expected 16384"),
        ("yes", "FAIL", "wrote more than"),
    ],
)
def test_how_it_ended(item: Maker, body: str, verdict: str, message: str) -> None:
    result = only(runner.run_item(item(body)))
    assert result.verdict == verdict
    assert message in result.message


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] not in "ZX"
    except OSError:
        return False


def test_a_hang_is_a_failure_and_leaves_nothing_running(item: Maker, tmp_path: Path) -> None:
    body = f"sleep 60 & echo $! > {tmp_path}/pid; sleep 60"
    began = time.monotonic()
    result = only(runner.run_item(item(body, seconds=0.3)))
    assert time.monotonic() - began < 5
    assert (result.verdict, result.message) == ("FAIL", "time-out: did not end within 0.3 s")
    left = int((tmp_path / "pid").read_text())
    while alive(left) and time.monotonic() - began < 10:
        time.sleep(0.01)
    assert not alive(left)


def test_an_emulator_crash_is_not_the_programs_failure(item: Maker) -> None:
    body = 'echo "QEMU internal SIGSEGV {code=MAPERR, addr=0x20}" >&2; kill -SEGV $$'
    result = only(runner.run_item(item(body, emulator=("/bin/sh",))))
    assert result.verdict == "ERROR"
    assert "the emulator crashed" in result.message
    # The same words of a program that ran natively are not the emulator's.
    assert only(runner.run_item(item(body))).verdict == "FAIL"


def test_an_emulated_program_killed_by_a_signal_failed(item: Maker) -> None:
    body = 'echo "qemu: uncaught target signal 11 (Segmentation fault) - core dumped" >&2; kill -SEGV $$'
    assert only(runner.run_item(item(body, emulator=("/bin/sh",)))).verdict == "FAIL"


def test_a_missing_emulator_names_its_package(item: Maker) -> None:
    results = runner.run_item(item(PASS, points=("one", "two"), emulator=("qemu-nothing", "-cpu", "max")))
    assert [result.verdict for result in results] == ["ERROR", "ERROR"]
    assert all("qemu-nothing is missing: install the package qemu-user" in result.message for result in results)


def test_an_os_page_that_was_not_seen_is_not_shown(item: Maker) -> None:
    result = only(runner.run_item(item(PASS, os_page=65536)))
    assert result.verdict == "EMU"
    assert "65536" in result.message and "4096" in result.message
    failing = PASS.replace("ok 1", "not ok 1") + "; exit 1"
    assert only(runner.run_item(item(failing, os_page=65536))).verdict == "FAIL"


CRASHES_IN_TWO = """
case $only in
po_x) echo "KTAP version 1"; echo "1..3"; echo "ok 1 - po_x.one"; kill -SEGV $$ ;;
po_x.two) kill -SEGV $$ ;;
*) echo "KTAP version 1"; echo "1..1"; echo "ok 1 - $only"; end 1 ;;
esac
"""


def test_a_crash_hides_no_other_point(item: Maker) -> None:
    results = runner.run_item(item(CRASHES_IN_TWO, points=("one", "two", "three")))
    assert {result.point: result.verdict for result in results} == {"one": "PASS", "two": "FAIL", "three": "PASS"}


def test_a_crash_that_does_not_come_again_is_still_told(item: Maker) -> None:
    body = """
case $only in
po_x) echo "KTAP version 1"; echo "1..2"; echo "ok 1 - po_x.one"; kill -SEGV $$ ;;
*) echo "KTAP version 1"; echo "1..1"; echo "ok 1 - $only"; end 1 ;;
esac
"""
    results = runner.run_item(item(body, points=("one", "two")))
    assert "FAIL" in {result.verdict for result in results}
    assert any("killed by SIGSEGV" in result.message for result in results)


def test_core_dumps_are_off_and_output_is_capped() -> None:
    ended = process.run(["/bin/sh", "-c", "ulimit -c; head -c 100000 /dev/zero"], 5)
    assert ended.output.startswith("0\n")
    assert ended.flooded and len(ended.output) == process.CAP


def test_arguments_are_not_seen_by_a_shell() -> None:
    ended = process.run(["/bin/echo", "$(id)", "; exit 7", "`id`"], 5)
    assert ended.output == "$(id) ; exit 7 `id`\n"


def test_standard_input_is_empty() -> None:
    assert process.run(["/bin/cat"], 5).output == ""
    assert os.getpgrp() != 0
