"""PO-002: what the emulator itself sees the stubs access, held against the manifest.

The program runs po_path_lands with its code pages at known addresses, under conformance/plugin/access.c. That calls every
slot once on each path, so a pass of the plugin is one path on all slots of a template. Accesses fall into three kinds:

- near: in the code page, the data page or the moats between and around them. These must be the path's reads.
- moving: elsewhere, at an address that moves from slot to slot, as the slots' own cells do. These must be the accesses
  that the path declares through pointers.
- standing: elsewhere, at one address in all calls: the stack. Not judged here; PO-021 judges the stack.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ..model import Configuration, PathSpec, Result, Runner, Template, Verdict
from ..tools import find
from . import Context, HostCheck, Outcome, result
from .decode import Finding

ID, REQUIREMENT = "po_plugin_access", "PO-002"
PROGRAM_CHECK = "po_path_lands"
SECONDS = 60
MOAT = 8  # stub pages; conformance/page.h, PAGE_MOAT
# Places where no emulator here keeps anything of its own; the program says when one is taken.
CODE_AT = {8: (0x20_0000_0000, 0x28_0000_0000), 4: (0x6000_0000, 0x5000_0000)}
PLUGIN_APIS = (1, 2)  # QEMU 7.2 takes 1; 9.0 and later no less than 2. The functions used are the same
_ACCESS = re.compile(
    r"^execmem-plugin: page=(\d+) pass=(\d+) index=(\d+) at=(\d+) width=(\d+) store=([01]) count=(\d+) first=(\d+) stride=(-?\d+) "
    r"steady=([01])$",
    re.MULTILINE,
)
_CALLS = re.compile(r"^execmem-plugin: page=(\d+) calls=(\d+) astray=(\d+) lost=(\d+)$", re.MULTILINE)


# A point that the program itself says this emulator cannot show.
_UNABLE = re.compile(rf"^ok \d+ - {PROGRAM_CHECK}\.(\w+) # SKIP EMU: (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Seen:
    """One access of one path, over all slots."""

    number: int  # of the pass
    index: int  # in its call
    at: int  # offset in the slot of the instruction
    width: int
    store: bool
    count: int
    first: int  # address in the first slot
    stride: int  # from slot to slot
    steady: bool


@dataclass(frozen=True)
class Observation:
    calls: int
    astray: int
    lost: int
    accesses: tuple[Seen, ...]


def parse(text: str) -> list[Observation]:
    """What the plugin saw in each page, in the order in which the pages were given. Empty where it did not end."""
    seen: dict[int, list[Seen]] = {}
    for match in _ACCESS.finditer(text):
        page, number, index, at, width, store, count, first, stride, steady = (int(part) for part in match.groups())
        access = Seen(number, index, at, width, bool(store), count, first, stride, bool(steady))
        seen.setdefault(page, []).append(access)
    return [
        Observation(int(calls), int(astray), int(lost), tuple(seen.get(int(page), ())))
        for page, calls, astray, lost in _CALLS.findall(text)
    ]


def judge(template: Template, stub_page: int, code: int, observed: Observation) -> Finding | None:
    """Holds what was seen against the manifest. None where it is exactly what is declared."""
    slots = template.slots(stub_page)
    once = slots * len(template.paths)
    if observed.lost:
        return _finding("more kinds of access than the observer has room for", "a few a path", f"{observed.lost} lost")
    if observed.astray:
        return _finding("code of another slot runs within a call", "every call in its own slot", str(observed.astray))
    # A subject that fills pages itself is called on its own page as well, in the same order.
    if not once or observed.calls not in (once, 2 * once):
        return _finding("not every slot was called on every path", f"{once} calls, or twice that", str(observed.calls))
    for number in range(observed.calls // slots):
        path = template.paths[number % len(template.paths)]
        seen = [a for a in observed.accesses if a.number == number]
        finding = _judge_pass(template, path, stub_page, code, seen)
        if finding is not None:
            return finding
    return None


def _finding(message: str, expected: str, actual: str, **more: str) -> Finding:
    return {"message": message, "expected": expected, "actual": actual, **more}


def _judge_pass(template: Template, path: PathSpec, stub_page: int, code: int, seen: Sequence[Seen]) -> Finding | None:
    slots = template.slots(stub_page)
    pages = (code, code + template.distance(stub_page))
    low, high = min(pages) - MOAT * stub_page, max(pages) + (MOAT + 1) * stub_page
    ordered = sorted(seen, key=lambda a: a.index)
    for access in ordered:
        if access.count != slots or not access.steady:
            what = f"{access.count} of {slots} slots" if access.count != slots else "at distances that differ"
            return _finding(
                f"path {path.name}: an access is not the same in every slot",
                "one access a slot, at the slot's own place",
                f"{_describe(access, code)}, {what}",
                path=path.name,
            )
    # An absolute literal of the template itself is no access to the data page.
    inside = [a for a in ordered if low <= a.first < high and not (code <= a.first < code + stub_page and not a.store)]
    expected = []
    for name in path.reads:
        item = template.field_named(name)
        first = code + template.field_distance(item, stub_page)
        following = code + template.pitch + template.field_distance(item, stub_page, 1)
        expected.append((first, following - first if slots > 1 else 0, item.width, False))
    actual = [(a.first, a.stride, a.width, a.store) for a in inside]
    if actual != expected:
        return _finding(
            f"path {path.name} makes other accesses to its data page than declared",
            "; ".join(_place(*e, code) for e in expected) or "none",
            "; ".join(_describe(a, code) for a in inside) or "none",
            path=path.name,
        )
    elsewhere = [a for a in ordered if not low <= a.first < high]
    moving = [(a.width, a.store) for a in elsewhere if a.stride or slots == 1]
    declared = [
        (t.width, store)
        for t in path.through
        for store in {"load": (False,), "store": (True,), "update": (False, True)}[t.direction]
    ]
    if moving != declared and not (slots == 1 and _contains(moving, declared)):
        return _finding(
            f"path {path.name} makes other accesses through pointers than declared",
            "; ".join(f"{'store' if store else 'load'} of {width} bytes" for width, store in declared) or "none",
            "; ".join(_describe(a, code) for a in elsewhere if a.stride) or "none",
            path=path.name,
        )
    return None


def _contains(whole: Sequence[tuple[int, bool]], part: Sequence[tuple[int, bool]]) -> bool:
    """With one slot nothing moves, so the stack cannot be told from a cell: the declared ones must be among them."""
    rest = iter(whole)
    return all(one in rest for one in part)


def _place(first: int, stride: int, width: int, store: bool, code: int) -> str:
    return f"{'store' if store else 'load'} of {width} bytes at slot{first - code:+#x} (next slot's {stride:+#x})"


def _describe(access: Seen, code: int) -> str:
    shown = _place(access.first, access.stride, access.width, access.store, code)
    return f"{shown} by the instruction at {access.at:#x}"


# ---- Building and running ----


@lru_cache(maxsize=None)
def build_plugin(clang: str, root: Path, api: int, name: str = "access") -> Path:
    """The shared object for the host of one plugin of conformance/plugin. OSError or CalledProcessError where it cannot be built."""
    source, directory = root / "conformance" / "plugin" / f"{name}.c", root / "build" / "plugin"
    output = directory / f"{name}-{api}.so"
    if output.exists() and output.stat().st_mtime_ns >= source.stat().st_mtime_ns:
        return output
    directory.mkdir(parents=True, exist_ok=True)
    # Built aside and renamed: several workers may do so at once.
    with tempfile.TemporaryDirectory(dir=directory) as scratch:
        made = Path(scratch) / output.name
        argv = [
            clang,
            "-std=c11",
            "-O2",
            "-fPIC",
            "-shared",
            "-nostdlib",
            f"--ld-path={find().lld}",
            "-Wall",
            "-Wextra",
        ]
        argv += ["-Werror", f"-DPLUGIN_API={api}", str(source), "-o", str(made)]
        subprocess.run(argv, check=True, capture_output=True, text=True, timeout=120)
        os.replace(made, output)
    return output


@dataclass(frozen=True)
class Watched:
    """A page of slots that the plugin is to watch. Address and sizes in bytes."""

    code: int
    size: int
    pitch: int
    slots: int

    @property
    def option(self) -> tuple[str, str]:
        return "page", f"{self.code:#x}:{self.size}:{self.pitch}:{self.slots}"


def plugin_argv(plugin: Path, options: Iterable[tuple[str, int | str]]) -> list[str]:
    """The emulator's option; a comma in a path is written twice there."""
    given = ",".join(f"{name}={str(value).replace(',', ',,')}" for name, value in options)
    return ["-plugin", f"file={str(plugin).replace(',', ',,')},{given}"]


