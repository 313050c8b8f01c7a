"""Does this machine run a port's programs by itself? Asked by running one, never guessed."""

from __future__ import annotations

from pathlib import Path

from . import process

BINFMT = Path("/proc/sys/fs/binfmt_misc")


def hidden_emulator(program: Path, registered: Path = BINFMT) -> str:
    """The interpreter that binfmt_misc would run the program with, or "": a result of it is not native."""
    with program.open("rb") as stream:
        head = stream.read(256)
    try:
        entries = [entry for entry in registered.iterdir() if entry.name not in ("register", "status")]
    except OSError:
        return ""
    for entry in entries:
        try:
            lines = entry.read_text().splitlines()
        except OSError:
            continue
        fields = dict(line.split(" ", 1) for line in lines if " " in line)
        if "enabled" not in lines or "magic" not in fields:
            continue
        magic = bytes.fromhex(fields["magic"])
        mask = bytes.fromhex(fields["mask"]) if "mask" in fields else b"\xff" * len(magic)
        offset = int(fields.get("offset", "0"))
        part = head[offset : offset + len(magic)]
        if len(part) == len(magic) and all(h & m == g & m for h, g, m in zip(part, magic, mask)):
            return fields.get("interpreter", entry.name)
    return ""


def runs(program: Path, seconds: float = 10) -> str:
    """ "" where the program runs on this machine itself, else why it does not.

    A program that starts and then dies does run here: its checks say what is wrong with it.
    """
    emulator = hidden_emulator(program)
    if emulator:
        return f"binfmt_misc would run it with {emulator}"
    try:
        process.run([str(program), "--list"], seconds)
    except OSError as error:
        return f"this machine does not run it: {error.strerror}"
    return ""
