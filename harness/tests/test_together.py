"""Checks that share a process, or the start of their program, are judged as if each had been started alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from execmem_cts import runner

PROGRAM = """\
#!/bin/sh
echo start >> {log}
each= nonce= only=
while [ $# -gt 0 ]; do
	case $1 in
	--each) each=1 ;;
	--only) only="$only $2"; shift ;;
	--nonce) nonce=$2; shift ;;
	esac
	shift
done
point() {{ # ok|"not ok" CHECK
	printf 'KTAP version 1\\n1..1\\n%s 1 - %s.one\\n' "$1" "$2"
	[ "$1" = ok ] || printf '  ---\\n  message: wrong\\n  ...\\n'
	printf '# seen os_page=4096 stub_page=16384\\n# complete nonce=%s points=1 assertions=5\\n' "$nonce"
}}
begin() {{ echo "# each begin $1 status=0"; }}
end() {{ echo "# each end $1 ${{2:-status=0}}"; }}
good() {{ begin "$1"; point ok "$1"; end "$1"; }}
if [ "$each" ]; then
	{body}
elif [ "$only" = " po_x po_y" ]; then
	{whole}
else
	only=${{only# }}
	point ok "${{only%.one}}"
fi
"""


WHOLE = """\
printf 'KTAP version 1\\n1..2\\nok 1 - po_x.one\\nok 2 - po_y.one\\n'
printf '# seen os_page=4096 stub_page=16384\\n# complete nonce=%s points=2 assertions=5\\n' "$nonce"
"""


def results(
    folder: Path, body: str, whole: str = "kill -SEGV $$", seconds: float = 5.0
) -> tuple[dict[str, tuple[str, str]], int]:
    """Verdict and message by check, and how often the program was started. `whole`: both checks in one process."""
    program, log = folder / "program", folder / "log"
    program.write_text(PROGRAM.format(log=log, body=body, whole=whole))
    program.chmod(0o755)
    items = [
        runner.Item("PO-001", c, ("one",), "p", "s", "plain", 16384, 4096, "native", (), str(program), 1, seconds)
        for c in ("po_x", "po_y")
    ]
    found = runner.run_together(items)
    assert {result.check for result in found} == {"po_x", "po_y"}
    found.sort(key=lambda result: result.verdict != "PASS")  # of several results of a check the red one is told
    return {result.check: (result.verdict, result.message) for result in found}, len(log.read_text().split())


def test_what_passes_in_one_process_is_believed(tmp_path: Path) -> None:
    found, starts = results(tmp_path, "kill -SEGV $$", WHOLE)
    assert (found["po_x"][0], found["po_y"][0], starts) == ("PASS", "PASS", 1)


@pytest.mark.parametrize(
    ("find", "replace"),
    [
        ("ok 2 - po_y.one\\n'", "not ok 2 - po_y.one\\n  ---\\n  message: wrong\\n  ...\\n'"),
        ("$nonce", "other"),
        ("stub_page=16384", "stub_page=4096"),
        ("assertions=5", "assertions=0"),
        ("# complete", "# incomplete"),
        ("\n", "\nkill -SEGV $$\n"),
    ],
    ids="failed strange-nonce other-page nothing-asserted cut killed".split(),
)
def test_what_is_not_well_in_one_process_is_told_apart(tmp_path: Path, find: str, replace: str) -> None:
    assert find in WHOLE
    whole = WHOLE.replace(find, replace, 1)
    found, starts = results(tmp_path, "begin po_x; point 'not ok' po_x; end po_x status=1; good po_y", whole)
    assert (found["po_x"], found["po_y"][0], starts) == (("FAIL", "wrong"), "PASS", 2)


@pytest.mark.parametrize(
    ("whole", "check", "message"),
    [
        ("kill -SEGV $$", "po_x", "killed by SIGSEGV"),
        (WHOLE + "kill -SEGV $$", "po_y", "killed by SIGSEGV"),
        (WHOLE.replace("$nonce", "other"), "po_y", "nonce"),
        (
            WHOLE.replace("ok 2 - po_y.one\\n'", "not ok 2 - po_y.one\\n  ---\\n  message: wrong\\n  ...\\n'")
            + "exit 1",
            "po_y",
            "wrong",
        ),
        (
            WHOLE.replace("1..2", "1..1").replace("ok 2 - po_y.one\\n", "").replace("points=2", "points=1"),
            "po_y",
            "not reported",
        ),
    ],
    ids="crash crash-behind-all strange-nonce failed left-out".split(),
)
def test_trouble_in_one_process_stands_though_each_passes_alone(
    tmp_path: Path, whole: str, check: str, message: str
) -> None:
    found, _ = results(tmp_path, "good po_x; good po_y", whole)
    assert found[check][0] in ("FAIL", "ERROR")
    assert message in found[check][1]
    assert "alone it passes" in found[check][1]
    assert [verdict for verdict, _ in found.values()].count("PASS") == 1


def test_what_passes_beside_a_failure_is_believed(tmp_path: Path) -> None:
    whole = (
        WHOLE.replace("ok 2 - po_y.one\\n'", "not ok 2 - po_y.one\\n  ---\\n  message: first\\n  ...\\n'") + "exit 1"
    )
    found, starts = results(tmp_path, "begin po_y; point 'not ok' po_y; end po_y status=1", whole)
    assert (found["po_x"][0], found["po_y"], starts) == ("PASS", ("FAIL", "wrong"), 2)


def test_a_point_that_nobody_listed_is_an_error(tmp_path: Path) -> None:
    found, _ = results(tmp_path, "good po_x; good po_y", WHOLE.replace("po_y.one", "po_z.one"))
    assert found["po_y"] == ("ERROR", "po_z.one: reported, but not in the program's --list")
    assert found["po_x"][0] == "PASS"


def test_a_time_out_of_all_together_says_nothing_of_one(tmp_path: Path) -> None:
    found, starts = results(tmp_path, "good po_x; good po_y", "exec sleep 60", seconds=1)
    assert (found["po_x"][0], found["po_y"][0], starts) == ("PASS", "PASS", 2)


def test_the_limit_is_that_of_each_check(tmp_path: Path) -> None:
    found, starts = results(tmp_path, "sleep 1.8; good po_x; sleep 1.8; good po_y", "exec sleep 60", seconds=3)
    assert (found["po_x"][0], found["po_y"][0], starts) == ("PASS", "PASS", 2)


def test_a_check_that_hangs_behind_others_has_failed_though_it_passes_alone(tmp_path: Path) -> None:
    found, _ = results(tmp_path, "good po_x; begin po_y; exec sleep 60", "exec sleep 60", seconds=1)
    assert found["po_x"][0] == "PASS"
    assert found["po_y"][0] == "FAIL" and found["po_y"][1].startswith("time-out: did not end within 1 s")


def test_what_was_never_begun_is_started_alone(tmp_path: Path) -> None:
    found, starts = results(tmp_path, "good po_x", "exec sleep 60", seconds=1)
    assert (found["po_x"][0], found["po_y"][0], starts) == ("PASS", "PASS", 3)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('begin po_x; point "not ok" po_x; end po_x status=1', "wrong"),
        ("begin po_x; end po_x signal=11", "killed by SIGSEGV"),
        ("begin po_x; point ok po_x; end po_x signal=6", "killed by SIGABRT"),
        ("begin po_x; end po_x", "ended without a result"),
        ("begin po_x; (nonce=other; point ok po_x); end po_x", "nonce"),
        ("begin po_x; point ok po_x; end po_x status=1", "exit status 1 with 0 failed points"),
        ("begin po_x; kill -SEGV $$", "killed by SIGSEGV"),
        ("begin po_x; point ok po_y; end po_x", "not in the program's --list"),
    ],
)
def test_trouble_stands_though_the_check_passes_alone(tmp_path: Path, body: str, message: str) -> None:
    found, _ = results(tmp_path, f"{body}; good po_y")
    assert found["po_x"][0] in ("FAIL", "ERROR"), found
    assert message in found["po_x"][1]
    assert found["po_y"][0] == "PASS"
