"""Checks that the harness judges itself, from the built object or through the emulator's plugin interface.

`host_checks` is the registry: id to HostCheck. A check returns one Result a point (a template), never none.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from ..model import Configuration, Result, Runner, Verdict


class Outcome(Protocol):
    """How a guest program ended."""

    @property
    def status(self) -> int | None:
        """Exit status; negative: killed by that signal; None: timed out."""

    @property
    def output(self) -> str:
        """Standard output, capped."""

    @property
    def errors(self) -> str:
        """Standard error, capped."""


class RunProgram(Protocol):
    def __call__(self, argv: Sequence[str], seconds: float) -> Outcome:
        """Runs argv without a shell in its own process group, which is killed after `seconds`."""


@dataclass(frozen=True)
class Context:
    """What a host check may use. Paths exist where the build succeeded."""

    clang: str
    objdump: str
    llvm_mc: str
    root: Path  # of the project
    directory: Path  # of this configuration's build; scratch files go to its subdirectory "oracles"
    templates_object: Path
    program: Path
    emulator_argv: tuple[str, ...]  # empty: run natively
    run: RunProgram


@dataclass(frozen=True)
class HostCheck:
    id: str
    requirement: str
    text: str
    runner: Runner  # HOST: judged once a build; EMULATED: needs the emulator
    run: Callable[[Configuration, Context], list[Result]]


def result(
    check_id: str,
    requirement: str,
    configuration: Configuration,
    point: str,
    verdict: Verdict,
    message: str = "",
    diagnostics: dict[str, str] | None = None,
) -> Result:
    """A Result of a host check with the configuration filled in."""
    chosen = configuration.template_set
    return Result(
        requirement=requirement,
        check=check_id,
        point=point,
        port=chosen.port.name,
        subject=chosen.subject,
        variant=chosen.variant,
        stub_page=configuration.stub_page,
        os_page=configuration.os_page,
        runner=configuration.runner.value,
        verdict=verdict.value,
        message=message,
        diagnostics=diagnostics or {},
    )


from . import decode as _decode  # noqa: E402  (the modules use the classes above)
from . import limits as _limits  # noqa: E402
from . import plugin as _plugin  # noqa: E402


def _timed(check: HostCheck) -> HostCheck:
    """The check, its time shared out among its results."""

    def run(configuration: Configuration, context: Context) -> list[Result]:
        started = time.monotonic()
        results = check.run(configuration, context)
        for one in results:
            one.seconds = (time.monotonic() - started) / len(results)
        return results

    return replace(check, run=run)


host_checks: dict[str, HostCheck] = {
    check.id: _timed(check) for module in (_decode, _limits, _plugin) for check in module.CHECKS
}
