"""Runs one program: no shell, its own session, killed as a group on time-out, output capped, core dumps off."""

from __future__ import annotations

import os
import resource
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

CAP = 64 * 1024  # bytes kept of each stream; a program that writes more is ended
_DRAIN = 0.2  # seconds left to read what is still in the pipes once the program has ended


@dataclass(frozen=True)
class Ended:
    """How a program ended. `status`: exit status; negative: killed by that signal; None: time-out or flood."""

    argv: tuple[str, ...]
    status: int | None
    output: str
    errors: str
    seconds: float
    flooded: bool = False

    @property
    def signal_name(self) -> str:
        if self.status is None or self.status >= 0:
            return ""
        try:
            return signal.Signals(-self.status).name
        except ValueError:
            return f"signal {-self.status}"


def no_core_dumps() -> None:
    """For this process and what it starts."""
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))


def _kill(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def run(
    argv: Sequence[str],
    seconds: float,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    renewed_by: bytes = b"",
) -> Ended:
    """Runs argv to its end, or for `seconds`, which begin anew when it writes `renewed_by`.

    Raises OSError where it cannot be started.
    """
    no_core_dumps()
    started = time.monotonic()
    child = subprocess.Popen(
        list(argv),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd,
        env=None if environment is None else dict(environment),
        start_new_session=True,
    )
    assert child.stdout is not None and child.stderr is not None
    kept = {child.stdout.fileno(): bytearray(), child.stderr.fileno(): bytearray()}
    pidfd = os.pidfd_open(child.pid)
    deadline, timed_out, flooded, ended = started + seconds, False, False, False
    try:
        with selectors.DefaultSelector() as selector:
            for descriptor in kept:
                os.set_blocking(descriptor, False)
                selector.register(descriptor, selectors.EVENT_READ)
            selector.register(pidfd, selectors.EVENT_READ)
            while True:
                left = deadline - time.monotonic()
                events = selector.select(max(left, 0))
                if not events and left <= 0:
                    timed_out = not ended
                    break
                for key, _ in events:
                    descriptor = key.fd
                    if descriptor == pidfd:
                        # Unreaped, so its process group still names what it left behind and nothing else.
                        _kill(child.pid)
                        selector.unregister(pidfd)
                        ended, deadline = True, min(deadline, time.monotonic() + _DRAIN)
                        continue
                    block = os.read(descriptor, CAP)
                    if not block:
                        selector.unregister(descriptor)
                    known = max(len(kept[descriptor]) - len(renewed_by), 0)
                    kept[descriptor] += block
                    if renewed_by and not ended and renewed_by in kept[descriptor][known:]:
                        deadline = time.monotonic() + seconds
                    flooded = flooded or len(kept[descriptor]) > CAP
                if flooded or (ended and not selector.get_map()):
                    break
    finally:  # an interrupt of the harness included: nothing is left running
        _kill(child.pid)
        child.wait()
        os.close(pidfd)
        child.stdout.close()
        child.stderr.close()
    output, errors = (bytes(kept[fd][:CAP]).decode("utf-8", "replace") for fd in kept)
    status = None if timed_out or flooded else child.returncode
    return Ended(tuple(argv), status, output, errors, time.monotonic() - started, flooded)
