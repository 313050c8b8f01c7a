"""The parser of what programs print accepts the format and nothing else."""

from __future__ import annotations

import pytest

from execmem_cts import ktap

GOOD = """\
KTAP version 1
1..4
ok 1 - po_a.stub
not ok 2 - po_a.fixup
  ---
  requirement: PO-001
  message: an access: with a colon
  quoted: "two\\nlines"
  empty: 
  os_calls: mmap = 0x1000
  ...
ok 3 - po_a.counting # SKIP NA: not claimed
ok 4 - po_a.closure # SKIP EMU: the emulator cannot
# a comment
# seen os_page=4096 stub_page=16384
# complete nonce=ab12 points=4 assertions=77
"""


def test_everything_is_read() -> None:
    output = ktap.parse(GOOD)
    assert [point.verdict for point in output.points] == ["PASS", "FAIL", "NA", "EMU"]
    failed = output.points[1]
    assert failed.name == "po_a.fixup"
    assert failed.diagnostics["message"] == "an access: with a colon"
    assert failed.diagnostics["quoted"] == "two\nlines"
    assert failed.diagnostics["empty"] == ""
    assert output.points[2].reason == "not claimed"
    assert (output.os_page, output.stub_page) == (4096, 16384)
    assert output.complete and output.nonce == "ab12" and output.assertions == 77


@pytest.mark.parametrize(
    ("find", "replace", "expected"),
    [
        ("KTAP version 1", "TAP version 13", "line 1: expected `KTAP version 1`"),
        ("1..4\n", "", "a point before the plan"),
        ("1..4", "1..4\n1..4", "a second plan"),
        ("1..4", "1..5", "the plan has 5 points, 4 were reported"),
        ("points=4", "points=3", "`# complete` counts 3"),
        ("ok 3 - po_a.counting", "ok 4 - po_a.counting", "expected point 3, found 4"),
        ("po_a.closure", "po_a.stub", "reported twice"),
        ("  ...\n", "", "expected `  key: value`"),
        ("# SKIP NA: not claimed", "# SKIP", "expected `# SKIP NA: reason`"),
        ("# SKIP NA: not claimed", "# TODO later", "expected `# SKIP NA: reason`"),
        ("# seen os_page=4096 stub_page=16384\n", "", "no `# seen` line"),
        ("ok 1 - po_a.stub", "fine 1 - po_a.stub", "not KTAP"),
        ("assertions=77\n", "assertions=77\nok 5 - po_a.late\n", "text behind the `# complete` line"),
    ],
)
def test_what_is_not_the_format_is_refused(find: str, replace: str, expected: str) -> None:
    assert find in GOOD
    with pytest.raises(ktap.KtapError, match=expected):
        ktap.parse(GOOD.replace(find, replace))


def test_what_came_before_a_mistake_is_kept() -> None:
    with pytest.raises(ktap.KtapError) as raised:
        ktap.parse(GOOD.replace("ok 3 - po_a.counting", "Segmentation fault"))
    assert [point.name for point in raised.value.args[1].points] == ["po_a.stub", "po_a.fixup"]


def test_an_unfinished_program_is_not_complete() -> None:
    cut = GOOD.split("# complete")[0]
    assert not ktap.parse(cut).complete


def test_silence_is_an_error() -> None:
    with pytest.raises(ktap.KtapError):
        ktap.parse("")
