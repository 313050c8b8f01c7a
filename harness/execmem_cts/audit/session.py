"""What an audit is asked for and what comes of it; the program runs in between, its terminal untouched."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..process import no_core_dumps
from .kinds import VIOLATION, Finding
from .model import Model

PATIENCE = 2.0  # seconds between asking a program to end and ending it


@dataclass(frozen=True)
class Request:
    """`argv`: the program and its arguments. `emulator_args`: for the emulator, before the program."""

    argv: tuple[str, ...]
    sysroot: Path | None = None
    emulator_args: tuple[str, ...] = ()
    page_size: int = 0  # that lengths and offsets are held against; 0: asked of the runner
    quiet_program: bool = False
    output_to_errors: bool = False  # the program's standard output is wanted for the report
    seconds: float | None = None
    plugin: bool | None = None  # None: where the emulator loads it
    log: Path | None = None  # the runner's own words are kept here


@dataclass
class Outcome:
    """`status`: the program's own exit status, or minus the signal that ended it; None where it is not known."""

    runner: str
    version: str
    argv: tuple[str, ...]
    page_size: int
    status: int | None
    findings: list[Finding]
    counts: Mapping[str, int]
    incomplete: dict[str, int] = field(default_factory=dict)  # reason -> how often
    unseen: list[str] = field(default_factory=list)  # what this runner shows of no program
    timed_out: bool = False

    @property
    def violations(self) -> list[Finding]:
        return [f for f in self.findings if f.level == VIOLATION]


def outcome(runner: str, version: str, request: Request, model: Model, status: int | None) -> Outcome:
    """The model's findings; it has been told of everything."""
    return Outcome(
        runner, version, request.argv, model.judged_by, status, model.findings, model.counts, dict(model.incomplete)
    )


@contextmanager
def interrupts_go_to_the_program() -> Iterator[None]:
    """Ctrl-C ends the program, which has the terminal as well, and then it is reported what was seen."""

    def ignore(number: int, frame: Any) -> None:
        pass  # a handler, unlike SIG_IGN, is not inherited by the program

    before = {number: signal.signal(number, ignore) for number in (signal.SIGINT, signal.SIGQUIT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def streams(request: Request) -> dict[str, int | None]:
    """Where the program's output goes; its input is always ours."""
    if request.quiet_program:
        return {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return {"stdout": 2 if request.output_to_errors else None, "stderr": None}


class Watch:
    """Runs a command to its end, reads a pipe meanwhile, and ends the program when its time is over."""

    def __init__(self, request: Request, targets: Callable[[], Sequence[int]]) -> None:
        """`targets`: the processes to end on time-out, the program's first one first; none: the command itself."""
        self.request, self.targets = request, targets
        self.asked = 0  # how often it was asked to end

    @property
    def timed_out(self) -> bool:
        return self.asked > 0

    def run(self, argv: Sequence[str], reading: int | None = None, got: Callable[[bytes], None] | None = None) -> int:
        """The command's wait status as Popen has it. Raises OSError where it cannot be started."""
        no_core_dumps()
        with interrupts_go_to_the_program():
            child = subprocess.Popen(list(argv), **streams(self.request))  # type: ignore[call-overload]
            pidfd = os.pidfd_open(child.pid)
            try:
                with selectors.DefaultSelector() as selector:
                    selector.register(pidfd, selectors.EVENT_READ)
                    if reading is not None:
                        selector.register(reading, selectors.EVENT_READ)
                    self._loop(selector, pidfd, reading, got or (lambda block: None), child.pid)
            finally:
                os.close(pidfd)
                if child.poll() is None:
                    child.kill()
                child.wait()
        return int(child.returncode)

    def _loop(
        self,
        selector: selectors.BaseSelector,
        pidfd: int,
        reading: int | None,
        got: Callable[[bytes], None],
        child: int,
    ) -> None:
        limit = self.request.seconds
        deadline = time.monotonic() + limit if limit is not None else None
        while True:
            left = None if deadline is None else max(deadline - time.monotonic(), 0)
            ready = {key.fd for key, _ in selector.select(left)}
            if not ready and deadline is not None and time.monotonic() >= deadline:
                self._end(child)
                deadline = time.monotonic() + PATIENCE
                continue
            block = b""
            if reading is not None and reading in ready:
                block = os.read(reading, 1 << 20)
                if block:
                    got(block)
                elif pidfd not in ready:
                    selector.unregister(reading)  # the writer has closed it; the process is about to end
                    reading = None
            if pidfd in ready and not block:
                return

    def _end(self, child: int) -> None:
        """First the program is asked, then it and all that it started are killed, then the command that follows them."""
        self.asked += 1
        found = list(self.targets()) or [child]
        number = signal.SIGTERM if self.asked == 1 else signal.SIGKILL
        for process in found[:1] if self.asked == 1 else found if self.asked == 2 else [child]:
            try:
                os.kill(process, number)
            except ProcessLookupError:
                pass
