"""The audit of real programs: scenarios on every port and runner, the command line, and programs that are not ours."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import jsonschema
import pytest
from elftools.elf.elffile import ELFFile

from execmem_cts import manifest, native
from execmem_cts.audit import command, elf, emulated, report
from execmem_cts.audit.session import Outcome, Request

ROOT = Path(__file__).resolve().parents[2]
COMMAND = ROOT / "harness" / "execmem-cts"
SOURCE = ROOT / "harness" / "tests" / "fixtures" / "audit" / "scenario.c"
PORTS = manifest.discover_ports(ROOT)
OWN = elf.look(Path(sys.executable).resolve()).machine
HOST = next((port.name for port in PORTS.values() if port.elf_machine == OWN), "")
FOREIGN = next(port.name for port in PORTS.values() if port.elf_machine != OWN)
# What each scenario of scenario.c must bring, whoever runs it.
SCENARIOS: dict[str, list[str]] = {
    "published": ["published"],
    "remapped": [],
    "two_files": [],
    "two_places": [],
    "refused": [],
    "rwx": ["rwx"],
    "rwx_protect": ["rwx"],
    "w_then_x": ["w-then-x"],
    "w_then_x_later": ["w-then-x"],
    "x_by_mprotect": ["x-by-mprotect"],
    "alias": ["alias"],
    "leak": ["view-at-end"],
    "leak_private": ["view-at-end"],
    "sub_page": ["sub-page", "sub-page"],
    "sub_page_data": ["sub-page-data"],
    "thread": ["w-then-x"],
    "forked": ["w-then-x"],
    "status_seven": [],
    "killed": [],
}
STATUSES = {"status_seven": 7, "killed": -11}
THREADED = ("thread", "forked")  # more than -strace can tell apart


def scenario(port: str) -> Path:
    return emulated.build_program(ROOT, PORTS[port], SOURCE)


def audited(port: str | None, name: str, plugin: bool | None = None) -> Outcome:
    program = scenario(port or HOST)
    request = Request(argv=(str(program), name), quiet_program=True, plugin=plugin)
    return command.audited(ROOT, port, request)


def kinds(outcome: Outcome) -> list[str]:
    return sorted(finding.kind for finding in outcome.findings)


needs_native = pytest.mark.skipif(
    not HOST or bool(native.runs(scenario(HOST))), reason="no port's programs run on this machine by themselves"
)


def called(*argv: str, said: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(COMMAND), "audit", *argv],
        input=said,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **environment},
    )


# ---- Scenarios ----


def test_every_scenario_of_the_program_is_expected_here() -> None:
    assert set(re.findall(r'\{"(\w+)", \w+\}', SOURCE.read_text())) == set(SCENARIOS)


@needs_native
@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario_natively(name: str) -> None:
    outcome = audited(None, name)
    assert kinds(outcome) == SCENARIOS[name]
    assert outcome.status == STATUSES.get(name, 0) and not outcome.incomplete


@pytest.mark.parametrize("port", PORTS)
def test_scenarios_under_the_plugin(port: str) -> None:
    found = {}
    for name in SCENARIOS:
        outcome = audited(port, name, plugin=True)
        assert "plugin" in outcome.runner
        assert outcome.status == STATUSES.get(name, 0) and not outcome.incomplete, name
        found[name] = kinds(outcome)
    assert found == SCENARIOS


@pytest.mark.parametrize("port", PORTS)
def test_scenarios_under_strace_of_the_emulator(port: str) -> None:
    for name in ("rwx", "w_then_x_later", "leak", "two_places", "sub_page", "refused", "killed"):
        outcome = audited(port, name, plugin=False)
        assert kinds(outcome) == SCENARIOS[name] and not outcome.incomplete, name
        assert "-strace" in outcome.runner and outcome.status == STATUSES.get(name, 0)


@pytest.mark.parametrize("name", THREADED)
def test_strace_of_the_emulator_says_that_it_cannot_tell_threads_apart(name: str) -> None:
    outcome = audited(FOREIGN, name, plugin=False)
    assert "threads or processes, which -strace does not tell apart" in outcome.incomplete
    assert report.exit_status(outcome) in (report.VIOLATED, report.UNVERIFIED)


def test_the_guest_sees_the_page_size_that_the_model_uses() -> None:
    outcome = audited(FOREIGN, "rwx")
    ended = subprocess.run(
        [*PORTS[FOREIGN].emulator_argv, str(ROOT / "build" / "plugin" / FOREIGN / "probe")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"page={outcome.page_size:x}\n" in ended.stdout


def test_a_plugin_with_wrong_call_numbers_is_not_used() -> None:
    """The probe must find that the port's manifest and the emulator do not agree."""
    import dataclasses

    port = PORTS[FOREIGN]
    wrong = dataclasses.replace(port, syscalls={**port.syscalls, "mprotect": 9999})
    probed = emulated.probe(ROOT, wrong, (*port.emulator_argv, "-r", "6.0"), None)  # -r: another key of the cache
    assert probed.library is None and "does not show the probe's calls" in probed.reason


