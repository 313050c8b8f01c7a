"""new-port: the skeleton of a port."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click

from .base import ROOT, guarded, main


@main.command("new-port")
@click.argument("name")
@click.option("--triple", required=True, help="What clang's --target is given, such as riscv64-unknown-linux.")
@click.option("--emulator", required=True, metavar="COMMAND", help="What runs a program: 'qemu-riscv64 -cpu rv64'.")
@click.option(
    "--port-path",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write it there, outside of the tree; the folder is made. Default: into the tree.",
)
@guarded
def new_port(name: str, triple: str, emulator: str, folder: Path | None) -> None:
    """Write the skeleton of a port, which builds, and fails with what is to be written next.

    \b
    execmem-cts new-port riscv32 --triple riscv32-unknown-linux --emulator qemu-riscv32
    execmem-cts new-port mine --triple ppc64le-unknown-linux --emulator qemu-ppc64le --port-path ../mine
    execmem-cts run --port mine --port-path ../mine

    Pointer size, byte order and ELF machine are asked of clang. What only a person knows (registers, instructions, and
    what differs of the system calls) is left open, each with a note in its place that is a failure of `run` until code
    replaces it. Write them in the order in which they are shown: first programs start, then the capturing call stub
    proves itself (family ABI) and the allocators run, then each template. arch/PORTING.md goes through it step by step.

    A folder outside is laid out as the tree: arch/NAME/, asm/NAME.S, toolchains/NAME.*. To move the port into the tree,
    copy the folder over it.
    """
    from .. import new_port as skeleton
    from .. import tools

    written = skeleton.make(ROOT, folder, name, triple, shlex.split(emulator), tools.find())
    for path in written:
        click.echo(f"written: {os.path.relpath(path)}")
    where = ["--port-path", os.path.relpath(folder)] if folder else []
    click.echo("next:    " + shlex.join(["harness/execmem-cts", "run", "--port", name, *where]))
    if not folder:
        click.echo("         toolchains/presets   # writes CMakePresets.json anew")
