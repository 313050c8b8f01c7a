"""`execmem-cts audit`, less its options: from a request to an exit status."""

from __future__ import annotations

import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from ..manifest import discover_ports
from ..source import ManifestError
from . import kinds, native, report
from .session import Outcome, Request


WIDTH = 140  # columns of the table where no terminal says


@dataclass(frozen=True)
class Wanted:
    """What is made of the outcome. `json`: a file, "-" for standard output, "" for none."""

    json: str = ""
    report: Path | None = None
    everything: bool = False
    allowed: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    quiet: bool = False


def check_kinds(option: str, names: Collection[str]) -> None:
    for name in names:
        if name not in kinds.KINDS:
            raise ManifestError(f"{option} {name}: no such kind; there are {', '.join(kinds.KINDS)}")


def audited(root: Path, port: str | None, request: Request) -> Outcome:
    """Runs the program. Raises ManifestError, ToolError."""
    ports = discover_ports(root, root / "build" / "manifests")
    if port is None:
        for option, given in (("--sysroot", request.sysroot), ("--emulator-arg", request.emulator_args)):
            if given:
                raise ManifestError(f"{option} is for an emulator: name its port with --port")
        return native.run(request, ports)
    if port not in ports:
        raise ManifestError(f"--port {port}: no such port; there are {', '.join(ports)}")
    from . import emulated

    return emulated.run(root, request, ports[port], ports)


def run(root: Path, port: str | None, request: Request, wanted: Wanted) -> int:
    """The exit status."""
    check_kinds("--allow", wanted.allowed)
    check_kinds("--deny", wanted.denied)
    sinks = []
    try:  # before the program has run for an hour
        for path in (wanted.report, Path(wanted.json) if wanted.json not in ("", "-") else None):
            sinks.append(path.open("w", encoding="utf-8") if path is not None else None)
    except OSError as error:
        raise ManifestError(f"{error.filename}: cannot be written: {error.strerror}") from error
    if request.log is not None:
        try:
            request.log.write_bytes(b"")
        except OSError as error:
            raise ManifestError(f"{error.filename}: cannot be written: {error.strerror}") from error
    outcome = audited(root, port, request)
    report.graded(outcome, kinds.levels(wanted.allowed, wanted.denied))
    sys.stdout.flush()
    if sinks[0] is not None:
        report.table(outcome, wanted.everything, Console(file=sinks[0], highlight=False, width=WIDTH))
        sinks[0].close()
    elif not wanted.quiet:
        report.table(
            outcome,
            wanted.everything,
            Console(stderr=True, highlight=False, width=None if sys.stderr.isatty() else WIDTH),
        )
    else:
        print(report.verdict(outcome), file=sys.stderr)
    if sinks[1] is not None:
        sinks[1].write(report.as_json(outcome))
        sinks[1].close()
    elif wanted.json == "-":
        sys.stdout.write(report.as_json(outcome))
        sys.stdout.flush()
    return report.exit_status(outcome)
