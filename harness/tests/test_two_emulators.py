"""ci/two-emulators: what it lets differ between two versions, and what it does not."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

import pytest
from test_verdict import made

from execmem_cts import manifest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "ci" / "two-emulators"


def load() -> Any:
    loader = SourceFileLoader("two_emulators", str(SCRIPT))
    spec = importlib.util.spec_from_loader("two_emulators", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["two_emulators"] = module
    loader.exec_module(module)
    return module


two = load()


def side(kind: str, **more: object) -> dict[str, Any]:
    message = "probed now" if kind == "EMU" else "wrong" if kind == "FAIL" else ""
    return two.judged([made(kind, **{"message": message, **more})] if kind else [])  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("first", "second", "follows", "wrong"),
    [
        ("PASS", "PASS", 0, ""),
        ("EMU", "EMU", 0, ""),
        ("EMU", "PASS", 1, ""),
        ("PASS", "EMU", 1, ""),
        ("EMU", "FAIL", 0, "FAIL under the second version: wrong"),
        ("FAIL", "FAIL", 0, "FAIL under the first version: wrong"),
        ("PASS", "ERROR", 0, "ERROR under the second version"),
        ("PASS", "NA", 0, "PASS under the first version, NA under the second"),
        ("EMU", "NA", 0, "EMU under the first version, NA under the second"),
        ("PASS", "", 0, "under the first version alone"),
        ("SKIP", "SKIP", 0, ""),
    ],
)
def test_emu_alone_may_differ(first: str, second: str, follows: int, wrong: str) -> None:
    found, said = two.differing(side(first), side(second))
    assert len(found) == follows
    assert bool(said) == bool(wrong) and all(wrong in line for line in said[:1])


def test_emu_without_a_reason_is_none() -> None:
    _, said = two.differing(side("EMU", message=""), side("PASS"))
    assert said and "no reason is given" in said[0]


def test_native_and_host_results_are_no_emulators() -> None:
    assert not side("EMU", runner="native") and not side("EMU", runner="host")


def test_a_verdict_that_follows_the_name_is_told() -> None:
    assert two.moved(side("EMU"), side("EMU")) == []
    assert "EMU, and PASS where it gives the other's version" in two.moved(side("EMU"), side("PASS"))[0]
    assert "can be compared" in two.moved(side("EMU"), {})[0]


def test_a_liar_gives_the_version_and_does_the_rest(tmp_path: Path) -> None:
    real = tmp_path / "real" / "emulator"
    real.parent.mkdir()
    real.write_text('#!/bin/sh\necho "ran $*"\n')
    real.chmod(0o755)
    folder = two.liars(tmp_path / "lies", ["emulator"], {"emulator": real}, {"emulator": "version 9\n"})
    assert two.version(folder / "emulator") == "version 9\n"
    done = subprocess.run([str(folder / "emulator"), "a b", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == "ran a b --version\n"


def test_two_of_one_version_are_usage(tmp_path: Path) -> None:
    for port in manifest.discover_ports(ROOT).values():
        program = tmp_path / port.emulator_argv[0]
        program.write_text("#!/bin/sh\necho version 1.2.3\n")
        program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    argv = [str(SCRIPT), "--other", str(tmp_path), "--out", str(tmp_path / "out")]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False, env=environment)
    assert done.returncode == 2 and "give the same version" in done.stderr
    argv[2] = str(tmp_path / "nowhere")
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False, env=environment)
    assert done.returncode == 3 and "cannot be run" in done.stderr
