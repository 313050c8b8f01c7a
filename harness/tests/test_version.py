"""The release is stated in ref/include/execmem/version.h; what cannot read it there says the same."""

from __future__ import annotations

import re
from pathlib import Path

import execmem_cts

ROOT = Path(__file__).resolve().parents[2]


def stated() -> str:
    text = (ROOT / "ref/include/execmem/version.h").read_text(encoding="utf-8")
    parts = dict(re.findall(r"^#define EXECMEM_VERSION_(MAJOR|MINOR|PATCH) +(\d+)$", text, re.MULTILINE))
    return ".".join(parts[name] for name in ("MAJOR", "MINOR", "PATCH"))


def test_the_package_has_the_librarys_version() -> None:
    assert execmem_cts.__version__ == stated()


def test_the_changelogs_newest_section_is_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (\S+)", text, re.MULTILINE)[0] in (stated(), "Unreleased")


def test_no_requirement_is_newer_than_the_release() -> None:
    release = tuple(int(part) for part in stated().split("."))
    for path in sorted((ROOT / "conformance/requirements").glob("*.toml")):
        for since in re.findall(r'^since = "([^"]*)"', path.read_text(encoding="utf-8"), re.MULTILINE):
            assert tuple(int(part) for part in since.split(".")) <= release, f"{path.name}: since {since}"
