"""A native program under strace."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from ..model import Port
from ..native import hidden_emulator
from ..source import ManifestError
from ..tools import ToolError, first_line
from . import elf, strace
from .model import Model
from .session import Outcome, Request, Watch, outcome

PIPE_BYTES = 1 << 20  # so that strace seldom waits for us
# 32-bit programs that 64-bit kernels may run by themselves.
COMPATIBLE = {"EM_X86_64": {"EM_386"}, "EM_AARCH64": {"EM_ARM"}}
UNSEEN = [
    "what exec itself maps: the program's first segments, stack and vdso, but for their flags in the program's file",
    "views of one file in different processes: each address space is judged by itself",
    "what is written into a file by its descriptor: only mappings are followed",
    "that two paths are of one file (hard links, renamed files), or one path of two (deleted, and made again)",
]


def find_strace() -> str:
    found = shutil.which("strace")
    if found is None:
        raise ToolError("strace is missing: apt-get install strace; or audit under an emulator with --port")
    return found


def port_hint(program: elf.Program, ports: dict[str, Port]) -> str:
    fits = [p.name for p in ports.values() if p.elf_machine == program.machine]
    return f"; try --port {fits[0]}" if fits else ""


def check(program: elf.Program, ports: dict[str, Port]) -> None:
    """Raises ManifestError where this machine does not run the program by itself."""
    if not program.machine:
        return  # a script: the kernel starts its interpreter
    own = elf.look(Path(sys.executable).resolve()).machine  # runs here, and is of the machine's own width
    hint = port_hint(program, ports)
    if program.machine != own and program.machine not in COMPATIBLE.get(own, ()):
        raise ManifestError(f"audit {program.path}: wrong architecture: expected {own}, found {program.machine}{hint}")
    emulator = hidden_emulator(program.path)
    if emulator:
        raise ManifestError(f"audit {program.path}: binfmt_misc would run it with {emulator}{hint}")


def probe(tracer: str) -> bool:
    """Does strace work here, and with its seccomp filter? Raises ToolError where ptrace is refused."""
    said = ""
    for filtered in (True, False):
        argv = [*strace.argv(tracer, Path(os.devnull), filtered), tracer, "-V"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode == 0:
            return filtered
        said = strace.last_words(done.stderr.splitlines())
    raise ToolError(
        f"strace cannot trace here: {said}. In a container, allow ptrace (--cap-add=SYS_PTRACE); elsewhere see "
        "/proc/sys/kernel/yama/ptrace_scope; or audit under an emulator with --port"
    )


class _Lines:
    """Blocks of a pipe, cut into lines, into the model."""

    def __init__(self, model: Model, log: Path | None) -> None:
        self.reader, self.model, self.rest = strace.Reader(), model, b""
        self.log = log.open("wb") if log is not None else None

    def got(self, block: bytes) -> None:
        if self.log is not None:
            self.log.write(block)
        *lines, self.rest = (self.rest + block).split(b"\n")
        for line in lines:
            for event in self.reader.feed(line.decode("utf-8", "surrogateescape")):
                self.model.feed(event)

    def finish(self) -> None:
        if self.log is not None:
            self.log.close()
        self.model.finish()
        if self.rest:
            self.model.incomplete["the log ends in the middle of a line: strace was ended"] += 1
        if self.reader.strange:
            shown = self.reader.last_strange
            self.model.incomplete[f"lines of strace that are not understood, the last: {shown}"] = self.reader.strange


def run(request: Request, ports: dict[str, Port]) -> Outcome:
    """Raises ManifestError and ToolError; the program's own failure is no error."""
    program = elf.look(elf.find(request.argv[0]))
    check(program, ports)
    tracer = find_strace()
    filtered = probe(tracer)
    model = Model(os.sysconf("SC_PAGE_SIZE"), elf.unsafe_segments, request.page_size)
    lines = _Lines(model, request.log)
    with tempfile.TemporaryDirectory(prefix="execmem-audit-") as folder:
        log = Path(folder) / "log"
        os.mkfifo(log)
        reading = os.open(log, os.O_RDONLY | os.O_NONBLOCK)
        try:
            fcntl.fcntl(reading, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        except OSError:
            pass  # a limit of the user's: it is slower, that is all
        try:
            watch = Watch(request, model.processes)
            watch.run([*strace.argv(tracer, log, filtered), "--", *request.argv], reading, lines.got)
        finally:
            os.close(reading)
    lines.finish()
    if not model.counts["programs"]:
        raise ManifestError(
            f"audit {request.argv[0]}: the system does not start it, as strace says above{port_hint(program, ports)}"
        )
    made = outcome("native, strace", first_line([tracer, "-V"]), request, model, model.root_status)
    made.unseen, made.timed_out = list(UNSEEN), watch.timed_out
    if model.root_status is None:
        made.incomplete["the end of the program was not seen: strace ended before it"] = 1
    return made
