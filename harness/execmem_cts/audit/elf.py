"""What a program file is, before anything is started."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.constants import P_FLAGS
from elftools.elf.elffile import ELFFile

from ..disassembly import YOUNG_MACHINES
from ..source import ManifestError


@dataclass(frozen=True)
class Program:
    """`machine`: pyelftools' name such as EM_ARM; "" for a script, whose interpreter line is then `script`."""

    path: Path
    machine: str
    bits: int = 0
    endianness: str = ""
    script: str = ""
    interpreter: str = ""  # of a dynamic program: the loader that it names


def look(path: Path) -> Program:
    """Raises ManifestError where the file is neither an ELF program nor a script."""
    try:
        with path.open("rb") as stream:
            head = stream.read(256)
            if head.startswith(b"#!"):
                return Program(path, "", script=head[2:].split(b"\n")[0].decode(errors="replace").strip())
            stream.seek(0)
            file = ELFFile(stream)
            kind, machine = file.header["e_type"], file.header["e_machine"]
            machine = YOUNG_MACHINES.get(machine, machine)
            bits, endianness = file.elfclass, "little" if file.little_endian else "big"
            loaders = [s.get_interp_name() for s in file.iter_segments("PT_INTERP")]
    except OSError as error:
        raise ManifestError(f"audit {path}: cannot be read: {error.strerror}") from error
    except (ELFError, KeyError, UnicodeDecodeError) as error:
        raise ManifestError(f"audit {path}: expected an ELF program or a script, found neither ({error})") from error
    if kind not in ("ET_EXEC", "ET_DYN"):
        raise ManifestError(f"audit {path}: expected a program, found an object of type {kind}; link it first")
    return Program(path, str(machine), bits, endianness, interpreter=loaders[0] if loaders else "")


def find(name: str) -> Path:
    """The file that a shell would run for `name`. Raises ManifestError."""
    if "/" not in name:
        found = shutil.which(name)
        if found is None:
            raise ManifestError(f"audit {name}: no such program on PATH; give its path, such as ./{name}")
        return Path(found)
    path = Path(name)
    if not path.exists():
        raise ManifestError(f"audit {name}: no such file")
    if path.is_dir():
        raise ManifestError(f"audit {name}: expected a program, found a folder")
    if not os.access(path, os.X_OK):
        raise ManifestError(f"audit {name}: not executable; chmod +x {name}")
    return path


def unsafe_segments(path: str) -> list[str]:
    """Segments that the kernel maps, or a stack that it makes, writable and executable; nothing where it is no ELF."""
    try:
        with open(path, "rb") as stream:
            found = []
            for segment in ELFFile(stream).iter_segments():
                flags = segment["p_flags"]
                if flags & P_FLAGS.PF_W and flags & P_FLAGS.PF_X:
                    if segment["p_type"] == "PT_LOAD":
                        found.append(f"segment of {segment['p_memsz']:#x} bytes at {segment['p_vaddr']:#x}")
                    elif segment["p_type"] == "PT_GNU_STACK":
                        found.append("the stack (PT_GNU_STACK)")
            return found
    except (OSError, ELFError, KeyError):
        return []
