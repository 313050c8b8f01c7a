"""pytest plugin, hooks only: collects the items of a plan file, runs them in the workers, hands results to the controller.

pytest does selection, parallelism (xdist) and the order of things; what a check is and what came of it is ours. A worker
reads the plan file and nothing else: no manifest is parsed again.
"""

from __future__ import annotations

import dataclasses
import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from . import flaky, process, runner
from .model import Configuration, Result, Runner, Verdict
from .runner import Item
from .tools import Tools

PLAN, SHARED, PROPERTY = "plan.json", "plan.shared", "execmem-results"


@dataclasses.dataclass(frozen=True)
class Shared:
    """What host checks need beside their item."""

    root: Path
    build: Path
    tools: Tools
    configurations: dict[str, Configuration]  # by the item's cell
    rerun: bool = True  # what failed, to tell whether it is flaky


def write_plan(directory: Path, items: list[Item], shared: Shared) -> Path:
    """The plan file, and beside it what host checks share."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / PLAN
    path.write_text(json.dumps([dataclasses.asdict(item) for item in items]))
    with path.with_name(SHARED).open("wb") as stream:
        pickle.dump(shared, stream)
    return path


class CheckItem(pytest.Item):
    """One check in one configuration, or several that share the start of their program."""

    def __init__(self, *, items: list[Item], plan: "PlanFile", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.items, self.plan = items, plan
        item = items[0]
        if item.runner == Runner.HOST.value:
            # In one worker: what the oracles learn of a port's rules and assembly holds for all its stub page sizes.
            self.add_marker(pytest.mark.xdist_group(f"{item.port}-{item.subject}-{item.variant}"))

    def runtest(self) -> None:
        try:
            first = self.items[0]
            results = self.plan.host_results(first) if first.host else runner.run_together(self.items)
            if not first.host and any(result.verdict == "FAIL" for result in results) and self.plan.shared().rerun:
                flaky.classify(self.items, results)
        except Exception as error:  # the suite's own fault: never a pass, and never in silence
            said = f"the harness failed: {type(error).__name__}: {error}"
            results = [item.result("all", Verdict.ERROR, said) for item in self.items]
        self.user_properties.append((PROPERTY, [dataclasses.asdict(result) for result in results]))


class PlanFile(pytest.File):
    """The plan file, as pytest sees it."""

    _shared: Shared | None = None

    def collect(self) -> Iterator[CheckItem]:
        together: dict[tuple[str, ...], list[Item]] = {}
        for number, entry in enumerate(json.loads(self.path.read_text())):
            for name in ("points", "emulator"):
                entry[name] = tuple(entry[name])
            item = Item(**entry)
            key = (str(number),) if item.host or item.only else item.alike
            together.setdefault(key, []).append(item)
        for number, items in enumerate(together.values()):
            name = items[0].key if len(items) == 1 else items[0].cell
            yield CheckItem.from_parent(self, name=f"{number}:{name}", items=items, plan=self)

    def shared(self) -> Shared:
        """Read once a worker, and only where a host check asks for it."""
        if self._shared is None:
            with self.path.with_name(SHARED).open("rb") as stream:
                self._shared = pickle.load(stream)
        assert self._shared is not None
        return self._shared

    def host_results(self, item: Item) -> list[Result]:
        """What a host check says."""
        from .oracles import Context, host_checks

        shared = self.shared()
        configuration = shared.configurations[item.cell]
        directory = shared.build / configuration.build_key
        context = Context(
            clang=shared.tools.clang,
            objdump=shared.tools.objdump,
            llvm_mc=shared.tools.mc,
            root=shared.root,
            directory=directory,
            templates_object=directory / "templates.o",
            program=directory / "po",
            emulator_argv=item.emulator,
            run=process.run,
        )
        results = host_checks[item.check].run(configuration, context)
        if not results:
            return [item.result("all", Verdict.FAIL, "ended without a result: the check reported no point")]
        return [result for result in results if not item.only or result.point == item.only]


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> PlanFile | None:
    if file_path.name == PLAN:
        return PlanFile.from_parent(parent, path=file_path)  # type: ignore[no-any-return]
    return None


class Controller:
    """Registered in the controlling process alone: receives the results as they come in."""

    def __init__(self, received: Callable[[list[Result]], None]) -> None:
        self.received = received

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            for name, value in report.user_properties:
                if name == PROPERTY and isinstance(value, list):
                    self.received([Result(**entry) for entry in value])
