"""What every command of the line shares: the group itself, sizes as arguments, and how errors end."""

from __future__ import annotations

import functools
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from .. import __version__, port_path, verdict
from ..source import ManifestError
from ..tools import ToolError

ROOT = Path(__file__).resolve().parents[3]
F = TypeVar("F", bound=Callable[..., Any])


class Numbers(click.ParamType):
    """A size in bytes: 16384, 0x4000, 16K or 16KiB."""

    name = "SIZE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value)
        for suffix in ("KiB", "K", "k"):
            if text.endswith(suffix):
                text, factor = text.removesuffix(suffix), 1024
                break
        else:
            factor = 1
        try:
            return int(text, 0) * factor
        except ValueError:
            self.fail(f"{value!r} is no size: write 16384, 0x4000 or 16K", param, ctx)


def _add_folders(context: click.Context, parameter: click.Parameter, value: tuple[Path, ...]) -> None:
    port_path.extend(value)


# Of every command that asks for the ports. They find the folders by themselves: the command gets no argument.
with_port_path = click.option(
    "--port-path",
    multiple=True,
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    is_eager=True,
    expose_value=False,
    callback=_add_folders,
    help=f"A folder with ports that are not in the tree, as {port_path.VARIABLE} names them; may be repeated.",
)


def guarded(command: F) -> F:
    """Manifest errors end with status 2, missing tools with 3; one line each, no traceback."""

    @functools.wraps(command)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except BrokenPipeError:  # whoever reads, a pager or head, has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(verdict.INFRASTRUCTURE)
        except ManifestError as error:
            click.echo(f"execmem-cts: {error}", err=True)
            sys.exit(verdict.USAGE)
        except ToolError as error:
            click.echo(f"execmem-cts: {error}", err=True)
            sys.exit(verdict.INFRASTRUCTURE)
        except KeyboardInterrupt:
            click.echo("execmem-cts: interrupted", err=True)
            sys.exit(130)  # as shells have it: no verdict at all
        except (click.ClickException, click.exceptions.Exit):
            raise
        except Exception:  # a mistake of the harness: Python's own status, 1, would read as a regression
            traceback.print_exc()
            click.echo("execmem-cts: the harness itself failed; this says nothing of the subject", err=True)
            sys.exit(verdict.INFRASTRUCTURE)

    return wrapper  # type: ignore[return-value]


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="execmem-cts")
def main() -> None:
    """Is an executable-memory allocator, or a set of thunk templates, right on an architecture?

    \b
    execmem-cts run                        everything, on every port
    execmem-cts run --port arm64           is this port conformant?
    execmem-cts run --port x64 --stub-page 16K --only PO-001
    execmem-cts run --last-failed          only what failed before
    execmem-cts gate --expect known.toml   let it decide in CI, with what is known to fail
    execmem-cts explain PO-001             what a requirement says, and how to mend it
    execmem-cts check-templates --manifest mine.toml --port arm64
    execmem-cts tables dotnet-rw           published figures of others, beside ours
    execmem-cts new-port NAME ...          the skeleton of a port, in the tree or outside
    execmem-cts audit -- node app.js       does a program that is not ours keep W^X?

    Exit status: 0 conformant and as expected, 1 a failure or an unexpected pass, 2 usage or manifest, 3 the suite, a
    tool or an emulator broke, 4 unverified: something that is required was not shown.
    """
