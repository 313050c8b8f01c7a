"""The page in a browser: it renders, filters work, keys reach everything, nothing is complained of, no request leaves."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from test_page import AROUND, HEADER, LAYOUT, NASTY, NOTHING_REQUIRED, one
from test_verdict import made

from execmem_cts import verdict
from execmem_cts.html import page, trend
from execmem_cts.html.layouts import Kept

PROGRAMS = {"chromium": "chromium", "chromedriver": "chromium-driver"}
pytestmark = pytest.mark.xdist_group("browser")  # one browser, started once

RESULTS = [
    *[one("PASS", check=f"po_{name}", point=point) for name in "ab" for point in ("one", "two")],
    made("PASS", "WX-001", port="p", variant="alloc", stub_page=0, os_page=65536, point="all", check="wx_c"),
    *[one("FAIL", check="po_d", point=f"p{n}", message=NASTY if n == 0 else "wrong", port="other") for n in range(3)],
    one("EMU", check="po_e", message="cannot be seen"),
    *[one("PASS", check="po_many", point=f"m{n:04}", port="third") for n in range(700)],
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    missing = [package for program, package in PROGRAMS.items() if shutil.which(program) is None]
    try:
        from selenium import webdriver
        from selenium.webdriver.chrome.options import Options
        from selenium.webdriver.chrome.service import Service
    except ImportError:
        missing.append("python3-selenium")
    if missing:
        pytest.fail(f"missing: {' '.join(missing)}; toolchains/setup --for test installs them")
    options = Options()
    options.binary_location = shutil.which("chromium") or ""
    for argument in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "window-size=1200,1000"):
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
    driver.set_page_load_timeout(120)
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "report.html"
    before = [one("PASS", check="po_d", point="p0", port="other")]
    said = {"overall": "conformant", "reason": "profile any", "counts": {"PASS": 1}}
    changed = trend.compare(before, RESULTS, (HEADER, HEADER), said)
    overall = verdict.overall(RESULTS, NOTHING_REQUIRED)
    page.write(path, page.Report(HEADER, RESULTS, overall, NOTHING_REQUIRED, AROUND, Kept([LAYOUT]), changed))
    return path.as_uri()


@pytest.fixture
def opened(browser: Any, written: str) -> Iterator[Any]:
    """The page, fresh. What it complained of, or asked of anybody, fails the test."""
    browser.get("about:blank")
    browser.get_log("browser"), browser.get_log("performance")
    browser.get(written)
    assert browser.execute_script("return document.body.dataset.ready") == "yes"
    yield browser
    assert browser.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    assert {url.partition("#")[0] for url in asked if not url.startswith("data:")} == {written}


def shown(driver: Any) -> str:
    return str(driver.execute_script("return document.getElementById('shown').textContent"))


def choose(driver: Any, name: str, value: str) -> None:
    from selenium.webdriver.support.ui import Select

    driver.execute_script(
        "window.told = 0; document.getElementById('filters').addEventListener('change', () => { told++ })"
    )
    Select(driver.find_element("name", name)).select_by_value(value)
    wait(driver, lambda: bool(driver.execute_script("return told")))


def visible(driver: Any, selector: str) -> list[str]:
    """The text of the elements that can be seen."""
    found = driver.execute_script(
        "return [...document.querySelectorAll(arguments[0])].filter((e) => e.checkVisibility()).map((e) => e.innerText)",
        selector,
    )
    return [str(text) for text in found]


def test_it_says_the_verdict_and_all_parts_are_there(opened: Any) -> None:
    assert opened.title == "execmem-cts: not conformant"
    assert visible(opened, "h1") == ["execmem-cts: not conformant"] and visible(opened, "#reason") == ["3 failed"]
    assert [name.split(" 20")[0] for name in visible(opened, "h2")] == [
        "Since an earlier run",
        "Failures",
        "Matrix",
        "Results",
        "Templates: where each access reaches",
        "The run",
    ]
    assert shown(opened) == f"All {len(RESULTS)} results."
    assert not opened.execute_script("return document.querySelector('img, iframe, link[rel=stylesheet]')")


FILTERS: list[tuple[str, str, Callable[[Any], bool]]] = [
    ("port", "other", lambda r: r.port == "other"),
    ("family", "WX", lambda r: r.requirement.startswith("WX-")),
    ("verdict", "EMU", lambda r: r.verdict == "EMU"),
    ("verdict", "red", lambda r: r.verdict == "FAIL"),
    ("variant", "alloc", lambda r: r.variant == "alloc"),
    ("stub", "0", lambda r: r.stub_page == 0),
    ("os", "65536", lambda r: r.os_page == 65536),
]


@pytest.mark.parametrize(("name", "value", "fits"), FILTERS)
def test_a_filter_leaves_what_fits(opened: Any, name: str, value: str, fits: Callable[[Any], bool]) -> None:
    choose(opened, name, value)
    wanted = [result for result in RESULTS if fits(result)]
    assert 0 < len(wanted) < len(RESULTS)
    assert shown(opened) == f"{len(wanted)} of {len(RESULTS)} results."
    assert sorted(visible(opened, "#tree tbody th")) == sorted(result.point for result in wanted)
    assert opened.execute_script("return location.hash") == f"#{name}={value}"


def test_filters_join_and_are_cleared(opened: Any) -> None:
    choose(opened, "port", "other")
    opened.find_element("name", "q").send_keys("PO_D.P1")
    wait(opened, lambda: shown(opened).startswith("1 of"))
    assert visible(opened, "#tree tbody th") == ["p1"]
    assert visible(opened, ".matrix thead th[data-port]") == ["other\n16K"]
    opened.find_element("css selector", "button[type=reset]").click()
    wait(opened, lambda: shown(opened).startswith("All"))
    assert len(visible(opened, ".matrix thead th[data-port]")) > 1


def wait(driver: Any, holds: Callable[[], bool]) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(driver, 60, 0.1).until(lambda _: holds())


def test_a_filter_leaves_rows_of_the_matrix_failures_and_pictures(opened: Any) -> None:
    rows = visible(opened, ".matrix tbody th")
    choose(opened, "family", "WX")
    assert visible(opened, ".matrix tbody th") == ["WX-001"] and len(rows) > 1
    assert visible(opened, ".failure") == []
    choose(opened, "family", "")
    assert visible(opened, ".matrix tbody th") == rows and len(visible(opened, ".failure")) == 2
    choose(opened, "port", "other")
    assert visible(opened, "details.port") == [] and len(visible(opened, ".failure")) == 2


def test_an_address_is_a_view(opened: Any, written: str) -> None:
    opened.get(f"{written}#port=other&q=po_d")
    wait(opened, lambda: shown(opened) == f"3 of {len(RESULTS)} results.")
    assert opened.find_element("name", "q").get_attribute("value") == "po_d"


def test_the_tree_goes_from_port_to_check(opened: Any) -> None:
    names = []
    for depth in range(4):
        path = "#tree > " + "details > div > " * depth + "details > summary"
        wait(opened, lambda: bool(visible(opened, path)))
        summary = [s for s in opened.find_elements("css selector", path) if s.is_displayed()][-1]
        names.append(summary.text.split()[0])
        if depth == 0:  # what is alone in its level opens with what it is in
            summary.click()
    assert names[0] == "third" and names[1] == "PO" and names[2].startswith("PO-") and names[3] == "po_many"
    wait(opened, lambda: len(visible(opened, "#tree tbody tr")) == 300)
    more = [b for b in opened.find_elements("css selector", "#tree button") if b.text.startswith("Show")]
    assert [button.text for button in more] == ["Show 300 of 400 more"]
    more[0].click()
    more[0].click()
    assert len(visible(opened, "#tree tbody tr")) == 700 and not more[0].is_displayed()


def test_keys_alone_reach_and_open_a_result(opened: Any) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    body = opened.find_element(By.TAG_NAME, "body")
    body.send_keys(Keys.TAB)
    assert opened.switch_to.active_element.text == "Skip to the results"
    opened.switch_to.active_element.send_keys(Keys.ENTER)
    reached = []
    for _ in range(12):
        opened.switch_to.active_element.send_keys(Keys.TAB)
        active = opened.switch_to.active_element
        reached.append(active.get_attribute("name") or active.tag_name)
        if active.tag_name == "summary":
            break
    assert reached == ["q", "port", "family", "verdict", "runner", "variant", "stub", "os", "button", "summary"]
    opened.switch_to.active_element.send_keys(Keys.ENTER)
    assert opened.execute_script("return document.activeElement.parentElement.open")


def test_everything_that_can_be_used_has_a_name(opened: Any) -> None:
    """As a screen reader computes it: the browser's own accessibility tree."""
    choose(opened, "verdict", "red")
    opened.execute_script("document.querySelectorAll('details').forEach((d) => { d.open = true })")
    tree = opened.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    used = {"button", "link", "combobox", "searchbox", "DisclosureTriangle", "img", "image", "table", "region", "form"}
    roles = [(n["role"]["value"], n.get("name", {}).get("value", "")) for n in tree if not n.get("ignored")]
    assert {"button", "link", "combobox", "searchbox", "status", "main", "navigation"} <= {role for role, _ in roles}
    assert any(role in ("img", "image") and "stub_x on" in name for role, name in roles)
    assert [role for role, name in roles if role in used and not name.strip()] == []


