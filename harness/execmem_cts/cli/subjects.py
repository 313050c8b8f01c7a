"""Subjects on the command line: the options that find them, subjects, new-subject."""

from __future__ import annotations

import os
from pathlib import Path

import click

from .base import ROOT, guarded, main

SUBJECT_PATH = click.option(
    "--subject-path",
    "subject_path",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A folder that is a subject, or that holds some; may be repeated. Also EXECMEM_SUBJECT_PATH, with colons.",
)
CHECKOUT = click.option(
    "--checkout",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Root of the subject's sources or libraries: what {checkout} in its manifest stands for.",
)


def resolved(name: str, folders: tuple[Path, ...]) -> str:
    """The name of a subject of the tree, or the absolute path of the manifest. Raises ManifestError."""
    from .. import subjects

    if "/" in name or name.endswith(".toml"):
        return os.path.abspath(name)
    path = subjects.find(ROOT, name, subjects.search_path(folders))
    return name if path.is_relative_to(ROOT / subjects.FOLDER) else str(path.absolute())


@main.command("subjects")
@SUBJECT_PATH
@guarded
def subjects_command(subject_path: tuple[Path, ...]) -> None:
    """The subjects that are here: what they are, what they claim, and on which ports.

    \b
    execmem-cts subjects
    execmem-cts subjects --subject-path ../allocators
    """
    from .. import subjects
    from ..source import Source

    for name, path in subjects.discover(ROOT, subjects.search_path(subject_path)).items():
        data = Source(path, ROOT).data
        click.echo(f"{name}: {data.get('about', 'nothing is said about it')}")
        click.echo(f"  manifest  {os.path.relpath(path)}")
        click.echo(f"  claims    {', '.join(data.get('claims', ())) or 'none: templates alone'}")
        click.echo(f"  ports     {', '.join(data.get('ports', ())) or 'every port'}")


def _objects(given: tuple[str, ...]) -> dict[str, list[Path]]:
    """PORT=FILE, by port. Raises ManifestError."""
    from ..source import ManifestError

    found: dict[str, list[Path]] = {}
    for text in given:
        port, separator, file = text.partition("=")
        if not separator or not port or not file:
            raise ManifestError(
                f"--object {text}: expected PORT=FILE; write --object PORT=build/libmine.a, with a name of `execmem-cts ports`"
            )
        found.setdefault(port, []).append(Path(file))
    return found


@main.command("new-subject")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--name", help="The subject's name. Default: the folder's.")
@click.option(
    "--claim", "claims", multiple=True, metavar="CLAIM", help="What it offers; may be repeated. Default: blocks."
)
@click.option("--hosted", is_flag=True, help="It needs a C library, and is linked against the port's.")
@click.option(
    "--object", "objects", multiple=True, metavar="PORT=FILE", help="A prebuilt .o or .a for a port; may be repeated."
)
@guarded
def new_subject(
    folder: Path, name: str | None, claims: tuple[str, ...], hosted: bool, objects: tuple[str, ...]
) -> None:
    """Write the adapter of an allocator that is not ours, to be filled in.

    \b
    execmem-cts new-subject ../mine
    execmem-cts new-subject ../mine --claim blocks --claim blocks-destroy --object arm64=libmine.a
    execmem-cts new-subject ../mine --claim blocks --claim blocks-os-table --hosted --object x64=/usr/lib/libmine.a

    FOLDER gets a subject.toml and a C file with one function for each operation of the claims, declared as
    conformance/subject*.h have it. It builds and runs as it is, and fails where it is to be filled in. A claim holds all
    of its operations; what is not claimed is not tested. `execmem-cts subjects` shows the claims of those that are here.

    An allocator that uses malloc or any other part of a C library is --hosted: its program is linked statically against
    the port's C library, and what it asks of the system is caught by the linker, so that with claim blocks-os-table (or
    os-table) its calls are recorded, page sizes simulated and single calls refused.
    """
    from .. import manifest
    from .. import new_subject as writing
    from ..source import ManifestError

    wanted, cache = list(claims) or ["blocks"], ROOT / "build" / "manifests"
    there = folder.exists()
    ports = manifest.discover_ports(ROOT, cache)
    written = writing.write(ROOT, folder, name or folder.absolute().name, wanted, hosted, _objects(objects))
    try:
        manifest.load_subject(written[0], ROOT, ports, cache)
    except ManifestError:
        for path in written:
            path.unlink()
        if not there:
            folder.rmdir()
        raise
    port = next(iter(_objects(objects) or ports))
    for path in written:
        click.echo(f"wrote {os.path.relpath(path)}")
    click.echo(f"next: harness/execmem-cts run --subject {os.path.relpath(written[0])} --port {port}")
