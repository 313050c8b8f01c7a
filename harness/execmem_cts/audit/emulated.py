"""A port's program under its emulator: the plugin where it loads, probed by running it, else -strace."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .. import process, tools
from ..build import COMPILE, LINK
from ..model import Port
from ..oracles.plugin import PLUGIN_APIS, build_plugin, plugin_argv
from ..source import ManifestError
from ..tools import ToolError, emulator_package, emulator_version
from . import elf, plugin, qemu_strace
from .model import Model
from .session import Outcome, Request, Watch, outcome

PROBE_SECONDS = 30
UNSEEN = [
    "what the emulator itself maps for the program: its first segments and stack, but for their flags in its file"
]


@dataclass(frozen=True)
class Probed:
    """`page_size`: what programs of the port see; `library`: the plugin, None with the reason why not."""

    page_size: int
    library: Path | None
    reason: str = ""


def check(program: elf.Program, port: Port, ports: Mapping[str, Port], sysroot: Path | None) -> None:
    """Raises ManifestError where the port's emulator cannot run the program."""
    if program.script:
        raise ManifestError(
            f"audit {program.path}: a script, of {program.script}; an emulator runs ELF programs: name the interpreter"
        )
    if program.machine != port.elf_machine or program.endianness != port.endianness:
        fits = [
            p.name for p in ports.values() if (p.elf_machine, p.endianness) == (program.machine, program.endianness)
        ]
        hint = f"; try --port {fits[0]}" if fits else ""
        raise ManifestError(
            f"audit {program.path}: wrong architecture: expected {port.elf_machine} ({port.endianness}-endian) of port "
            f"{port.name}, found {program.machine} ({program.endianness}-endian){hint}"
        )
    interpreter = program.interpreter
    if interpreter and not (Path(f"{sysroot}{interpreter}") if sysroot else Path(interpreter)).exists():
        raise ManifestError(
            f"audit {program.path}: needs {interpreter} of the port's C library; give its folder with --sysroot"
        )


def build_program(root: Path, port: Port, source: Path) -> Path:
    """A freestanding program of one C file, for a port. CalledProcessError and ToolError where it cannot be built."""
    found = tools.find()
    output = root / "build" / "plugin" / port.name / source.stem
    folders = (root / "arch", port.directory, root / "conformance", root / "asm")
    sources = [source, *root.glob("arch/*.c"), *port.directory.glob("*.c"), *port.directory.glob("*.S")]
    headers = [*root.glob("arch/*.h"), *port.directory.glob("*.h")]
    if output.exists() and all(output.stat().st_mtime_ns >= s.stat().st_mtime_ns for s in [*sources, *headers]):
        return output
    output.parent.mkdir(parents=True, exist_ok=True)
    # Built aside and renamed: several audits may do so at once.
    with tempfile.TemporaryDirectory(dir=output.parent) as scratch:
        includes = [part for folder in folders for part in ("-I", str(folder))]
        common = [found.clang, f"--target={port.triple}", *COMPILE, "-Wno-unused-command-line-argument", *includes]
        objects = []
        for one in sources:
            objects.append(str(Path(scratch) / f"{one.name}.o"))
            argv = [*common, *port.compile_flags, "-c", str(one), "-o", objects[-1]]
            subprocess.run(argv, check=True, capture_output=True, text=True)
        made = Path(scratch) / output.name
        subprocess.run([found.lld, *LINK, *objects, "-o", str(made)], check=True, capture_output=True, text=True)
        os.replace(made, output)
    return output


def _value(text: str, name: str) -> int | None:
    for line in text.splitlines():
        if line.startswith(f"{name}="):
            return int(line.split("=", 1)[1], 16)
    return None


def _shows(port: Port, log: Path, at: int | None) -> bool:
    """Did the plugin see just what the probe did, at the address that the probe printed?"""
    found, lost = plugin.records(log)
    reader = plugin.Reader(port.syscalls, port.pointer_bytes)
    names = [reader.names.get(r.number, "").removesuffix("2") for r in found if r.kind == plugin.ENTERED]
    mapped = [r.result & reader.mask for r in found if r.kind == plugin.RETURNED]
    wanted = ["mmap", "mprotect", "munmap"]
    return not lost and [name for name in names if name in wanted] == wanted and at in mapped


_probes: dict[tuple[object, ...], Probed] = {}


def probe(root: Path, port: Port, emulator: tuple[str, ...], wanted: bool | None) -> Probed:
    """Runs the probe under the emulator, once, with the plugin unless that is not wanted."""
    key = (root, port.name, emulator, wanted)
    if key not in _probes:
        _probes[key] = _probe(root, port, emulator, wanted)
    return _probes[key]