@pytest.mark.parametrize("port", PORTS)
def test_call_numbers_agree_with_the_ports_own_constants(port: str) -> None:
    """arch/<port>/abi.h has some of them for C; the manifest must not say otherwise."""
    text = (PORTS[port].directory / "abi.h").read_text()
    ours = {name.lower(): int(value, 0) for name, value in re.findall(r"#define EXECMEM_SYS_(\w+)\s+(\w+)", text)}
    theirs = PORTS[port].syscalls
    shared = {name for name in ours if name in theirs}
    assert {"munmap", "mprotect", "madvise", "clone", "exit_group"} <= shared
    assert {name: theirs[name] for name in shared} == {name: ours[name] for name in shared}
    assert ours["mmap"] == theirs.get("mmap2", theirs.get("mmap"))


# ---- The command line ----


@needs_native
def test_the_program_keeps_its_streams_and_its_status_is_told() -> None:
    done = called("--", "sh", "-c", "cat; echo words >&2; exit 5", said="from the terminal\n")
    assert done.stdout == "from the terminal\n"
    assert "words\n" in done.stderr and "exit status 5" in done.stderr
    assert done.returncode == 0 and "no violation" in done.stderr
    quiet = called("--quiet-program", "--quiet", "--", "sh", "-c", "echo out; echo err >&2")
    assert quiet.stdout == "" and len(quiet.stderr.splitlines()) == 1


@needs_native
def test_json_on_standard_output_is_alone_there_and_follows_its_schema() -> None:
    for name in ("leak", "alias", "rwx", "killed", "thread"):
        done = called("--json", "-", "--", str(scenario(HOST)), name)
        document = json.loads(done.stdout)
        schema = json.loads((ROOT / "conformance" / "audit.schema.json").read_text())
        jsonschema.Draft202012Validator(schema).validate(document)
        assert [finding["kind"] for finding in document["findings"]] == SCENARIOS[name]
        assert document["exit_status"] == done.returncode
        assert document["program"]["status"] == STATUSES.get(name, 0)
    loud = called("--json", "-", "--", "echo", "hello")
    assert json.loads(loud.stdout)["findings"] is not None and "hello" in loud.stderr


@needs_native
def test_the_report_says_where_it_was_mapped_and_for_how_long_it_was_held(tmp_path: Path) -> None:
    done = called("--report", str(tmp_path / "report"), "--", str(scenario(HOST)), "leak")
    text = (tmp_path / "report").read_text()
    assert done.returncode == 1 and done.stderr == ""
    assert re.search(r"view-at-end.*\n.*violation.*call +mmap\(NULL, 65536, PROT_READ\|PROT_WRITE", text)
    assert re.search(r"code at +0x[0-9a-f]+-0x[0-9a-f]+ \(/memfd:code at 0x0\)", text)
    assert re.search(r"held for 0\.\d+ s and \d+ calls, the program ended", text)


@needs_native
def test_levels_are_the_callers() -> None:
    program = str(scenario(HOST))
    assert called("--quiet", "--", program, "w_then_x").returncode == 1
    assert called("--quiet", "--allow", "w-then-x", "--", program, "w_then_x").returncode == 0
    assert called("--quiet", "--", program, "alias").returncode == 0
    assert called("--quiet", "--deny", "alias", "--", program, "alias").returncode == 1


