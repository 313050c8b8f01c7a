"""new-port: the skeleton of a port, for any architecture that clang and lld know.

It builds, and every `execmem-cts run` fails with what is to be written next, until nothing is left: see `unwritten`.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile

from . import port_path
from .disassembly import YOUNG_MACHINES
from .source import ManifestError
from .tools import Tools, emulator_package

SKELETON = Path(__file__).parent / "skeleton"
NAME = re.compile(r"[a-z][a-z0-9_]*")
# Where each file of the skeleton goes, from the top of the tree or of a folder laid out as it.
FILES = {
    "port.toml": "arch/{name}/port.toml",
    "abi.h": "arch/{name}/abi.h",
    "unwritten.h": "arch/{name}/unwritten.h",
    "syscall.S": "arch/{name}/syscall.S",
    "start.S": "arch/{name}/start.S",
    "port.c": "arch/{name}/port.c",
    "capture.S": "arch/{name}/capture.S",
    "templates.S": "asm/{name}.S",
    "toolchain.cmake": "toolchains/{name}.cmake",
    "toolchain.meson": "toolchains/{name}.meson",
}
FILES_32 = {"division.c": "arch/{name}/division.c", "namespace.txt": "arch/{name}/namespace.txt"}


@dataclass(frozen=True)
class Target:
    """What clang makes of a triple."""

    pointer_bytes: int
    endianness: str
    elf_machine: str


def _run(argv: list[str], text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, input=text, capture_output=True, text=True, timeout=60, check=False)


def _first_error(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in lines if "error" in line), lines[0] if lines else "it said nothing")


def examine(triple: str, emulator: list[str], tools: Tools) -> Target:
    """Compiles, links and starts an empty program. Raises ManifestError naming the option that does not fit."""
    with tempfile.TemporaryDirectory() as scratch:
        obj, program = f"{scratch}/empty.o", f"{scratch}/empty"
        argv = [tools.clang, f"--target={triple}", "-ffreestanding", "-x", "c", "-c", "-", "-o", obj]
        done = _run(argv, "int execmem_empty;\n")
        if done.returncode != 0:
            raise ManifestError(
                f"--triple {triple}: {tools.clang} knows no such architecture: {_first_error(done.stderr)}; "
                f"`{tools.clang} --print-targets` lists those it knows"
            )
        try:
            with open(obj, "rb") as stream:
                elf = ELFFile(stream)
                machine = YOUNG_MACHINES.get(elf["e_machine"], elf["e_machine"])
                target = Target(elf.elfclass // 8, "little" if elf.little_endian else "big", str(machine))
        except Exception as error:  # pyelftools raises many kinds for what is no ELF
            raise ManifestError(f"--triple {triple}: makes no ELF object; end it with -unknown-linux") from error
        done = _run([tools.lld, "-static", "-nostdlib", obj, "-o", program])
        if done.returncode != 0:
            raise ManifestError(
                f"--triple {triple}: {tools.lld} links no such objects: {_first_error(done.stderr)}; "
                "a port needs clang and lld alone"
            )
        if "Invalid ELF image" in _run([*emulator, program]).stderr:
            raise ManifestError(
                f"--emulator {emulator[0]}: runs no programs of {triple} ({target.elf_machine}, {target.endianness}-"
                "endian); name the emulator of this architecture"
            )
    return target


def render(name: str, triple: str, emulator: list[str], target: Target) -> dict[str, str]:
    """The text of each file, by its path in the tree."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(SKELETON),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["toml"] = json.dumps  # strings and arrays of strings are written alike
    context: dict[str, Any] = {
        "name": name,
        "triple": triple,
        "processor": triple.split("-", 1)[0],
        "emulator": emulator,
        **vars(target),
    }
    files = FILES | (FILES_32 if target.pointer_bytes == 4 else {})
    return {
        path.format(name=name): environment.get_template(f"{skeleton}.j2").render(context)
        for skeleton, path in files.items()
    }


def make(root: Path, folder: Path | None, name: str, triple: str, emulator: list[str], tools: Tools) -> list[Path]:
    """Writes the skeleton into `folder`, or into the tree; the files. Raises ManifestError, and then wrote nothing."""
    if not NAME.fullmatch(name):
        raise ManifestError(f"new-port {name}: no name of a port: begin with a letter, go on with a-z, 0-9 and _")
    if not emulator:
        raise ManifestError("--emulator: is empty; name the program and its arguments: 'qemu-riscv64 -cpu rv64'")
    top = folder or root
    others = [path for path in port_path.manifests(root) if path.parent.name == name]
    texts = render(name, triple, emulator, Target(8, "little", ""))
    there = others or [top / path for path in texts if (top / path).exists()]
    if there:
        raise ManifestError(f"new-port {name}: {there[0]} is there already; choose another name, or move it away")
    if not shutil.which(emulator[0]):
        raise ManifestError(
            f"--emulator {emulator[0]}: no such program; install the package {emulator_package(emulator[0])}, "
            "or give its path"
        )
    written = []
    for path, text in render(name, triple, emulator, examine(triple, emulator, tools)).items():
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text(text)
        written.append(top / path)
    return written
