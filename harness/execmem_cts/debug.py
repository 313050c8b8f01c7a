"""One point under a debugger, or with its system calls printed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from . import run as running
from .runner import Item
from .source import ManifestError
from .tools import ToolError


def _one(options: running.Options) -> Item:
    """The one item that the selection names; the emulated one, where there is a native one as well."""
    _, made, _ = running.prepare(options, lambda text: print(f"execmem-cts: {text}", file=sys.stderr))
    items = [item for item in made.items if not item.host]
    emulated = [item for item in items if item.emulator]
    if len(items) > 1 and len(emulated) == 1 and options.chosen.native is None:
        items = emulated
    if options.chosen.native:
        items = [item for item in items if not item.emulator]
    if len(items) != 1:
        shown = "".join(f"\n  {item.key}" for item in items[:8])
        raise ManifestError(
            f"--gdb and --strace take one point, {len(items)} are selected;{shown}\n"
            "narrow it with --port, --variant, --stub-page, --os-page and --only CHECK.POINT"
        )
    return items[0]


def run(options: running.Options, gdb: bool) -> int:
    """The exit status of the debugger or the program."""
    item = _one(options)
    argv = item.argv(item.only)
    if not gdb:
        emulator = [*item.emulator, "-strace"] if item.emulator else _native_strace()
        return subprocess.run([*emulator, *argv[len(item.emulator) :]], cwd=options.root, check=False).returncode
    debugger = shutil.which("gdb-multiarch") or shutil.which("gdb")
    if debugger is None:
        raise ToolError("gdb-multiarch is missing: run toolchains/setup, or apt-get install gdb-multiarch")
    if not item.emulator:
        return subprocess.run([debugger, "--args", *argv], cwd=options.root, check=False).returncode
    with tempfile.TemporaryDirectory(prefix="execmem-gdb-") as folder:
        return _emulated(item, argv, debugger, Path(folder) / "socket", options.root)


def _native_strace() -> list[str]:
    if not shutil.which("strace"):
        raise ToolError("strace is missing: apt-get install strace, or select the emulated run with --no-native")
    return ["strace"]


def _emulated(item: Item, argv: list[str], debugger: str, socket: Path, root: Path) -> int:
    """The emulator waits at a socket of its own, so that two sessions do not meet."""
    command = [*item.emulator, "-g", str(socket), *argv[len(item.emulator) :]]
    print(f"execmem-cts: {' '.join(command)}", file=sys.stderr)
    guest = subprocess.Popen(command, cwd=root, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        commands = ["-q", "-ex", "set confirm off", "-ex", f"target remote {socket}", "-ex", f"break {item.check}"]
        commands += ["-ex", "handle SIGSEGV nostop noprint pass", "-ex", "continue"]
        return subprocess.run([debugger, *commands, item.program], cwd=root, check=False).returncode
    finally:
        if guest.poll() is None:
            os.killpg(guest.pid, signal.SIGKILL)
        guest.wait()
