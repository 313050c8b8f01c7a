"""Live progress on a terminal; silence elsewhere."""

from __future__ import annotations

from types import TracebackType

import rich.progress
from rich.console import Console

from .model import Result
from .verdict import RED


class Progress:
    """A bar on standard error that is gone when the run is over."""

    def __init__(self, console: Console) -> None:
        self.bar = rich.progress.Progress(
            rich.progress.TextColumn("{task.description}"),
            rich.progress.BarColumn(),
            rich.progress.MofNCompleteColumn(),
            rich.progress.TextColumn("{task.fields[red]}"),
            rich.progress.TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self.task = self.bar.add_task("starting", total=None, red="")
        self.red = 0

    def __enter__(self) -> Progress:
        self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.stop()

    def note(self, text: str) -> None:
        """What is under way."""
        self.bar.update(self.task, description=text)

    def received(self, total: int, new: list[Result]) -> None:
        """One of `total` items is done."""
        self.red += sum(result.verdict in RED for result in new)
        self.bar.update(self.task, total=total, advance=1, red=f"[red]{self.red} red[/red]" if self.red else "")

    def advanced(self, text: str, done: int, total: int) -> None:
        """`done` of `total` steps are done; `text` names the last."""
        self.bar.update(self.task, description=text, total=total, completed=done)
