"""A failure that does not come again is told as such, and stays red."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_runner import PASS, Maker
from test_verdict import PROFILE

from execmem_cts import flaky, runner, verdict

FAIL = PASS.replace("ok 1", "not ok 1") + "; exit 1"
COUNTED = "n=$(cat {0} 2>/dev/null || echo 0); echo $((n + 1)) >{0}\n"


@pytest.mark.parametrize(
    ("first", "then", "found"),
    [
        (FAIL, PASS, True),
        ("kill -SEGV $$", PASS, True),
        (FAIL, FAIL, False),
        (FAIL, "kill -SEGV $$", False),
        (FAIL, PASS.replace("end 1", "end 1 0"), False),
    ],
    ids="passes passes-after-crash fails crashes asserts-nothing".split(),
)
def test_what_failed_is_run_once_more(tmp_path: Path, first: str, then: str, found: bool) -> None:
    count = tmp_path / "count"
    body = COUNTED.format(count) + f'if [ "$n" = 0 ]; then {first}; else {then}; fi'
    item = Maker(tmp_path)(body)
    results = runner.run_item(item)
    flaky.classify([item], results)
    (result,) = results
    assert count.read_text() == "2\n"
    assert (result.verdict, result.flaky) == ("FAIL", found)
    assert result.message.endswith(flaky.SAID) == found
    assert verdict.overall(results, PROFILE).exit_status == 1


def test_what_passed_is_not_run_again(tmp_path: Path) -> None:
    count = tmp_path / "count"
    item = Maker(tmp_path)(COUNTED.format(count) + PASS)
    results = runner.run_item(item)
    flaky.classify([item], results)
    assert count.read_text() == "1\n" and not results[0].flaky


def test_what_passes_alone_and_not_with_others_is_flaky_without_being_asked(tmp_path: Path) -> None:
    body = """
case $only in
po_x) echo "KTAP version 1"; echo "1..2"; echo "ok 1 - po_x.one"; kill -SEGV $$ ;;
*) echo "KTAP version 1"; echo "1..1"; echo "ok 1 - $only"; end 1 ;;
esac
"""
    results = runner.run_item(Maker(tmp_path)(body, points=("one", "two")))
    assert [result.flaky for result in results] == [False, True]


def test_a_check_of_one_point_is_run_again_at_that_point(tmp_path: Path) -> None:
    body = 'echo "$only" >>{0}; {1}'.format(tmp_path / "asked", FAIL)
    item = Maker(tmp_path)(body, points=("one", "two"), only="one")
    flaky.classify([item], runner.run_item(item))
    assert (tmp_path / "asked").read_text() == "po_x.one\n" * 2