@needs_native
def test_a_program_that_does_not_end_is_ended() -> None:
    done = called("--quiet-program", "--timeout", "0.5", "--", "sleep", "60")
    assert "killed by SIGTERM (time-out)" in done.stderr and done.returncode == 0
    left = called("--quiet-program", "--timeout", "0.5", "--", "sh", "-c", "sleep 60 & sleep 61")
    assert "(time-out)" in left.stderr and left.returncode == 0  # its children are ended as well
    port = called("--port", FOREIGN, "--timeout", "0.5", "--", str(scenario(FOREIGN)), "published")
    assert port.returncode == 0 and "time-out" not in port.stderr


@needs_native
def test_a_stack_that_can_be_run_is_found_in_the_programs_file(tmp_path: Path) -> None:
    program = tmp_path / "program"
    shutil.copy(scenario(HOST), program)
    with program.open("r+b") as stream:
        file = ELFFile(stream)
        index = next(i for i, s in enumerate(file.iter_segments()) if s["p_type"] == "PT_GNU_STACK")
        header = file["e_phoff"] + index * file["e_phentsize"]
        stream.seek(header + 4 if file.elfclass == 64 else header + 24)
        stream.write((7).to_bytes(4, file.little_endian and "little" or "big"))
    done = called("--", str(program), "remapped")
    assert done.returncode == 1 and "rwx-image" in done.stderr and "PT_GNU_STACK" in done.stderr
    assert elf.unsafe_segments(str(scenario(HOST))) == []


@pytest.mark.parametrize(
    ("argv", "status", "said"),
    [
        (["--", "no-such-program-anywhere"], 2, "no such program on PATH"),
        (["--", "./absent"], 2, "no such file"),
        (["--", str(ROOT / "harness")], 2, "found a folder"),
        (["--", str(ROOT / "README.md")], 2, "not executable; chmod +x"),
        (["--port", "nothing", "--", "true"], 2, "--port nothing: no such port; there are"),
        (["--port", FOREIGN, "--", sys.executable], 2, "wrong architecture: expected"),
        (["--port", FOREIGN, "--", str(COMMAND)], 2, "name the interpreter"),
        (["--sysroot", "/", "--", "true"], 2, "--sysroot is for an emulator"),
        (["--plugin", "--", "true"], 2, "--plugin is for an emulator"),
        (["--allow", "nothing", "--", "true"], 2, "--allow nothing: no such kind; there are rwx"),
        (["--page-size", "1000", "--", "true"], 2, "expected a power of two"),
        (["--timeout", "0", "--", "true"], 2, "expected seconds"),
        (["--json", "/nonexistent/x", "--", "true"], 2, "cannot be written"),
        ([], 2, "Missing argument 'PROGRAM...'"),
    ],
)
def test_a_mistake_is_answered(argv: list[str], status: int, said: str) -> None:
    done = called(*argv)
    assert done.returncode == status, done.stderr
    assert said in done.stderr and "Traceback" not in done.stderr


@needs_native
def test_a_program_of_another_architecture_names_its_port() -> None:
    done = called("--", str(scenario(FOREIGN)), "rwx")
    assert done.returncode == 2 and f"wrong architecture: expected {OWN}" in done.stderr
    assert f"try --port {FOREIGN}" in done.stderr


@needs_native
def test_a_dynamic_program_needs_its_c_library(tmp_path: Path) -> None:
    program = elf.find("true")
    if not elf.look(program).interpreter:
        pytest.skip("this machine's `true` is a static program")
    done = called("--port", HOST, "--sysroot", str(tmp_path), "--", "true")
    assert done.returncode == 2 and "give its folder with --sysroot" in done.stderr
    assert called("--port", HOST, "--quiet", "--sysroot", "/", "--", "true").returncode == 0


