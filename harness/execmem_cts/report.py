"""What the console shows: failure blocks, the matrix, the verdict. Reads results, decides nothing."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .matrix import KINDS, Matrix, size_text
from .model import ALLOC, Port, Result
from .profile import Profile
from .requirements import Requirement
from .verdict import RED, Overall

FULL = 3  # blocks shown of failures that are alike, and of all
MOST = 12
CALLS = 8  # of the system, the last ones
STYLES = {"ok": "green", "fail": "bold red", "xpass": "bold red", "error": "bold magenta", "xfail": "yellow"}
SHOWN_APART = {"message", "requirement", "text", "expected", "actual", "bytes", "bytes_at", "bytes_mark", "os_calls"}


@dataclass(frozen=True)
class Surroundings:
    """What a failure block needs besides the result."""

    root: Path
    ports: Mapping[str, Port]
    requirements: Mapping[str, Requirement]
    header: Mapping[str, Any]
    triples: Mapping[tuple[str, str], str]  # (port, variant) -> triple to disassemble for
    llvm_mc: str = ""
    command: tuple[str, ...] = ("run",)  # to be repeated in `rerun:`


def _number(text: str) -> int | None:
    try:
        return int(text, 0)
    except ValueError:
        return None


def disassemble(code: bytes, at: int, mark: int, triple: str, llvm_mc: str) -> list[str]:
    """One line an instruction, `>` at the mark. Bytes that LLVM rejects are shown as bytes."""
    octets = " ".join(f"0x{octet:02x}" for octet in code)
    argv = [llvm_mc, "--disassemble", "--show-encoding", f"--triple={triple}"]
    try:
        done = subprocess.run(argv, input=octets, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return [code.hex(" ")]
    lines, offset = [], 0
    for line in done.stdout.splitlines():
        match = re.search(r"^\s*(?P<text>.*?)\s*[#@;/]+ encoding: \[(?P<bytes>[^\]]+)\]", line)
        if match is None:
            continue
        length = match["bytes"].count(",") + 1  # a branch shows letters for the bytes of its distance
        here = at + offset
        sign = ">" if here <= mark < here + length else " "
        text = " ".join(match["text"].split("\t"))
        lines.append(f"{sign} {here:#x}: {code[offset:offset + length].hex():<20} {text}")
        offset += length
    return lines or [code.hex(" ")]


def rerun_line(result: Result, around: Surroundings, gdb: bool = False) -> str:
    """A command that runs this point alone, from the project's root."""
    point = "" if result.point in ("*", "all") else f".{result.point}"
    argv = ["harness/execmem-cts", *around.command, "--port", result.port]
    if result.stub_page or result.variant == ALLOC:
        argv += ["--variant", result.variant]
    if result.stub_page:
        argv += ["--stub-page", str(result.stub_page)]
    if result.runner != "host":
        argv += ["--os-page", str(result.os_page), "--native" if result.runner == "native" else "--no-native"]
    if result.check not in ("build", "plan", "pytest", "lint"):
        argv += ["--only", result.check + point]
    return shlex.join(argv + (["--gdb"] if gdb else []))


def _place(result: Result, around: Surroundings) -> str:
    port = around.ports.get(result.port)
    parts = [result.port if result.variant in ("-", ALLOC) else f"{result.port} ({result.variant})"]
    if result.stub_page:
        parts.append(f"stub page {size_text(result.stub_page)}")
    if result.os_page and result.runner != "host":
        parts.append(f"{'page' if result.variant == ALLOC else 'OS page'} {size_text(result.os_page)}")
    if result.runner == "emulated" and port is not None:
        program = port.emulator_argv[0]
        parts.append(around.header.get("emulators", {}).get(program) or program)
    elif result.runner == "native":
        parts.append("native")
    else:
        parts.append("judged from the built object")
    return ", ".join(parts)


def _code(result: Result, around: Surroundings) -> list[str]:
    notes = result.diagnostics
    at, mark = _number(notes.get("bytes_at", "")), _number(notes.get("bytes_mark", ""))
    try:
        code = bytes.fromhex(notes.get("bytes", ""))
    except ValueError:
        return []
    if not code or at is None or not around.llvm_mc:
        return []
    port = around.ports.get(result.port)
    triple = around.triples.get((result.port, result.variant)) or (port.triple if port else "")
    return disassemble(code, at, at if mark is None else mark, triple, around.llvm_mc)