def _probe(root: Path, port: Port, emulator: tuple[str, ...], wanted: bool | None) -> Probed:
    page_size = port.os_pages[0]
    try:
        program = build_program(root, port, root / "conformance" / "plugin" / "probe.c")
        clang = tools.find().clang
    except ToolError as error:
        return Probed(page_size, None, f"the plugin cannot be built: {error}")
    except (subprocess.CalledProcessError, OSError) as error:
        said = error.stderr.strip()[-300:] if isinstance(error, subprocess.CalledProcessError) else str(error)
        return Probed(page_size, None, f"the probe does not build: {said}")
    ended = process.run([*emulator, str(program)], PROBE_SECONDS)
    page_size = _value(ended.output, "page") or 0
    if ended.status != 0 or not page_size:
        words = (ended.errors or ended.output).strip().splitlines()
        raise ToolError(
            f"{emulator[0]} does not run a program of the port: {words[-1] if words else 'it said nothing'}"
        )
    if wanted is False:
        return Probed(page_size, None, "not wanted")
    if not port.syscalls:
        return Probed(page_size, None, f"arch/{port.name}/port.toml has no [syscalls]")
    reason = ""
    for api in PLUGIN_APIS:
        try:
            library = build_plugin(clang, root, api, "calls")
        except (subprocess.CalledProcessError, OSError) as error:
            said = error.stderr.strip()[-300:] if isinstance(error, subprocess.CalledProcessError) else str(error)
            return Probed(page_size, None, f"the plugin does not build: {said}")
        with tempfile.TemporaryDirectory(prefix="execmem-audit-") as folder:
            log = Path(folder) / "log"
            plugin.make_log(log, 64)
            options = plugin_argv(library, plugin.options(port.syscalls, log).items())
            ended = process.run([*emulator, *options, str(program)], PROBE_SECONDS)
            if ended.status == 0 and _shows(port, log, _value(ended.output, "at")):
                return Probed(page_size, library)
            words = ended.errors.strip().splitlines()
            reason = reason or (words[-1] if words else "it loads and does not show the probe's calls")
    return Probed(page_size, None, reason)


def run(root: Path, request: Request, port: Port, ports: Mapping[str, Port]) -> Outcome:
    """Raises ManifestError and ToolError; the program's own failure is no error."""
    path = elf.find(request.argv[0])
    check(elf.look(path), port, ports, request.sysroot)
    name = port.emulator_argv[0]
    if shutil.which(name) is None:
        raise ToolError(f"{name} is missing: apt-get install {emulator_package(name)}, or run toolchains/setup")
    sysroot = ("-L", str(request.sysroot)) if request.sysroot else ()
    emulator = (*port.emulator_argv, *sysroot, *request.emulator_args)
    probed = probe(root, port, emulator, request.plugin)
    if probed.library is None and request.plugin:
        raise ToolError(f"--plugin: {name} shows no plugin: {probed.reason}")
    model = Model(probed.page_size, judged_by=request.page_size)
    image = elf.unsafe_segments(str(path))
    command = [str(path), *request.argv[1:]]
    with tempfile.TemporaryDirectory(prefix="execmem-audit-") as folder:
        log = Path(folder) / "log"
        watch = Watch(request, lambda: ())
        if probed.library is not None:
            status = _with_plugin(port, probed.library, emulator, command, log, watch, model)
        else:
            status = _with_strace(emulator, command, log, watch, model)
            if request.log is not None and log.exists():
                shutil.copyfile(log, request.log)
    model.note_image(request.argv[0], image)
    runner = f"{port.name} under {name}, " + ("plugin" if probed.library else "-strace")
    made = outcome(runner, emulator_version(name), request, model, status)
    made.unseen, made.timed_out = list(UNSEEN), watch.timed_out
    if probed.library is None:
        made.unseen.append(
            f"time and threads: -strace tells neither, and is good for one thread alone ({probed.reason})"
        )
    return made


def _with_plugin(
    port: Port, library: Path, emulator: tuple[str, ...], command: list[str], log: Path, watch: Watch, model: Model
) -> int:
    plugin.make_log(log)
    status = watch.run([*emulator, *plugin_argv(library, plugin.options(port.syscalls, log).items()), *command])
    found, lost = plugin.records(log)
    reader = plugin.Reader(port.syscalls, port.pointer_bytes)
    kept = watch.request.log.open("w", encoding="utf-8") if watch.request.log is not None else None
    for event in reader.events(found):
        model.feed(event)
        if kept is not None:
            kept.write(plugin.line(event))
    if kept is not None:
        kept.close()
    model.finish()
    model.incomplete.update(reader.incomplete)
    living = {number for number in reader.processes.values() if Path(f"/proc/{number}").exists()}
    if living:
        model.incomplete["a process that the program started and that still runs: what it does now is not seen"] = len(
            living
        )
    if lost > 0:
        model.incomplete["calls that the log had no room for, or that were cut off by the end of their process"] = lost
    return status


def _with_strace(emulator: tuple[str, ...], command: list[str], log: Path, watch: Watch, model: Model) -> int:
    status = watch.run([*emulator, "-strace", "-D", str(log), *command])
    reader = qemu_strace.Reader()
    if log.exists():
        with log.open(encoding="utf-8", errors="surrogateescape") as lines:
            for line in lines:
                for event in reader.feed(line):
                    model.feed(event)
    else:
        model.incomplete["the emulator wrote no log"] = 1
    reader.finish()
    model.finish()
    model.incomplete.update(reader.incomplete)
    return status
