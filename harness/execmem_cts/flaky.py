"""What failed is run once more, to be told apart: always red, or flaky. Either way it stays a failure."""

from __future__ import annotations

from collections.abc import Sequence

from . import process, runner
from .model import Result, Verdict
from .runner import Item

SAID = "flaky: it passed when it was run again"


def classify(items: Sequence[Item], results: Sequence[Result], run: runner.Run = process.run) -> None:
    """Marks failures that do not come again. One process more for each check that failed, whatever came of its points.

    What already failed in one way of running and passed in another is flaky without being asked.
    """
    for item in items:
        failed = [
            result
            for result in results
            if result.check == item.check
            and result.verdict == Verdict.FAIL.value
            and not result.flaky
            and (not item.only or result.point == item.only)
        ]
        if not failed:
            continue
        try:
            verdicts = runner.again(item, run)
        except OSError:
            continue
        for result in failed:
            if verdicts.get(result.point) == Verdict.PASS.value:
                result.flaky = True
                result.message = f"{result.message}; {SAID}"
