"""The report as a page, without a browser: it says what the verdict says, holds every result, lets nothing in or out."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import foreign
import pytest
import test_limits
from test_gate import COMMAND, HEADER, NOTHING_REQUIRED, PORT, REQUIREMENT, ROOT, one
from test_verdict import PROFILE, made

from execmem_cts import manifest, requirements, results, tools, verdict
from execmem_cts.html import layouts, page, picture, trend
from execmem_cts.html.layouts import Arrow, Code, Kept, Layout, Place
from execmem_cts.model import Result
from execmem_cts.profile import Profile
from execmem_cts.report import Surroundings

AROUND = Surroundings(ROOT, {PORT.name: PORT}, requirements.load(ROOT), HEADER, {})
NASTY = "</script><img src=x onerror=alert(1)>\u2028<b>&"
LAYOUT = Layout(
    port=PORT.name,
    variant="plain",
    stub_page=16384,
    template="stub_x",
    pitch=16,
    slots=1024,
    data=16384,
    record=16384,
    record_size=24,
    code=(Code(0, "load a"), Code(4, "load <b>"), Code(8, "jump")),
    places=(Place("First", 16384, 8, True), Place("Second", 16392, 8, True), Place("Third", 16400, 8, False)),
    arrows=(
        Arrow(0, 16384, 8, "load", "First", (-1048576, 1048572), 16384, 1048572),
        Arrow(4, 65544, 8, "load", ""),
    ),
)


class Elements(HTMLParser):
    """Every element with its attributes, and the text of scripts by their type."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self._open = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self._open = dict(attrs).get("type") or tag
            self.texts[self._open] = ""

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts[self._open] += data

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style"):
            self._open = ""

    def the(self, name: str) -> dict[str, str | None]:
        (found,) = [attributes for tag, attributes in self.found if tag == name]
        return found


def rendered(found: list[Result], profile: Profile = NOTHING_REQUIRED, **more: Any) -> str:
    overall = more.pop("overall", None) or verdict.overall(found, profile)
    return page.render(page.Report(HEADER, found, overall, profile, AROUND, **more))


def data_of(text: str) -> dict[str, Any]:
    return json.loads(Elements(text).texts["application/json"])  # type: ignore[no-any-return]


SETS: dict[str, list[Result]] = {
    "conformant": [one("PASS"), one("NA", check="po_y")],
    "failed": [one("PASS"), one("FAIL", check="po_y", message="wrong"), one("FAIL", point="z", flaky=True)],
    "broken": [one("PASS"), one("ERROR", check="po_y", message="the emulator crashed")],
    "expected": [one("XFAIL", expected="known"), one("PASS", point="z")],
    "passed unexpectedly": [one("XPASS", expected="known")],
    "open": [made("PASS"), made("EMU", check="po_y")],
    "nothing": [],
}


@pytest.mark.parametrize("name", SETS)
def test_the_page_says_what_the_verdict_says(name: str) -> None:
    found = SETS[name]
    profile = PROFILE if name == "open" else NOTHING_REQUIRED
    overall = verdict.overall(found, profile)
    text = rendered(found, profile)
    body = Elements(text).the("body")
    assert (body["data-overall"], body["data-exit-status"]) == (overall.word, str(overall.exit_status))
    assert f'<strong id="overall">{overall.word}</strong>' in text and f'<p id="reason">{overall.reason}</p>' in text
    held = data_of(text)
    counted = {kind: held["verdict"].count(number) for number, kind in enumerate(held["verdicts"])}
    assert counted == overall.counts
    assert len(held["due"]) == overall.unverified
    red = [result for result in found if result.verdict in verdict.RED]
    assert text.count('<details class="failure"') == len(red)


def test_every_verdict_that_a_page_is_given_is_the_one_it_shows() -> None:
    """Whatever the results look like: the page has no opinion of its own."""
    for word, status in (("conformant", 0), ("not conformant", 1), ("error", 3), ("unverified", 4)):
        given = verdict.Overall(word, status, "because", {"PASS": 1})
        body = Elements(rendered([one("FAIL")], overall=given)).the("body")
        assert (body["data-overall"], body["data-exit-status"]) == (word, str(status))


def test_every_result_is_in_it_and_comes_out_as_it_was() -> None:
    found = [*SETS["failed"], one("PASS", variant="alloc", stub_page=0, os_page=65536, point="all")]
    held = data_of(rendered(found))
    for row, result in enumerate(found):
        port, subject, variant, stub, os_page, runner, command = held["cells"][held["cell"][row]]
        check, requirement = held["checks"][held["check"][row]]
        back = f"{port}/{subject}/{variant}-{stub}/{os_page}/{runner}/{check}.{held['points'][held['point'][row]]}"
        assert (back, requirement) == (result.key, result.requirement)
        assert held["verdicts"][held["verdict"][row]] == result.verdict
        assert command.endswith("--only CHECK.POINT")
        if result.message:
            assert held["messages"][held["message"][str(row)]] == result.message
    assert held["flaky"] == [2]


