"""audit: does a program that is not ours keep W^X?"""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.console import Console

from ..source import ManifestError
from .base import ROOT, Numbers, guarded, main, with_port_path


@main.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--port", metavar="PORT", help="Run it under this port's emulator. Default: natively, under strace.")
@click.option("--json", "json_file", metavar="FILE", default="", help="Every finding, as JSON; - is standard output.")
@click.option("--report", type=click.Path(path_type=Path), help="The table goes there. Default: standard error.")
@click.option("--log", type=click.Path(path_type=Path), help="Keep the runner's own log there, to follow by eye.")
@click.option("--all", "everything", is_flag=True, help="A row for each finding; otherwise one for a mapping and kind.")
@click.option("--quiet", is_flag=True, help="The verdict alone, no table.")
@click.option("--quiet-program", is_flag=True, help="Throw the program's own output away.")
@click.option("--allow", "allowed", multiple=True, metavar="KIND", help="A note, no violation: --allow w-then-x.")
@click.option("--deny", "denied", multiple=True, metavar="KIND", help="A violation, no note: --deny alias.")
@click.option("--timeout", "seconds", type=float, default=None, help="Seconds after which the program is ended.")
@click.option("--page-size", type=Numbers(), default=0, help="Hold lengths and offsets against this, such as 64K.")
@click.option(
    "--sysroot",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder with the C library of a --port: the emulator's -L.",
)
@click.option(
    "--emulator-arg", "emulator_args", multiple=True, metavar="ARG", help="One more argument for the emulator."
)
@click.option(
    "--plugin/--no-plugin",
    default=None,
    help="Insist on the emulator's plugin, or on its -strace. Default: the plugin where it loads.",
)
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED)
@with_port_path
@guarded
def audit(
    program: tuple[str, ...],
    port: str | None,
    json_file: str,
    report: Path | None,
    log: Path | None,
    everything: bool,
    quiet: bool,
    quiet_program: bool,
    allowed: tuple[str, ...],
    denied: tuple[str, ...],
    seconds: float | None,
    page_size: int,
    sysroot: Path | None,
    emulator_args: tuple[str, ...],
    plugin: bool | None,
) -> None:
    """Does a program that is not ours keep W^X? Runs it, follows its memory calls, reports what breaks it.

    \b
    execmem-cts audit -- node app.js
    execmem-cts audit --json audit.json --quiet-program -- java -cp . Main
    execmem-cts audit --allow w-then-x -- luajit script.lua
    execmem-cts audit --port arm64 --sysroot /usr/aarch64-linux-gnu -- ./program

    \b
    violations  rwx            writable and executable at once
                w-then-x       executable by mprotect after it was writable
                view-at-end    writable view of executable memory held to the end, or to an exec
                sub-page       executable memory asked for in parts of pages
                rwx-image      program file with a writable and executable segment, or an executable stack
    notes       alias          writable view of executable memory, and for how long it was held
                published      executable mapping of a file that had been written through a mapping
                x-by-mprotect  executable by mprotect, never writable
                process-memory /proc/PID/mem opened for writing
                sub-page-data  as sub-page, on other memory

    The program keeps its input, output and errors; what was found goes to standard error when it has ended. Natively it
    runs under strace with its threads and children. With --port it runs under the emulator, whose plugin tells every call
    where it loads one, and else its -strace, which is good for single-threaded programs only.

    Exit status: 0 no violation, 1 violations, 2 usage, 3 a tool is missing or cannot work here, 4 no violation was seen,
    but not everything could be seen. The program's own exit status is in the report.
    """
    from ..audit import command
    from ..audit.session import Request

    if page_size and (page_size < 1024 or page_size & (page_size - 1)):
        raise ManifestError(f"--page-size {page_size}: expected a power of two from 1024 up")
    if seconds is not None and seconds <= 0:
        raise ManifestError(f"--timeout {seconds}: expected seconds, more than 0")
    if plugin is not None and port is None:
        raise ManifestError("--plugin is for an emulator: name its port with --port")
    request = Request(
        argv=program,
        sysroot=sysroot,
        emulator_args=emulator_args,
        page_size=page_size,
        quiet_program=quiet_program,
        output_to_errors=json_file == "-",
        seconds=seconds,
        plugin=plugin,
        log=log,
    )
    wanted = command.Wanted(json_file, report, everything, allowed, denied, quiet)
    sys.exit(command.run(ROOT, port, request, wanted))
