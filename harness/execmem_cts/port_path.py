"""Where ports lie: in the tree, and in folders outside of it that are laid out as the tree is.

Such a folder holds `arch/<port>/`, `asm/<port>.S` and `toolchains/<port>.*` of one port or of several, and, where they
plant faults, `conformance/faults/<port>-*.toml`: to move a port into the tree is to copy the folder over it. The folders
are named by `--port-path`, and by the environment variable EXECMEM_PORT_PATH, which a run's own processes inherit.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from .source import ManifestError

VARIABLE = "EXECMEM_PORT_PATH"
MANIFEST = "port.toml"


def folders(environ: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """The folders outside of the tree, absolute, each once. An empty variable names none."""
    named = [Path(os.path.abspath(name)) for name in environ.get(VARIABLE, "").split(os.pathsep) if name]
    return tuple(dict.fromkeys(named))


def extend(more: Sequence[Path]) -> None:
    """Adds folders for this process and those that it starts, in which relative names would mean others."""
    every = dict.fromkeys([*folders(), *(Path(os.path.abspath(folder)) for folder in more)])
    if every:
        os.environ[VARIABLE] = os.pathsep.join(map(str, every))


def options() -> list[str]:
    """The folders as options, for a command line to be copied."""
    return [part for folder in folders() for part in ("--port-path", str(folder))]


def manifests(root: Path) -> list[Path]:
    """The manifest of every port, in order of the ports' names. Raises ManifestError."""
    found: dict[str, Path] = {}
    for top in dict.fromkeys((root, *folders())):
        for path in _of_folder(top, root):
            name = path.parent.name
            if name in found:
                raise ManifestError(
                    f"port {name!r} is there twice: {found[name]} and {path}; "
                    f"rename one, or leave its folder out of --port-path and {VARIABLE}"
                )
            found[name] = path
    return [found[name] for name in sorted(found)]


def _of_folder(top: Path, root: Path) -> list[Path]:
    if not top.is_dir():
        raise ManifestError(f"--port-path {top}: no such folder; name the one that holds arch/<port>/{MANIFEST}")
    paths = sorted((top / "arch").glob(f"*/{MANIFEST}"))
    bare = [path for path in sorted((top / "arch").glob("*/")) if not (path / MANIFEST).is_file() and _has_files(path)]
    if bare:
        raise ManifestError(
            f"{bare[0]}: a port's folder without its manifest, {MANIFEST}; "
            f"`execmem-cts new-port {bare[0].name} ...` writes one, arch/PORTING.md tells what it holds"
        )
    if paths:
        return paths
    if top == root:
        raise ManifestError(f"{root / 'arch'}: no <port>/{MANIFEST} found; run from the project's tree")
    inner = (top / MANIFEST).is_file() and top.parent.name == "arch"
    raise ManifestError(
        f"--port-path {top}: no arch/<port>/{MANIFEST} in it; "
        + (f"name the folder above arch/, {top.parent.parent}" if inner else "`execmem-cts new-port` writes a port")
    )


def _has_files(folder: Path) -> bool:
    return any(path.is_file() for path in folder.iterdir())
