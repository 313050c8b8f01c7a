"""Ports outside of the tree: found, judged as those of the tree are, and each mistake told in one line."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from port_cases import MOVED, ROOT, call, take_out

from execmem_cts import faults, manifest, port_path
from execmem_cts.source import ManifestError

# Families without allocators: what they judge differs from port to port the most, and takes seconds.
PROFILE = """\
schema = 1
name = "templates"
[[require]]
requirements = ["ABI-*", "PO-*"]
levels = ["MUST"]
[[unshown]]
requirement = "PO-002"
runner = "native"
reason = "as in the profile conform"
"""


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A clean tree without the port, and the folder that has it."""
    tree, folder = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("mine")
    take_out(tree, folder)
    return tree, folder


@pytest.mark.long
@pytest.mark.xdist_group("apart")
def test_one_command_gates_a_port_that_is_not_in_the_tree(apart: tuple[Path, Path]) -> None:
    tree, folder = apart
    assert not list(tree.glob(f"*/{MOVED}*")), "the tree still has files of the port"
    assert f"--port {MOVED}: no such port" in call(tree, "run", "--port", MOVED).stderr
    profile = folder / "profile.toml"
    profile.write_text(PROFILE)
    options = ["--port", MOVED, "--family", "PO", "--family", "ABI"]
    done = call(tree, "gate", "--port-path", str(folder), "--profile", str(profile), "--", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "conformant: profile templates" in done.stdout
    assert not list(tree.glob(f"*/{MOVED}*/port.toml")), "the tree was changed"


@pytest.mark.long
@pytest.mark.xdist_group("apart")
def test_the_other_commands_know_it_as_well(apart: tuple[Path, Path]) -> None:
    tree, folder = apart
    given = ["--port-path", str(folder)]
    assert f"{MOVED}:" in call(tree, "ports", *given).stdout
    assert f"{MOVED}:" in call(tree, "ports", EXECMEM_PORT_PATH=str(folder)).stdout
    assert f"{MOVED}:" not in call(tree, "ports").stdout
    assert call(tree, "explain", "PO-001", *given).returncode == 0
    narrow = ["--port", MOVED, "--only", "po_decode_access", "--stub-page", "16K"]
    done = call(tree, "check-templates", "--manifest", "ref", *given, *narrow)
    assert done.returncode == 4 and "unverified" in done.stdout and "FAIL" not in done.stdout, done.stdout
    listed = call(tree, "list", "--port", MOVED, *given)
    assert listed.returncode == 0 and "po_fault_address" in listed.stdout, listed.stderr


@pytest.mark.long
@pytest.mark.xdist_group("apart")
def test_what_it_fails_is_to_be_repeated_with_its_folder(apart: tuple[Path, Path], tmp_path: Path) -> None:
    tree, folder = apart
    broken = tmp_path / "broken"
    shutil.copytree(folder, broken)
    path = broken / "asm" / f"{MOVED}.S"
    path.write_text(path.read_text().replace("EXECMEM_STUB_PRECODE_TARGET(t1)", "EXECMEM_STUB_PRECODE_TYPE(t1)"))
    narrow = ["--port", MOVED, "--only", "po_decode_access", "--stub-page", "16K"]
    done = call(tree, "run", "--port-path", str(broken), *narrow)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"rerun:    harness/execmem-cts run --port-path {broken} --port {MOVED}" in done.stdout


@pytest.mark.long
@pytest.mark.xdist_group("apart")
def test_faults_are_planted_on_it(apart: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree, folder = apart
    monkeypatch.setenv(port_path.VARIABLE, str(folder))
    fault = next(f for f in faults.load_all(tree) if f.name == f"{MOVED}-missing-fence")
    outcome = faults.run_one(tree, tmp_path, fault, fault.plantings[0])
    assert not outcome.problems, outcome.output
    assert "PO-024" in outcome.failed


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A folder with one port."""
    shutil.copytree(ROOT / "arch" / MOVED, tmp_path / "arch" / "mine")
    text = (tmp_path / "arch" / "mine" / port_path.MANIFEST).read_text()
    (tmp_path / "arch" / "mine" / port_path.MANIFEST).write_text(text.replace(f'"{MOVED}"', '"mine"', 1))
    return tmp_path


def test_a_folder_is_named_by_option_or_environment(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(port_path.VARIABLE, f"{small}:")
    ports = manifest.discover_ports(ROOT)
    assert ports["mine"].templates == small / "asm" / "mine.S" and list(ports) == sorted(ports)
    port_path.extend([small, small / "." / "arch" / ".."])
    assert port_path.folders() == (small,) and port_path.options() == ["--port-path", str(small)]


def bare(folder: Path) -> str:
    (folder / "arch" / "half").mkdir()
    (folder / "arch" / "half" / "abi.h").touch()
    return str(folder)


def twice(folder: Path) -> str:
    shutil.copytree(folder / "arch", folder / "other" / "arch")
    return f"{folder}:{folder / 'other'}"


def of_the_tree(folder: Path) -> str:
    (folder / "arch" / "mine").rename(folder / "arch" / MOVED)
    return str(folder)


def edited(find: str, replace: str) -> Callable[[Path], str]:
    def edit(folder: Path) -> str:
        path = folder / "arch" / "mine" / port_path.MANIFEST
        path.write_text(path.read_text().replace(find, replace, 1))
        return str(folder)

    return edit


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        (lambda folder: f"{folder}/nothing", "nothing: no such folder; name the one that holds arch/<port>/port.toml"),
        (lambda folder: f"{folder}/arch/mine", "no arch/<port>/port.toml in it; name the folder above arch/, "),
        (lambda folder: f"{folder}/arch", "no arch/<port>/port.toml in it; `execmem-cts new-port` writes a port"),
        (bare, "arch/half: a port's folder without its manifest, port.toml; `execmem-cts new-port half ...` writes"),
        (twice, "port 'mine' is there twice: "),
        (of_the_tree, f"port '{MOVED}' is there twice: "),
        (edited("schema = 1", "schema = 2"), "port.toml:2: schema: expected 1, found 2; use a newer execmem-cts"),
        (edited('"mine"', '"yours"'), "name: expected 'mine', the folder's name, found 'yours'; rename one of them"),
        (edited("triple", "tripel"), "target.tripel: unknown key 'tripel'; did you mean 'triple'?"),
    ],
)
def test_a_mistake_is_told_in_one_line(small: Path, break_it: Callable[[Path], str], said: str) -> None:
    done = call(ROOT, "ports", EXECMEM_PORT_PATH=break_it(small))
    assert done.returncode == 2, done.stderr
    assert said in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


def test_a_folder_of_the_tree_without_a_manifest_is_told(tmp_path: Path) -> None:
    bare(shutil.copytree(ROOT / "arch", tmp_path / "arch").parent)
    with pytest.raises(ManifestError, match="arch/half: a port's folder without its manifest"):
        manifest.discover_ports(tmp_path)


def test_faults_of_one_name_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / faults.FAULTS).mkdir(parents=True)
    (tmp_path / faults.FAULTS / "wrong-field.toml").touch()
    monkeypatch.setenv(port_path.VARIABLE, str(tmp_path))
    with pytest.raises(faults.FaultError, match="has this name; begin it with the port's"):
        faults.load_all(ROOT)