def test_a_failure_is_copied(opened: Any) -> None:
    opened.execute_script(
        "window.taken = []; navigator.clipboard.writeText = (text) => { window.taken.push(text); return Promise.resolve() }"
    )
    for button in opened.find_elements("css selector", "#failure-0 button"):
        button.click()
    wait(opened, lambda: opened.execute_script("return document.getElementById('said').textContent") == "Copied.")
    block, rerun = opened.execute_script("return window.taken")[:2]
    assert block.startswith("FAIL ") and "mend:" in block and NASTY.partition("\u2028")[0] in block
    assert rerun.startswith("harness/execmem-cts run --port other") and rerun.endswith("--only po_d.p0")
    choose(opened, "port", "other")
    opened.find_element("css selector", "#tree tbody button").click()
    wait(opened, lambda: len(opened.execute_script("return window.taken")) > 2)
    assert opened.execute_script("return window.taken").pop() == rerun


def contrast(one: list[float], other: list[float]) -> float:
    """As WCAG 2.1 defines it."""

    def luminance(color: list[float]) -> float:
        linear = [c / 255 / 12.92 if c / 255 <= 0.04045 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in color]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("system", ["light", "dark"])
@pytest.mark.parametrize("chosen", ["", "light", "dark"])
def test_all_text_can_be_read_in_both_colours(opened: Any, system: str, chosen: str) -> None:
    features = [{"name": "prefers-color-scheme", "value": system}]
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    button = opened.find_element("id", "theme")
    while not button.text.endswith(chosen or "the system"):
        button.click()
    colors = opened.execute_script(
        """const number = (text) => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
        const style = getComputedStyle(document.documentElement);
        const probe = document.body.appendChild(document.createElement("span"));
        const found = {};
        for (const name of ["back", "raised", "text", "quiet", "link", "good", "bad", "broken", "open"]) {
            const rule = document.styleSheets[0].insertRule(`.probe { color: var(--${name}) }`);
            probe.className = "probe";
            found[name] = number(getComputedStyle(probe).color);
            document.styleSheets[0].deleteRule(rule);
        }
        probe.remove();
        found.body = number(getComputedStyle(document.body).backgroundColor);
        return found;"""
    )
    assert colors["body"] == colors["back"]
    assert (sum(colors["back"]) > 384) == ((chosen or system) == "light")
    for name in ("text", "quiet", "link", "good", "bad", "broken", "open"):
        for ground in ("back", "raised"):
            assert contrast(colors[name], colors[ground]) >= 4.5, f"{name} on {ground}"


def test_a_picture_is_drawn(opened: Any) -> None:
    opened.execute_script("document.querySelectorAll('#pictures details').forEach((d) => { d.open = true })")
    box = opened.execute_script("return document.querySelector('svg').getBoundingClientRect().toJSON()")
    assert box["width"] > 300 and box["height"] > 50
    # An arrow ends at the left edge of the data page, at the height of the field's text.
    ends = opened.execute_script(
        """const svg = document.querySelector("svg");
        const end = (path) => path.getPointAtLength(path.getTotalLength());
        const field = [...svg.querySelectorAll("text")].find((t) => t.textContent.startsWith("First")).getBBox();
        const at = end(svg.querySelector("path.hit[marker-end]"));
        return [at.x, at.y, field.x, field.y, field.y + field.height];"""
    )
    assert ends[0] < ends[2] < ends[0] + 30 and ends[3] < ends[1] < ends[4]
    assert opened.execute_script("return document.querySelectorAll('svg path.stray[marker-end]').length") == 1


def test_without_scripts_the_verdict_and_the_matrix_are_there(browser: Any, written: str) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(written)
        text = browser.find_element("tag name", "body").text
        assert "not conformant" in text and "The tree of results needs scripts." in text and "po_d" in text
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