def block(result: Result, around: Surroundings) -> list[str]:
    """The failure block of one result, as lines."""
    requirement = around.requirements.get(result.requirement)
    notes = result.diagnostics
    lines = [f"{result.verdict} {result.requirement} {result.check}.{result.point}"]
    if requirement:
        lines.append(f"  {requirement.level}: {requirement.text}")
    lines.append(f"  where:    {_place(result, around)}")
    if result.message or not result.expected:
        lines.append(f"  message:  {result.message}")
    if result.expected:
        lines.append(f"  expected to fail: {result.expected}, and it passed; delete or narrow that entry, or run")
        lines.append("            `execmem-cts update-expectations`")
    for key in ("expected", "actual"):
        if key in notes:
            first, *rest = notes[key].splitlines() or [""]
            lines += [f"  {key + ':':<9} {first}", *(f"            {line}" for line in rest)]
    short = {k: v for k, v in notes.items() if k not in SHOWN_APART and v and "\n" not in v and len(v) < 40}
    if short:
        lines.append("  at:       " + ", ".join(f"{key} {value}" for key, value in short.items()))
    for key, value in notes.items():
        if key not in SHOWN_APART and key not in short and value:
            first, *rest = value.splitlines()
            lines += [f"  {key}: {first}", *(f"    {line}" for line in rest)]
    code = _code(result, around)
    if code:
        lines += ["  code around the place:", *(f"    {line}" for line in code)]
    calls = [call for call in re.split(r"; |\n", notes.get("os_calls", "")) if call]
    if calls:
        lines += ["  last OS calls:", *(f"    {call}" for call in calls[-CALLS:])]
    if result.log:
        lines += ["  output:", *(f"    {line}" for line in result.log.splitlines()[-20:])]
    if requirement and result.verdict == "FAIL":
        lines.append(f"  mend:     {requirement.mend}")
    lines.append(f"  rerun:    {rerun_line(result, around)}")
    if result.runner != "host" and result.argv:  # what an oracle of the harness judges has no program to stop
        lines.append(f"  gdb:      {rerun_line(result, around, gdb=True)}")
    return lines


def _alike(result: Result) -> tuple[str, ...]:
    """Failures with this in common have one cause, as far as a reader can tell. Numbers are left out."""
    return (
        result.verdict,
        result.requirement,
        result.check,
        result.port,
        re.sub(r"0x[0-9a-f]+|\d+", "N", result.message),
    )


def alike(results: Sequence[Result]) -> list[list[Result]]:
    """What is red, in groups that have one cause as far as a reader can tell; the order is that of requirements."""
    groups: dict[tuple[str, ...], list[Result]] = {}
    red = (result for result in results if result.verdict in RED)
    for result in sorted(red, key=lambda r: (r.requirement, r.key)):
        groups.setdefault(_alike(result), []).append(result)
    return list(groups.values())


def failures(results: Sequence[Result], around: Surroundings, console: Console) -> None:
    """The first failures of each kind in full, the rest counted by configuration."""
    groups = alike(results)
    for number, group in enumerate(groups):
        shown = group[:1] if len(groups) > FULL else group[: FULL if len(groups) == 1 else 2]
        if number >= MOST:
            left = groups[MOST:]
            console.print(f"... and {sum(map(len, left))} more failures of {len(left)} kinds\n", highlight=False)
            break
        for result in shown:
            first, *rest = block(result, around)
            console.print(Text(first, style="bold red" if result.verdict == "FAIL" else "bold magenta"))
            console.print(Text("\n".join(rest)), soft_wrap=True)
            console.print()
        if len(group) > len(shown):
            _print_rest(group[len(shown) :], console)


def _print_rest(rest: Sequence[Result], console: Console) -> None:
    counts: dict[str, int] = {}
    for result in rest:
        place = f"{result.variant}-{size_text(result.stub_page)} OS {size_text(result.os_page)} {result.runner}"
        counts[place] = counts.get(place, 0) + 1
    listed = ", ".join(f"{place}: {number}" for place, number in list(counts.items())[:8])
    more = f", and {len(counts) - 8} more configurations" if len(counts) > 8 else ""
    console.print(Text(f"  the same in {len(rest)} more on {rest[0].port} ({listed}{more})"), soft_wrap=True)
    console.print()


