"""What is to be run, of the configurations that exist, the checks that their programs list, and what the user selected.

Nothing is dropped in silence: a cell that a filter leaves out becomes SKIP, one that could not be built NOTRUN beside the
ERROR or FAIL that says why, and a port without a check is an ERROR.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from . import native, subjects, unwritten
from .build import Built, Unit
from .listing import Listed, list_checks
from .model import ALLOC, Configuration, Port, Result, Runner, Subject, TemplateSet, Verdict
from .refusal import Refusal
from .requirements import Requirement
from .runner import Item, relative_to_root
from .selection import Filter

if TYPE_CHECKING:
    from .oracles import HostCheck

# Where no declared stub page reaches the OS page, this alone can be asked: does the subject refuse?
REFUSES = "po_stub_page_size"
REACH = "po_limits_field"  # what a refused template fails
BUILD = "build"
# How often the allocator families' checks try sequences at random: an emulated program runs 3 to 10 times slower.
ROUNDS = {Runner.EMULATED: 1, Runner.NATIVE: 3}
PAGES = (4096, 16384, 65536)  # that the allocator families simulate, where the system's own are not larger


@dataclass
class Plan:
    items: list[Item] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)  # already known: refused, not built, filtered out
    configurations: dict[str, Configuration] = field(default_factory=dict)
    checks: dict[str, str] = field(default_factory=dict)  # what programs and oracles have: id -> requirement
    texts: dict[str, str] = field(default_factory=dict)
    sets: list[TemplateSet] = field(default_factory=list)  # of the ports in it
    notes: list[str] = field(default_factory=list)  # of the subject, to be told with the results
    natively: dict[str, str] = field(default_factory=dict)  # port -> "" where it runs natively, else why not


def units(sets: Iterable[TemplateSet], chosen: Filter) -> list[Unit]:
    """What has to be built for the selection."""
    found = {}
    for template_set in sets:
        for stub_page in template_set.stub_pages:
            unit = Unit(template_set, stub_page)
            if any(chosen.wants_cell(c) for c in _of_unit(unit, chosen)):
                found[unit.key] = unit
    return list(found.values())


def simulated(port: Port, runner: Runner) -> list[int]:
    """The page sizes at which the allocator families run there."""
    own = host_page() if runner is Runner.NATIVE else min(port.os_pages)
    return [page for page in PAGES if page >= own]


def wants_any_alloc(port: Port, subject: Subject, chosen: Filter) -> bool:
    """Is a cell of the allocator families selected?"""
    return any(
        chosen.wants_alloc(f"{port.name}/{subject.name}/{ALLOC}-0/{page}/{runner.value}", page, runner)
        for runner in (Runner.EMULATED, Runner.NATIVE)
        for page in simulated(port, runner)
    )


def host_page() -> int:
    return os.sysconf("SC_PAGE_SIZE")


def _reaching(template_set: TemplateSet, os_page: int) -> tuple[int, ...]:
    return tuple(sorted(s for s in template_set.stub_pages if s >= os_page and s % os_page == 0))


def refuses_only(c: Configuration) -> bool:
    """No declared stub page reaches the OS page: there is nothing to run but the question whether that is refused."""
    return c.stub_page < c.os_page


def _of_unit(unit: Unit, chosen: Filter) -> list[Configuration]:
    """Every configuration that runs this program, native ones included, whether or not this machine can.

    A template and its stub page size alone decide a page offset; the OS page size decides where pages can lie. So every
    stub page size is run at the port's smallest OS page, and at a larger one the smallest that reaches it, whose code
    and data pages touch. A user who asks for OS page sizes gets every stub page size there.
    """
    template_set, stub_page = unit.template_set, unit.stub_page
    smallest = min(template_set.stub_pages)
    pages = template_set.port.os_pages
    found = [Configuration(template_set, stub_page, min(pages), Runner.HOST)]
    asked = [(page, Runner.EMULATED) for page in pages] + [(host_page(), Runner.NATIVE)]
    for page, runner in asked:
        reaching = _reaching(template_set, page)
        if runner is Runner.EMULATED and page != min(pages) and not chosen.os_pages:
            reaching = reaching[:1]
        if stub_page in reaching or (not reaching and stub_page == smallest):
            found.append(Configuration(template_set, stub_page, page, runner))
    return found


def emulator_argv(port: Port, os_page: int) -> tuple[str, ...]:
    """The emulator, asked for an OS page size where the port knows how to ask."""
    return (*port.emulator_argv, *(part.replace("{os_page}", str(os_page)) for part in port.os_page_argv))


class Planner:
    """Makes a Plan. Two steps, because what was built decides what can be asked."""

    def __init__(
        self,
        root: Path,
        subject: Subject,
        requirements: Mapping[str, Requirement],
        host_checks: Mapping[str, HostCheck],
        chosen: Filter,
        seed: int,
        seconds: float,
    ) -> None:
        self.root, self.subject, self.chosen = root, subject, chosen
        self.requirements, self.host_checks = requirements, host_checks
        self.seed, self.seconds = seed, seconds
        self.plan = Plan()
        self.listed: dict[Path, list[Listed]] = {}

    def make(self, built: Built, ports: Sequence[Port]) -> Plan:
        plan = self.plan
        for check in self.host_checks.values():
            plan.checks[check.id], plan.texts[check.id] = check.requirement, check.text
        by_name = {port.name: port for port in ports}
        for port in ports:
            self._unwritten(port, built)
        programs = {path: by_name[key.split("/", 1)[0]].emulator_argv for key, path in built.programs.items()}
        for more in (built.abi, built.alloc):
            programs.update({path: by_name[name].emulator_argv for name, path in more.items()})
        self.listed = list_checks(programs, self.root)
        for checks in self.listed.values():
            for line in checks:
                plan.checks[line.check], plan.texts[line.check] = line.requirement, line.text
        for port in ports:
            self._port(port, [s for s in self.subject.template_sets if s.port.name == port.name], built)
            self._proof(port, built)
            self._alloc(port, built)
        return plan

    def _unwritten(self, port: Port, built: Built) -> None:
        """What a port still lacks: each a failure."""
        for number, note in enumerate(unwritten.set_aside(built, port.name), 1):
            item = self._proof_item(port, BUILD, "-", (), Runner.HOST, "")
            result = item.result(f"{number:02}-{note.name}", Verdict.FAIL, note.message)
            result.variant, result.diagnostics = "-", {"message": note.message, "to write": note.what}
            self.plan.results.append(result)

    def _alloc(self, port: Port, built: Built) -> None:
        """The allocator families: once a page size and runner, on a program of their own."""
        required = [(c, r.id) for r in self.requirements.values() if r.program == ALLOC for c in r.checks]
        program = built.alloc.get(port.name)
        listed = self.listed.get(program, []) if program else []
        points = {line.check: line.points for line in listed}
        wanted = dict(required) | {line.check: line.requirement for line in listed}
        name = relative_to_root(self.root, program) if program else ""
        if port.name in built.alloc_errors and required:
            item = self._alloc_item(port, BUILD, "-", (), Runner.HOST, min(port.os_pages), "")
            result = item.result("all", Verdict.ERROR, "the allocator families' program does not build")
            result.log = built.alloc_errors[port.name]
            self.plan.results.append(result)
        for runner in (Runner.EMULATED, Runner.NATIVE):
            if runner is Runner.NATIVE and self.plan.natively[port.name]:
                continue
            for number, page in enumerate(simulated(port, runner)):
                for check, requirement in wanted.items():
                    item = self._alloc_item(port, check, requirement, points.get(check, ("all",)), runner, page, name)
                    picked = self.chosen.keys is None or self.chosen.points(item.cell, check, requirement)
                    chosen = picked and self.chosen.wants_check(check, requirement)
                    if number and requirement in self.requirements and self.requirements[requirement].once:
                        wanted_here = self.chosen.only and page in self.chosen.os_pages
                        if chosen and wanted_here and self.chosen.wants_alloc(item.cell, page, runner):
                            why = f"judged once, at pages of {simulated(port, runner)[0]} bytes"
                            self.plan.results.append(item.result("*", Verdict.SKIP, why))
                        continue
                    if not chosen or not self.chosen.wants_alloc(item.cell, page, runner):
                        self.plan.results.append(item.result("*", Verdict.SKIP, "left out by a filter"))
                    elif not subjects.allocates(self.subject):
                        self.plan.results.append(item.result("*", Verdict.NA, "the subject claims no allocator"))
                    elif not program:
                        why = built.withheld.get(unwritten.alloc_key(port.name), "does not build")
                        self.plan.results.append(item.result("*", Verdict.NOTRUN, why))
                    else:
                        self.plan.items.append(item)

    def _alloc_item(
        self, port: Port, check: str, requirement: str, points: tuple[str, ...], runner: Runner, page: int, program: str
    ) -> Item:
        # Larger pages are simulated by the program: an emulator that is asked for them now and then refuses a mapping.
        emulator = emulator_argv(port, min(port.os_pages)) if runner is Runner.EMULATED else ()
        return Item(
            requirement, check, points, port.name, self.subject.name, ALLOC, 0, page, runner.value, emulator, program,
            self.seed, self.seconds, page=page, rounds=ROUNDS.get(runner, 1),
        )  # fmt: skip

    def _proof(self, port: Port, built: Built) -> None:
        """The capturing call stub proves itself, on each runner: every check of registers rests on it."""
        if port.name in built.abi_errors:
            item = self._proof_item(port, BUILD, "-", (), Runner.HOST, "")
            result = item.result("all", Verdict.ERROR, "the proof of the capturing call stub does not build")
            result.log = built.abi_errors[port.name]
            self.plan.results.append(result)
        program = built.abi.get(port.name)
        name = relative_to_root(self.root, program) if program else ""
        points = {line.check: line.points for line in self.listed.get(program, [])} if program else {}
        required = [(c, r.id) for r in self.requirements.values() if r.program == "abi" for c in r.checks]
        for runner in (Runner.EMULATED, Runner.NATIVE):
            if runner is Runner.NATIVE and self.plan.natively[port.name]:
                continue
            for check, requirement in required:
                item = self._proof_item(port, check, requirement, points.get(check, ("all",)), runner, name)
                picked = self.chosen.keys is None or self.chosen.points(item.cell, check, requirement)
                left_out = runner is Runner.NATIVE and self.chosen.native is False
                if port.name in built.withheld or (not program and port.name in built.abi_errors):
                    why = built.withheld.get(port.name, "does not build")
                    self.plan.results.append(item.result("*", Verdict.NOTRUN, why))
                elif left_out or not program or not picked or not self.chosen.wants_check(check, requirement):
                    self.plan.results.append(item.result("*", Verdict.SKIP, "left out by a filter"))
                else:
                    self.plan.items.append(item)

    def _proof_item(
        self, port: Port, check: str, requirement: str, points: tuple[str, ...], runner: Runner, program: str
    ) -> Item:
        os_page = host_page() if runner is Runner.NATIVE else min(port.os_pages)
        emulator = emulator_argv(port, os_page) if runner is Runner.EMULATED else ()
        return Item(
            requirement, check, points, port.name, "port", "abi", 0, os_page, runner.value, emulator, program,
            self.seed, self.seconds,
        )  # fmt: skip

    def _port(self, port: Port, sets: Sequence[TemplateSet], built: Built) -> None:
        built_here = [path for key, path in built.programs.items() if key.startswith(f"{port.name}/")]
        program = next(iter(built_here), built.alloc.get(port.name))
        self.plan.natively[port.name] = native.runs(program) if program else "nothing was built"
        before = len(self.plan.items) + len(self.plan.results)
        for template_set in sets:
            for stub_page in template_set.stub_pages:
                unit = Unit(template_set, stub_page)
                for configuration in _of_unit(unit, self.chosen):
                    if configuration.runner is Runner.NATIVE and self.plan.natively[port.name]:
                        if self.chosen.native and self.chosen.wants_cell(configuration):
                            self._absent(configuration, self.plan.natively[port.name], Verdict.NOTRUN)
                        continue
                    listed = self.listed.get(built.programs[unit.key], []) if unit.key in built.programs else []
                    self._configuration(configuration, built, listed)
        if not sets and subjects.claims_alone(self.subject) and port.name in self.subject.objects:
            self._no_templates(port)
        if len(self.plan.items) + len(self.plan.results) == before:
            self.plan.results.append(
                Result(
                    "-",
                    "plan",
                    "all",
                    port.name,
                    self.subject.name,
                    "-",
                    0,
                    0,
                    "host",
                    Verdict.ERROR.value,
                    "no checks: " f"the subject {self.subject.name!r} has no configuration on this port",
                )
            )

    def _no_templates(self, port: Port) -> None:
        """The subject is judged by its claims; there is no template that family PO could look at."""
        for requirement in self.requirements.values():
            for check in requirement.checks if requirement.program == "po" else ():
                where = (port.name, self.subject.name, "-", 0, min(port.os_pages), Runner.EMULATED.value)
                why = "the subject has no templates"
                self.plan.results.append(Result(requirement.id, check, "*", *where, Verdict.NA.value, why))

    def _expected(self, c: Configuration) -> dict[str, str]:
        """The checks that a configuration should run, by the requirements alone: id -> requirement."""
        expected = {}
        for requirement in self.requirements.values():
            for check in requirement.checks if requirement.program == "po" else ():
                host = self.host_checks.get(check)
                runner_matches = host.runner is c.runner if host else c.runner is not Runner.HOST
                if runner_matches and (not refuses_only(c) or check == REFUSES):
                    expected[check] = requirement.id
        return expected

    def _absent(self, c: Configuration, reason: str, verdict: Verdict, but: str = "") -> None:
        for check, requirement in self._expected(c).items():
            if check != but:
                self.plan.results.append(self._item(c, check, requirement, ("*",), "").result("*", verdict, reason))

    def _item(self, c: Configuration, check: str, requirement: str, points: tuple[str, ...], program: str) -> Item:
        t = c.template_set
        return Item(
            requirement=requirement,
            check=check,
            points=points,
            port=t.port.name,
            subject=t.subject,
            variant=t.variant,
            stub_page=c.stub_page,
            os_page=c.os_page,
            runner=c.runner.value,
            emulator=emulator_argv(t.port, c.os_page) if c.runner is Runner.EMULATED else (),
            program=program,
            seed=self.seed,
            seconds=self.seconds,
            host=check in self.host_checks,
        )

    def _configuration(self, c: Configuration, built: Built, listed: Sequence[Listed]) -> None:
        if not self.chosen.wants_cell(c):
            return self._absent(c, "left out by a filter", Verdict.SKIP)
        key = c.build_key
        if key in built.refused:
            return self._refused(c, built.refused[key])
        if key in built.withheld:
            return self._absent(c, built.withheld[key], Verdict.NOTRUN)
        if key in built.errors or key not in built.programs:
            if c.runner is Runner.HOST:
                result = self._item(c, BUILD, "-", (), "").result("all", Verdict.ERROR, "does not build")
                result.log = built.errors.get(key, "")
                self.plan.results.append(result)
            return self._absent(c, "does not build", Verdict.NOTRUN)
        self.plan.configurations[c.key] = c
        points = {line.check: line.points for line in listed}
        program = relative_to_root(self.root, built.programs[key])
        checks = self._expected(c)
        if c.runner is not Runner.HOST and not refuses_only(c):  # a check that no requirement lists is run all the same
            checks.update({line.check: line.requirement for line in listed})
        for check, requirement in checks.items():
            if not self.chosen.wants_check(check, requirement):
                skipped = self._item(c, check, requirement, ("*",), program)
                self.plan.results.append(skipped.result("*", Verdict.SKIP, "left out by a filter"))
                continue
            item = self._item(c, check, requirement, points.get(check, ("all",)), program)
            alone = self.chosen.points(c.key, check, requirement)
            if self.chosen.keys is not None and not alone:
                self.plan.results.append(item.result("*", Verdict.SKIP, "left out by --last-failed"))
                continue
            if item.host or not alone or "*" in alone:
                self.plan.items.append(item)
                continue
            self.plan.items += [replace(item, only=point) for point in alone]
            if set(item.points) - set(alone):
                self.plan.results.append(item.result("*", Verdict.SKIP, "its other points are left out by a filter"))
        return None

    def _refused(self, c: Configuration, refusals: Sequence[Refusal]) -> None:
        """A declared stub page size that the assembly cannot encode is a finding, not an error of the build."""
        by_template: dict[str, list[Refusal]] = {}
        for refusal in refusals:
            by_template.setdefault(refusal.template, []).append(refusal)
        for template, fields in by_template.items() if c.runner is Runner.HOST else ():
            item = self._item(c, REACH, self.plan.checks.get(REACH, "PO-004"), (), "")
            said = "; ".join(
                f"field {f.field} lies {f.distance} bytes away, its immediate reaches {f.lowest} to {f.highest}"
                for f in fields
            )
            message = f"the build refuses stub pages of {c.stub_page} bytes: {said}"
            result = item.result(template, Verdict.FAIL, message)
            result.diagnostics = {
                "message": message,
                "template": template,
                "expected": f"a distance from {fields[0].lowest} to {fields[0].highest}",
                "actual": str(fields[0].distance),
                "compiler": "\n".join(f.text for f in fields),
            }
            self.plan.results.append(result)
        self._absent(c, "the templates are refused by the build", Verdict.NOTRUN, but=REACH)
