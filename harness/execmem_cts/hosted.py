"""Hosted subjects: those that need a C library. Their programs are linked statically against the port's, and what the
subject asks of the system is caught by the linker: conformance/hosted/hosted.h.
"""

from __future__ import annotations

import functools
import re
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from . import objects
from .model import Port, Subject
from .source import ManifestError
from .tools import ToolError, Tools

if TYPE_CHECKING:
    from .build import Builder

FOLDER = Path("conformance/hosted")
CPLUSPLUS = (".cc", ".cpp", ".cxx")
COMPILE = "-O2 -g -fno-pic -Wall -Wextra -Werror".split()
STANDARD = {False: "-std=gnu11", True: "-std=gnu++20"}
LINK = "-static -no-pie -Wl,-z,max-page-size=65536 -Wl,-z,noexecstack -Wl,--build-id=none".split()
OWN = "arch/freestanding.c"  # what the C library has as well
START = "-D_start=execmem_port_start_unused"  # the C library has its own
# Ways to the system that matter to memory, besides those that are caught.
OTHER_WAYS = (
    "mremap", "remap_file_pages", "brk", "sbrk", "shmat", "shmdt", "shmget", "pkey_mprotect", "mlock", "mlockall",
    "munlock", "msync", "openat", "openat64", "creat", "tmpfile", "mkstemps", "mkostemps", "pwrite", "pwrite64",
    "writev", "vfork", "clone", "dlopen", "dlsym",
)  # fmt: skip
INSIDE = "what the C library does by itself (memory of malloc, stacks of threads) is not seen"


@functools.lru_cache(maxsize=None)
def wrapped(root: Path) -> tuple[str, ...]:
    """The functions that the linker catches: each that a file of conformance/hosted defines as __wrap_NAME."""
    definition = re.compile(r"^[a-z][\w *]*\b__wrap_(\w+)\([^;]*\)\n\{", re.MULTILINE)
    texts = (path.read_text() for path in sorted((root / FOLDER).glob("*.c")))
    return tuple(sorted({name for text in texts for name in definition.findall(text)}))


def check(subject: Subject, ports: Iterable[Port], tools: Tools) -> None:
    """Is there a C library for each port? Raises ManifestError and ToolError."""
    for port in ports:
        if port.hosted is None:
            raise ManifestError(
                f"{subject.manifest}: hosted: {subject.name} needs a C library, and {port.name} has none: "
                f"{port.directory / 'port.toml'} has no [hosted]; add it, or leave the port out of [ports]"
            )
        triple, packages = port.hosted.triple, " ".join(port.hosted.packages)
        for name in ("crt1.o", "libc.a", "libgcc.a"):
            if not _there(tools, triple, name):
                raise ToolError(
                    f"{subject.name} on {port.name}: no {name} for {triple}; "
                    f"install it: apt-get install --no-install-recommends {packages}"
                )
        for library in subject.libraries:
            if not _there(tools, triple, f"lib{library}.a"):
                raise ManifestError(
                    f"{subject.manifest}: libraries: no lib{library}.a for {triple}; "
                    "install the package that brings it, or name the file in `objects` of the port"
                )


def _there(tools: Tools, triple: str, name: str) -> bool:
    """Does the compiler find a file of the C library, or beside it?"""
    argv = [tools.clang, f"--target={triple}", f"-print-file-name={name}"]
    found = subprocess.run(argv, capture_output=True, text=True, check=False).stdout.strip()
    return Path(found).is_file()


def compiled(builder: Builder, port: Port, subject: Subject, source: Path, output: str, flags: Sequence[str]) -> str:
    """The subject's own source, with the headers of the C library."""
    assert port.hosted is not None
    standard = STANDARD[source.suffix in CPLUSPLUS]
    name = builder.relative(source)
    argv = [f"--target={port.hosted.triple}", "-c", standard, *COMPILE, *flags, *subject.compile_flags]
    return builder.edge("cc", output, [name], [*argv, name, "-o", output, "-MD", "-MF", f"{output}.d"])


def link(builder: Builder, port: Port, subject: Subject, output: str, files: Sequence[str]) -> str:
    """The program, with every call of the system caught."""
    assert port.hosted is not None
    argv = [f"--target={port.hosted.triple}", f"--ld-path={builder.tools.lld}", *LINK]
    argv += [f"-Wl,--wrap={name}" for name in wrapped(builder.root)]
    argv += [*files, *(f"-l{library}" for library in subject.libraries), "-o", output]
    return builder.edge("hosted", output, files, argv)


def notes(subject: Subject, root: Path, built: Path) -> list[str]:
    """What is caught of a subject's calls and what is not, by what its objects ask for: for the results."""
    said = []
    for port, prebuilt in subject.objects.items() if subject.hosted else ():
        names = {source.name for source in subject.sources}
        own = (built / port / subject.name / "obj").glob("*.o")
        files = [*prebuilt, *(path for path in own if any(path.stem.endswith(name) for name in names))]
        asked = frozenset().union(*(objects.undefined(path) for path in files))
        caught = sorted(asked & set(wrapped(root)))
        missed = sorted(asked & set(OTHER_WAYS))
        text = f"{subject.name} on {port}: calls of {', '.join(caught) or 'nothing'} are caught; {INSIDE}"
        said.append(text + (f", nor are calls of {', '.join(missed)}" if missed else ""))
    return said