def matrix(results: Sequence[Result], profile: Profile, console: Console) -> None:
    """Requirement x port x size: stub pages for the template families, pages for those of allocators."""
    for title, size in KINDS:
        made = Matrix(results, profile, size)
        if any(made.text(row, column) not in ("na", "skip", "") for row in made.rows for column in made.columns):
            _print_matrix(title, made, console)


def _print_matrix(title: str, made: Matrix, console: Console) -> None:
    table = Table(box=None, padding=(0, 1), collapse_padding=True, show_edge=False)
    table.add_column(f"\n{title}", no_wrap=True, min_width=9)
    before = ""
    for column in made.columns:
        table.add_column(f"{column.port if column.port != before else ''}\n{column.page}", no_wrap=True)
        before = column.port
    for row in made.rows:
        cells = [made.text(row, column) for column in made.columns]
        table.add_row(row, *(Text(cell, style=STYLES.get(cell, "yellow" if cell else "")) for cell in cells))
    needed = 11 + sum(
        max(len(c.port) if i == 0 or made.columns[i - 1].port != c.port else 4, 5) + 1
        for i, c in enumerate(made.columns)
    )
    console.print(table, width=max(needed, console.width if console.is_terminal else needed))
    console.print(Text("  ".join(f"{word}: {meaning}" for word, meaning in made.legend().items())), soft_wrap=True)
    console.print()


def pages(results: Sequence[Result], profile: Profile, console: Console) -> None:
    """Where results come from: port, runner, the OS page sizes that were seen, and what is not shown, with its reason."""
    counts: dict[tuple[str, str, int], list[int]] = {}
    for result in results:
        if result.runner == "host" or not result.stub_page:
            continue
        entry = counts.setdefault((result.port, result.runner, result.os_page), [0, 0])
        entry[0] += result.verdict == "PASS"
        entry[1] += result.verdict not in ("SKIP", "NOTRUN")
    ports = sorted({port for port, _, _ in counts})
    for port in ports:
        parts = []
        for runner in ("emulated", "native"):
            sizes = sorted(
                (size, passed) for (p, r, size), (passed, ran) in counts.items() if ran and (p, r) == (port, runner)
            )
            if sizes:
                parts.append(f"{runner} OS page " + ", ".join(f"{size_text(s)} ({n} passed)" for s, n in sizes))
        if parts:
            console.print(Text(f"{port}: {'; '.join(parts)}"), soft_wrap=True)
    for unshown in profile.unshown:
        if unshown.port == "*" or unshown.port in ports:
            size = f" OS page {size_text(unshown.os_page)}" if unshown.os_page else ""
            runner = "any runner" if unshown.runner == "*" else unshown.runner
            where = f"{'every port' if unshown.port == '*' else unshown.port}, {runner}{size}"
            text = f"not shown: {unshown.requirement} on {where}: {unshown.reason}"
            console.print(Text(text, style="dim"), soft_wrap=True)
    if ports:
        console.print()


def open_results(results: Sequence[Result], profile: Profile, console: Console) -> None:
    """Why a verdict is "unverified"."""
    reasons: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        if result.verdict in ("EMU", "SKIP", "NOTRUN") and profile.requires_result(result):
            reasons.setdefault((result.verdict, result.message), []).append(result)
    for (kind, message), group in sorted(reasons.items(), key=lambda entry: -len(entry[1]))[:8]:
        named = sorted({result.requirement for result in group})
        listed = ", ".join(named[:6]) + (" ..." if len(named) > 6 else "")
        console.print(Text(f"{kind} {len(group)} x {message} ({listed})"), soft_wrap=True)
    if reasons:
        console.print()


def verdict_line(overall: Overall, console: Console) -> None:
    counts = ", ".join(f"{number} {name}" for name, number in overall.counts.items())
    style = "bold green" if overall.exit_status == 0 else "bold red" if overall.exit_status == 1 else "bold yellow"
    console.print(
        Text(f"{overall.word}: {overall.reason}", style=style).append(f"  [{counts}]", style="not bold"), soft_wrap=True
    )
