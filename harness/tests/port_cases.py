"""Ports outside of the tree, for tests: a port of the tree moved away, and a tree without it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOVED = "riscv64"  # the port that tests take out of the tree
OWN = re.compile(rf"(arch|asm|toolchains)/{MOVED}[./]|conformance/faults/{MOVED}-")


def call(root: Path, *argv: str, **more: str) -> subprocess.CompletedProcess[str]:
    """The command of a tree, with `more` in its environment."""
    environ = {name: value for name, value in os.environ.items() if name != "EXECMEM_PORT_PATH"} | more
    argv = (str(root / "harness" / "execmem-cts"), *argv)
    return subprocess.run(argv, cwd=root, env=environ, capture_output=True, text=True, timeout=900, check=False)


def _copy(names: list[str], to: Path) -> None:
    for name in names:
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, to / name)


def take_out(tree: Path, folder: Path) -> None:
    """The project's files, clean of anything built, to `tree`; those of the port MOVED to `folder` alone."""
    argv = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate"]
    listed = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    present = [name for name in listed if (ROOT / name).is_file()]
    _copy([name for name in present if not OWN.match(name)], tree)
    _copy([name for name in present if OWN.match(name)], folder)