def test_without_strace_the_command_that_installs_it_is_named(tmp_path: Path) -> None:
    for tool in ("sh", "true", "dirname"):
        (tmp_path / tool).symlink_to(str(shutil.which(tool)))
    done = called("--", "true", PATH=str(tmp_path))
    assert done.returncode == 3 and "apt-get install strace" in done.stderr
    done = called("--port", FOREIGN, "--", str(scenario(FOREIGN)), "rwx", PATH=str(tmp_path))
    assert done.returncode == 3 and "apt-get install" in done.stderr


def test_where_ptrace_is_refused_it_is_said(tmp_path: Path) -> None:
    fake = tmp_path / "strace"
    fake.write_text("#!/bin/sh\necho 'strace: ptrace(PTRACE_TRACEME, ...): Operation not permitted' >&2\nexit 1\n")
    fake.chmod(0o755)
    done = called("--", "true", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert done.returncode == 3 and "Operation not permitted" in done.stderr and "SYS_PTRACE" in done.stderr


@needs_native
def test_a_strace_without_the_seccomp_filter_does_as_well(tmp_path: Path) -> None:
    real = shutil.which("strace")
    if real is None:
        pytest.skip("strace is missing: toolchains/setup --for test installs it")
    older = tmp_path / "strace"
    older.write_text(
        '#!/bin/sh\nfor a; do [ "$a" != --seccomp-bpf ] || { echo "unrecognized option" >&2; exit 1; }; done\n'
        f'echo x >>{tmp_path}/used\nexec {real} "$@"\n'
    )
    older.chmod(0o755)
    done = called("--quiet", "--", str(scenario(HOST)), "thread", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert done.returncode == 1 and "1 violation" in done.stderr
    assert (tmp_path / "used").exists()


# ---- Programs that are not ours ----


def by_eye(log: Path) -> Counter[str]:
    """What strace's raw log shows without any model: successful calls that give write and execute permission at once."""
    text = log.read_text(errors="replace")
    asked = re.findall(r"(?:mmap|mprotect)\(.*PROT_WRITE\|PROT_EXEC.*\) += (\S+)", text)
    toggles = re.findall(r"mprotect\((\S+), \d+, PROT_READ\|PROT_EXEC\) += 0", text)
    return Counter({"asked": len([value for value in asked if value != "-1"]), "toggles": len(toggles)})


@needs_native
def test_luajit(tmp_path: Path) -> None:
    if shutil.which("luajit") is None:
        pytest.skip("luajit is missing: toolchains/setup --for test installs it")
    script, log = tmp_path / "script.lua", tmp_path / "log"
    script.write_text("local s = 0 for i = 1, 1e6 do s = s + i % 7 end print(s)\n")
    done = called("--json", str(tmp_path / "json"), "--log", str(log), "--", "luajit", str(script))
    found = Counter(f["kind"] for f in json.loads((tmp_path / "json").read_text())["findings"])
    seen = by_eye(log)
    assert done.returncode == 1 and found["w-then-x"] == seen["toggles"] > 0 and found["rwx"] == seen["asked"] == 0
    off = called("--quiet", "--", "luajit", "-joff", str(script))
    assert off.returncode == 0, off.stderr


@needs_native
@pytest.mark.parametrize(
    ("program", "argv"),
    [
        ("node", ["-e", "let s=0; function f(x){return x*2+1} for(let i=0;i<1e7;i++) s+=f(i); console.log(s)"]),
        ("java", ["-version"]),
    ],
)
def test_a_runtime(program: str, argv: list[str], tmp_path: Path) -> None:
    """Each mapping that strace shows as writable and executable is told once, at its first such call."""
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not on this machine")
    log = tmp_path / "log"
    called("--quiet-program", "--json", str(tmp_path / "json"), "--log", str(log), "--", program, *argv)
    document = json.loads((tmp_path / "json").read_text())
    assert document["program"]["status"] == 0 and not document["incomplete"]
    rwx = [f for f in document["findings"] if f["kind"] == "rwx"]
    calls = set(
        re.findall(r"((?:mmap|mprotect)\(.*PROT_WRITE\|PROT_EXEC.*\)) += (?!-1)", log.read_text(errors="replace"))
    )
    assert {f["at"]["call"].rpartition(" = ")[0] for f in rwx} == calls
