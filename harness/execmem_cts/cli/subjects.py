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
