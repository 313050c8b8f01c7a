"""Finds the compiler, linker and binary tools, and says which versions they are.

Clang 19 is preferred; toolchains/setup sees to it that what there is has every port's back end. All tools are of one
version where possible, because LLVM's disassembly and its object files belong together.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

PREFERRED = ("19", "20", "21", "18", "17", "16", "15", "14", "")
MEND = "run toolchains/setup, which installs it or prints the exact command"


class ToolError(Exception):
    """A tool is missing or unusable; the text says which one and the command that mends it. Exit status 3."""


@dataclass(frozen=True)
class Tools:
    """Paths of the tools. `version` is clang's, as it names itself."""

    clang: str
    lld: str
    objdump: str
    mc: str
    ninja: str
    version: str


def _find(name: str, suffix: str) -> str | None:
    return shutil.which(f"{name}-{suffix}" if suffix else name)


def first_line(argv: list[str]) -> str:
    """The first non-empty line that a program prints, or "" when it cannot be run."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    return lines[0] if lines else ""


@functools.lru_cache(maxsize=None)
def find() -> Tools:
    """The tools of the most preferred complete version. Raises ToolError naming what is missing."""
    ninja = shutil.which("ninja") or shutil.which("ninja-build")
    if not ninja:
        raise ToolError(f"ninja is missing: {MEND}")
    wanted = os.environ.get("EXECMEM_LLVM_VERSION")
    best: list[str] = ["clang", "ld.lld", "llvm-objdump", "llvm-mc"]
    for suffix in (wanted,) if wanted is not None else PREFERRED:
        found = {name: _find(name, suffix) for name in ("clang", "ld.lld", "llvm-objdump", "llvm-mc")}
        missing = [name for name, path in found.items() if not path]
        if not missing:
            version = first_line([str(found["clang"]), "--version"])
            return Tools(
                str(found["clang"]),
                str(found["ld.lld"]),
                str(found["llvm-objdump"]),
                str(found["llvm-mc"]),
                ninja,
                version,
            )
        if len(missing) < len(best):
            best = [f"{name}-{suffix}" if suffix else name for name in missing]
    raise ToolError(f"{', '.join(best)} missing: {MEND}")


@functools.lru_cache(maxsize=None)
def emulator_version(program: str) -> str:
    """What the emulator calls itself, or "" where it is missing."""
    if not shutil.which(program):
        return ""
    return first_line([program, "--version"])


def emulator_package(program: str) -> str:
    """The Debian package to name when an emulator is missing."""
    return "qemu-user" if Path(program).name.startswith("qemu-") else program
