"""Templates that are not ours: every layout that can be described, and the two manifests that are shipped, on tiny
stand-ins for the checkouts that they describe."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest

from execmem_cts import manifest

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = Path(__file__).parent / "fixtures"
SUBJECTS = ROOT / "conformance" / "subjects"
PROOFS = ("PO-001", "PO-003", "PO-004", "PO-005", "PO-011", "PO-021", "PO-022", "PO-024")
RED = {"FAIL", "ERROR", "NOTRUN"}
Verdicts = dict[tuple[str, str], dict[str, set[str]]]


def described(path: Path) -> list[tuple[str, str]]:
    """Port and name of each template that a manifest describes."""
    ports = tomllib.loads(path.read_text())["ports"]
    return [(port, template["name"]) for port, table in ports.items() for template in table["template"]]


def called(path: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    command = [str(ROOT / "harness" / "execmem-cts"), "check-templates", "--manifest", str(path), "--no-native"]
    return subprocess.run([*command, *argv], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)


def judged(results: Path, path: Path, *argv: str) -> tuple[str, Verdicts]:
    """What was printed, and by (port, variant): check.point to the verdicts of it."""
    only = [part for requirement in PROOFS for part in ("--only", requirement)]
    done = called(path, "--results", str(results), *only, *argv)
    found: Verdicts = defaultdict(lambda: defaultdict(set))
    for line in (results / "results.jsonl").read_text().splitlines():
        record = json.loads(line)
        if "check" in record and record["requirement"] in (*PROOFS, "-"):
            found[record["port"], record["variant"]][f"{record['check']}.{record['point']}"].add(record["verdict"])
    return done.stdout + done.stderr, found


def proved(verdicts: dict[str, set[str]], template: str) -> None:
    """Nothing is red, and the oracles have judged this template."""
    assert not {point: found for point, found in verdicts.items() if found & RED}
    for check in ("po_fault_address", "po_decode_access", "po_slot_size", "po_path_carries", "po_preserved"):
        assert "PASS" in verdicts[f"{check}.{template}"], check


@pytest.fixture(scope="module")
def layouts(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Verdicts]:
    return judged(tmp_path_factory.mktemp("layouts"), FIXTURES / "layouts" / "subject.toml")


LAYOUTS = described(FIXTURES / "layouts" / "subject.toml")


@pytest.mark.long
@pytest.mark.xdist_group("layouts")
@pytest.mark.parametrize(("port", "template"), LAYOUTS)
def test_a_layout_can_be_described(layouts: tuple[str, Verdicts], port: str, template: str) -> None:
    proved(layouts[1][port, "right"], template)


@pytest.mark.long
@pytest.mark.xdist_group("layouts")
@pytest.mark.parametrize(("port", "template"), LAYOUTS)
def test_a_mistake_in_the_layout_is_red(layouts: tuple[str, Verdicts], port: str, template: str) -> None:
    verdicts = layouts[1][port, "wrong"]
    for check in ("po_fault_address", "po_decode_access"):
        assert verdicts[f"{check}.{template}"] == {"FAIL"}, layouts[0]


@pytest.fixture(scope="module")
def dotnet(tmp_path_factory: pytest.TempPathFactory) -> Verdicts:
    path = SUBJECTS / "dotnet-runtime" / "subject.toml"
    return judged(tmp_path_factory.mktemp("dotnet"), path, "--checkout", str(FIXTURES / "dotnet"))[1]


@pytest.mark.long
@pytest.mark.xdist_group("dotnet")
@pytest.mark.parametrize(("port", "template"), described(SUBJECTS / "dotnet-runtime" / "subject.toml"))
def test_the_runtimes_manifest_and_shims_work(dotnet: Verdicts, port: str, template: str) -> None:
    proved(dotnet[port, "plain"], template)


@pytest.fixture(scope="module")
def libffi(tmp_path_factory: pytest.TempPathFactory) -> Verdicts:
    path = SUBJECTS / "libffi" / "subject.toml"
    return judged(tmp_path_factory.mktemp("libffi"), path, "--checkout", str(FIXTURES / "libffi"))[1]


@pytest.mark.long
@pytest.mark.xdist_group("libffi")
@pytest.mark.parametrize(("port", "template"), described(SUBJECTS / "libffi" / "subject.toml"))
def test_libffis_manifest_and_shims_work(libffi: Verdicts, port: str, template: str) -> None:
    found = [verdicts for (name, _), verdicts in libffi.items() if name == port]
    assert found
    for verdicts in found:
        proved(verdicts, template)


@pytest.mark.long
@pytest.mark.xdist_group("dotnet")  # the same subject, built in the same folder
def test_a_distance_four_times_too_large_is_red_and_named(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "dotnet", tmp_path / "checkout")
    source = tmp_path / "checkout" / "src" / "coreclr" / "vm" / "loongarch64" / "thunktemplates.S"
    text = source.read_text()
    assert text.count("0x1000") == 1
    source.write_text(text.replace("0x1000", "0x4000"))
    path = SUBJECTS / "dotnet-runtime" / "subject.toml"
    argv = ["--checkout", str(tmp_path / "checkout"), "--port", "loongarch64"]  # the other ports' files may be missing
    for other in source.parents[1].iterdir():
        if other != source.parent:
            shutil.rmtree(other)
    said, found = judged(tmp_path / "results", path, *argv)
    assert found["loongarch64", "plain"]["po_fault_address.stub_precode"] == {"FAIL"}
    assert found["loongarch64", "plain"]["po_decode_access.stub_precode"] == {"FAIL"}
    assert "slot+0x4008" in said and "slot+0x10008" in said


@pytest.mark.parametrize("subject", ["dotnet-runtime", "libffi"])
@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([], "give --checkout DIRECTORY"),
        (["--checkout", "/nonexistent"], "'/nonexistent' does not exist"),
        (["--checkout", str(FIXTURES / "layouts")], "--checkout must name the root of the checkout"),
    ],
)
def test_a_checkout_that_is_none_is_named(subject: str, argv: list[str], said: str) -> None:
    done = called(SUBJECTS / subject / "subject.toml", *argv)
    assert done.returncode == 2, done.stdout + done.stderr
    assert said in done.stderr


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('end = "at_end_end"', 'end = "at_end_end"\ncode_size = 13', "expected one of end and code_size"),
        ('end = "at_end_end"\n', "", "expected one of end and code_size"),
        ("pushed = 16", "pushed = 12", "expected up to 4 words of 8 bytes, found 12"),
        ('"sp+8" = "Data"', '"sp+16" = "Data"', "is no word of the 16 bytes that the path pushes"),
        ("stub_pages = [4096]", 'stub_pages = [4096]\nscratch = ["rax"]', "is no register that the port preserves"),
    ],
)
def test_a_mistake_in_a_description_is_named(tmp_path: Path, old: str, new: str, said: str) -> None:
    text = (FIXTURES / "layouts" / "subject.toml").read_text()
    assert old in text
    shutil.copytree(FIXTURES / "layouts", tmp_path / "layouts")
    path = tmp_path / "layouts" / "subject.toml"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(manifest.ManifestError, match=re.escape(said)):
        manifest.load_subject(path, ROOT, manifest.discover_ports(ROOT))