def test_what_results_say_is_text_and_nothing_else() -> None:
    found = [one("FAIL", message=NASTY, point="p<q", diagnostics={"expected": NASTY, "os_calls": NASTY})]
    text = rendered(found, notes=[NASTY])
    elements = Elements(text)
    assert [tag for tag, _ in elements.found].count("script") == 2
    assert not any(tag == "img" for tag, _ in elements.found)
    assert data_of(text)["messages"] == [NASTY]
    assert "onerror=alert(1)>" not in text.partition("<script")[0]


def test_nothing_is_loaded_and_one_script_may_run() -> None:
    text = rendered(SETS["failed"], kept=Kept([LAYOUT]))
    elements = Elements(text)
    for tag, attributes in elements.found:
        for name in ("src", "href", "action", "data", "poster", "srcset", "style"):
            value = attributes.get(name)
            assert value is None or value.startswith("#") or value == "data:,", f"{tag} {name}={value}"
        assert not any(name.startswith("on") for name in attributes)
    (policy,) = [a["content"] for t, a in elements.found if t == "meta" and a.get("http-equiv")]
    assert policy is not None and policy.startswith("default-src 'none'; ")
    for kind in ("style", "script"):
        digest = base64.b64encode(hashlib.sha256(elements.texts[kind].encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert not re.search(r"url\((?!#)|@import|fetch\(|XMLHttpRequest|innerHTML|eval\(", text)


def test_each_name_that_a_label_or_link_points_at_is_there() -> None:
    found = [one("FAIL", message="wrong"), one("PASS", point="z")]
    earlier = trend.compare([], found, (HEADER, HEADER), {"overall": "conformant", "reason": "r", "counts": {}})
    elements = Elements(rendered(found, kept=Kept([LAYOUT]), trend=earlier)).found
    ids = [attributes["id"] for _, attributes in elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for tag, attributes in elements:
        for name in ("aria-labelledby", "data-copy"):
            assert all(part in ids for part in (attributes.get(name) or "").split())
        href = attributes.get("href") or ""
        assert not href.startswith("#") or "=" in href or href[1:] in ids, href
        if tag == "svg":
            assert attributes.get("role") == "img" and attributes.get("aria-labelledby")


# ---- Pictures ----


def test_a_picture_shows_what_is_reached_and_what_is_not() -> None:
    drawn = picture.picture(LAYOUT)
    assert [line.kind for line in drawn.data] == ["field", "missed", "idle", "stray"]
    assert [arrow.kind for arrow in drawn.arrows] == ["hit", "stray"]
    first, second = drawn.arrows
    assert first.text == "+0x4000, up to +0xffffc" and second.text == "+0x10008, no limit"
    assert (first.y1, first.y2) == (drawn.code[0].y, drawn.data[0].y)
    assert (second.y1, second.y2) == (drawn.code[1].y, drawn.data[3].y)
    assert abs(first.at - second.at) >= 14 and drawn.height > max(line.y for line in drawn.data)
    assert "reaches First at a distance of 16384 bytes" in drawn.summary
    assert "reaches no field of the record at a distance of 65544 bytes" in drawn.summary
    text = rendered(SETS["conformant"], kept=Kept([LAYOUT]))
    assert "load &lt;b&gt;" in text and "<td>-1048576 to 1048572, holds 16384</td><td>1048572</td>" in text


def test_texts_of_arrows_keep_apart() -> None:
    arrows = tuple(Arrow(at, 16384 + at, 8, "load") for at in (0, 4, 8))
    code = tuple(Code(at, "load") for at in (8, 4, 0))  # so that all cross in one place
    places = sorted(arrow.at for arrow in picture.picture(replace(LAYOUT, arrows=arrows, code=code)).arrows)
    assert all(after - before >= 14 for before, after in zip(places, places[1:]))


# `ldr` (literal) reaches 1 MiB; the data page lies one stub page above.
ASSEMBLY = """
	.text
	.globl begin, end
begin:
.Lb:
	ldr x10, .Lb + {distance}
	ldr x9, .Lb + EXECMEM_STUB_PAGE + 8
	br x9
end:
"""


@pytest.mark.parametrize(("distance", "field", "last"), [("EXECMEM_STUB_PAGE", "Data", 1048572), ("65536", "", 0)])
def test_a_layout_is_what_the_object_says(distance: str, field: str, last: int, tmp_path: Path) -> None:
    bench = foreign.Bench(tmp_path, test_limits.ARM64, foreign.template(), ASSEMBLY.format(distance=distance))
    units = [(bench.template_set, foreign.PAGE, bench.assemble()), (bench.template_set, 65536, tmp_path / "not built")]
    (made_of,) = layouts.of_units(units, tools.find().objdump)
    assert [(c.at, c.text.split()[0]) for c in made_of.code] == [(0, "ldr"), (4, "ldr"), (8, "br")]
    assert [(p.name, p.distance) for p in made_of.places] == [("Data", foreign.PAGE), ("Target", foreign.PAGE + 8)]
    first, second = made_of.arrows
    assert first == Arrow(0, foreign.PAGE if field else 65536, 8, "load", field,
                          (-1048576, 1048572), first.distance, last)  # fmt: skip
    assert second == Arrow(4, foreign.PAGE + 8, 8, "load", "Target", (-1048576, 1048572), foreign.PAGE + 4, 1048568)


def test_a_layout_that_cannot_be_told_says_why(tmp_path: Path) -> None:
    bench = foreign.Bench(tmp_path, test_limits.ARM64, foreign.template(end="nowhere"), ASSEMBLY.format(distance=0))
    (made_of,) = layouts.of_units([(bench.template_set, foreign.PAGE, bench.assemble())], tools.find().objdump)
    assert "does not define nowhere" in made_of.problem and not made_of.arrows
    assert "does not define nowhere" in rendered(SETS["conformant"], kept=Kept([made_of]))


def test_layouts_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / layouts.FILE
    assert "no layouts.json" in layouts.read(path).missing
    layouts.write(path, [LAYOUT])
    assert layouts.read(path).layouts == [LAYOUT]
    for text, said in (('{"format": 7, "layouts": []}', "format 7, expected 1"), ("[]", "cannot be read"),
                       ('{"format": 1, "layouts": [{"port": "p"}]}', "write it anew")):  # fmt: skip
        path.write_text(text)
        with pytest.raises(manifest.ManifestError, match=said):
            layouts.read(path)


def test_a_page_without_layouts_says_why() -> None:
    text = rendered(SETS["conformant"], kept=Kept(missing="no layouts.json beside the results"))
    assert "no layouts.json beside the results" in text and "<svg" not in text


# ---- What changed ----

CHANGES = [
    ("PASS", "FAIL", "broke"),
    ("PASS", "ERROR", "broke"),
    ("XFAIL", "XPASS", "broke"),
    ("FAIL", "PASS", "mended"),
    ("FAIL", "XFAIL", "mended"),
    ("PASS", "EMU", "lost"),
    ("PASS", "SKIP", "lost"),
    ("NOTRUN", "PASS", "shown"),
    ("", "PASS", "new"),
    ("", "FAIL", "new"),
    ("PASS", "", "gone"),
    ("PASS", "PASS", ""),
    ("FAIL", "ERROR", ""),
    ("EMU", "SKIP", ""),
]


@pytest.mark.parametrize(("before", "after", "kind"), CHANGES)
def test_a_change_has_its_kind(before: str, after: str, kind: str) -> None:
    sides = [[one(verdict, message=f"m {verdict}")] if verdict else [] for verdict in (before, after)]
    found = trend.compare(sides[0], sides[1], ({}, {}), {})
    assert [change.kind for change in found.changes] == ([kind] if kind else [])
    if kind:
        (change,) = found.changes
        assert (change.before, change.after, change.key) == (before, after, one("PASS").key)


def test_a_renamed_check_is_compared_with_itself() -> None:
    old, new = [one("PASS", check="po_old")], [one("FAIL", check="po_new")]
    found = trend.compare(old, new, ({}, {}), {}, {"po_old": "po_new"})
    assert [(change.kind, change.before) for change in found.changes] == [("broke", "PASS")]
    assert [change.kind for change in trend.compare(old, new, ({}, {}), {}).changes] == ["gone", "new"]


def test_the_trend_tells_what_else_differs() -> None:
    headers = ({"emulators": {"a": "1", "b": "2"}, "seed": 1}, {"emulators": {"a": "1", "b": "3"}, "seed": 1})
    assert trend.compare([], [], headers, {}).differing == (("emulators", "b: 2", "b: 3"),)


# ---- The command ----


def stored(folder: Path, found: list[Result]) -> Path:
    results.write_all(folder, HEADER, found, NOTHING_REQUIRED, verdict.overall(found, NOTHING_REQUIRED))
    layouts.write(folder / layouts.FILE, [LAYOUT])
    return folder


def run(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(COMMAND), *argv], capture_output=True, text=True, timeout=120, check=False)


def test_the_command_writes_the_page_and_ends_as_the_verdict(tmp_path: Path) -> None:
    now, then = stored(tmp_path / "now", SETS["failed"]), stored(tmp_path / "then", SETS["conformant"])
    target = tmp_path / "new" / "page.html"
    done = run("report", "--results", str(now), "--html", str(target), "--since", str(then))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "not conformant: 2 failed, 1 of them flaky" in done.stdout
    text = target.read_text()
    assert Elements(text).the("body")["data-exit-status"] == "1"
    assert "<svg" in text and 'id="trend"' in text and f"<code>{REQUIREMENT}</code>" in text
    assert "1</strong> broke" in text


def test_a_trend_needs_a_page_and_results(tmp_path: Path) -> None:
    now = stored(tmp_path / "now", SETS["conformant"])
    done = run("report", "--results", str(now), "--since", str(now))
    assert done.returncode == 2 and "give --html FILE as well" in done.stderr
    done = run("report", "--results", str(now), "--html", str(tmp_path / "p"), "--since", str(tmp_path / "nothing"))
    assert done.returncode == 2 and "nothing" in done.stderr