@dataclass(frozen=True)
class Probed:
    """Whether this emulator loads the plugin."""

    plugin: Path | None
    reason: str = ""


_probes: dict[tuple[str, ...], Probed] = {}


def probe(context: Context) -> Probed:
    """Runs the program with --list under the plugin, once an emulator, and looks for the plugin's last line."""
    key = (*context.emulator_argv, str(context.root))
    if key not in _probes:
        _probes[key] = _probe(context)
    return _probes[key]


def _probe(context: Context) -> Probed:
    reason = ""
    for api in PLUGIN_APIS:
        plugin = build_plugin(context.clang, context.root, api)
        options = plugin_argv(plugin, [Watched(1, 1, 1, 1).option])
        ended = context.run([*context.emulator_argv, *options, str(context.program), "--list"], SECONDS)
        if ended.status == 0 and parse(ended.errors):
            return Probed(plugin)
        lines = ended.errors.strip().splitlines()
        reason = reason or (lines[-1] if lines else f"exit status {ended.status}")
    return Probed(None, f"the emulator loads no plugin: {reason}")


def _step(templates: Sequence[Template], stub_page: int) -> int:
    """Bytes from one template's code page to the next one's, so that their spans (conformance/page.h) do not meet."""
    spans = [abs(t.distance(stub_page)) + (2 * MOAT + 2) * stub_page for t in templates]
    return -(-max(spans) // stub_page) * stub_page


def _observe(
    configuration: Configuration, chosen: Sequence[Template], plugin: Path, context: Context, base: int
) -> tuple[Outcome, list[Watched]]:
    """One run on all slots and paths of the chosen templates."""
    stub_page, every = configuration.stub_page, configuration.template_set.templates
    step = _step(every, stub_page)
    pages = [Watched(base + every.index(t) * step, stub_page, t.pitch, t.slots(stub_page)) for t in chosen]
    program = [str(context.program), "--code-at", hex(base), "--code-step", str(step)]
    for template in chosen:
        program += ["--only", f"{PROGRAM_CHECK}.{template.name}"]
    return (
        context.run([*context.emulator_argv, *plugin_argv(plugin, [page.option for page in pages]), *program], SECONDS),
        pages,
    )


def run(configuration: Configuration, context: Context) -> list[Result]:
    """One result a template."""
    templates = configuration.template_set.templates
    verdict, message = Verdict.PASS, ""
    plugin: Path | None = None
    if not context.emulator_argv or shutil.which(context.emulator_argv[0]) is None:
        verdict, message = Verdict.EMU, "no emulator to observe with"
    else:
        try:
            loaded = probe(context)
            plugin = loaded.plugin
            if plugin is None:
                verdict, message = Verdict.EMU, loaded.reason
        except subprocess.CalledProcessError as error:
            verdict, message = Verdict.ERROR, f"the plugin does not build: {error.stderr.strip()[-400:]}"
        except OSError as error:
            verdict, message = Verdict.ERROR, str(error)
    if plugin is None:
        return [result(ID, REQUIREMENT, configuration, t.name, verdict, message) for t in templates]
    # A template without a slot has nothing to watch.
    several = [t for t in templates if t.slots(configuration.stub_page)]
    judged = _judged(configuration, several, plugin, context) if len(several) > 1 else None
    results = {r.point: r for r in judged or ()}
    return [results.get(t.name) or _alone(configuration, t, plugin, context) for t in templates]


def _alone(configuration: Configuration, template: Template, plugin: Path, context: Context) -> Result:
    """A template by itself, where together they did not come to an end."""
    if not template.slots(configuration.stub_page):
        return _result(configuration, template, _finding("there is no slot to watch", "at least one", "0"))
    judged = _judged(configuration, [template], plugin, context)
    if judged is None:
        return _result(
            configuration, template, _finding("ended without a result", "the plugin's last line of each page", "none")
        )
    return judged[0]


def _judged(
    configuration: Configuration, chosen: Sequence[Template], plugin: Path, context: Context
) -> list[Result] | None:
    """One result a template from one run. None where the run did not come to an end."""
    said = ""
    for base in CODE_AT[configuration.template_set.port.pointer_bytes]:
        ended, pages = _observe(configuration, chosen, plugin, context, base)
        if ended.status == 3:
            said = ended.errors.strip()[-400:]
            continue  # the address is taken
        observed = parse(ended.errors)
        if len(observed) != len(chosen):
            return None
        reasons = dict(_UNABLE.findall(ended.output))
        return [
            _emulated(configuration, template, reasons[template.name])
            if template.name in reasons
            else _result(configuration, template, judge(template, configuration.stub_page, page.code, seen))
            for template, page, seen in zip(chosen, pages, observed)
        ]
    message = f"no place for the code page: {said}"
    return [result(ID, REQUIREMENT, configuration, t.name, Verdict.ERROR, message) for t in chosen]


def _emulated(configuration: Configuration, template: Template, reason: str) -> Result:
    return result(ID, REQUIREMENT, configuration, template.name, Verdict.EMU, reason)


def _result(configuration: Configuration, template: Template, finding: Finding | None) -> Result:
    if not finding:
        return result(ID, REQUIREMENT, configuration, template.name, Verdict.PASS)
    finding = {"template": template.name, **finding}
    return result(ID, REQUIREMENT, configuration, template.name, Verdict.FAIL, finding.pop("message"), finding)


CHECKS = (
    HostCheck(
        ID,
        REQUIREMENT,
        "Seen from outside, every path on every slot makes exactly the declared accesses to the data page.",
        Runner.EMULATED,
        run,
    ),
)
