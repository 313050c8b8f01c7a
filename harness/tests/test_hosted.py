"""libexecmem's own hosted tests (ref/tests), under AddressSanitizer with UBSan and under ThreadSanitizer.

They run over the C library, on the machine's own x64; elsewhere there is no hosted port to link them with.
"""

from __future__ import annotations

import fcntl
import platform
import subprocess
from pathlib import Path

import pytest

from execmem_cts.tools import find

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "ref" / "tests"
PROGRAMS = sorted(path.stem for path in TESTS.glob("*.c") if "\nint main(" in path.read_text())
SHARED = sorted(path.stem for path in TESTS.glob("*.c") if path.stem not in PROGRAMS)  # linked with every test
STUB_PAGES = (4096, 16384, 65536)
SKIPPED = 77  # exit status of a program that says why this machine cannot
FLAVOURS = {
    "address": ["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
    "thread": ["-O1", "-fsanitize=thread"],
}
# Under ThreadSanitizer: what has threads. The others would show nothing more.
CASES = [
    (flavour, program)
    for flavour in FLAVOURS
    for program in PROGRAMS
    if flavour != "thread" or "pthread" in (TESTS / f"{program}.c").read_text()
]

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="ref/tests/hosted_port.c is the port contract over the C library of x64"
)


def build(flavour: str) -> Path:
    """The folder with the flavour's programs, built by ninja; what is up to date stays."""
    folder = ROOT / "build" / "hosted" / flavour
    folder.mkdir(parents=True, exist_ok=True)
    flags = ["-std=c11", "-g", "-pthread", "-Wall", "-Wextra", "-Werror", *FLAVOURS[flavour]]
    flags += [f"-I{ROOT / name}" for name in ("ref/include", "arch", "arch/x64", "ref/tests")]
    lines = ["ninja_required_version = 1.8", f"flags = {' '.join(flags)}"]
    lines += ["rule cc", "  command = gcc $flags -MD -MF $out.d -c $in -o $out", "  depfile = $out.d", "  deps = gcc"]
    lines += ["rule link", "  command = gcc $flags $in -o $out"]
    # The templates, once for each stub page size that is tested; their symbols get the size as a prefix.
    clang = find().clang
    lines += ["rule as", f"  command = {clang} -c -I{ROOT}/arch/x64 -I{ROOT}/asm -DEXECMEM_STUB_PAGE=$page $in -o $out"]
    lines += ["rule prefix", "  command = objcopy --prefix-symbols=page${page}_ $in $out"]
    for page in STUB_PAGES:
        lines += [f"build templates{page}.plain.o: as {ROOT}/asm/x64.S | {ROOT}/asm/asm.h", f"  page = {page}"]
        lines += [f"build templates{page}.o: prefix templates{page}.plain.o", f"  page = {page}"]
    shared = [*sorted((ROOT / "ref").glob("*.c")), *(TESTS / f"{name}.c" for name in SHARED)]
    sources = [*shared, *(TESTS / f"{name}.c" for name in PROGRAMS)]
    lines += [f"build {path.stem}.{path.parent.name}.o: cc {path}" for path in sources]
    common = [f"{path.stem}.{path.parent.name}.o" for path in shared]
    common += [f"templates{page}.o" for page in STUB_PAGES]
    lines += [f"build {program}: link {program}.tests.o {' '.join(common)}" for program in PROGRAMS]
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (folder / "build.ninja").write_text("\n".join([*lines, ""]))
        done = subprocess.run(["ninja", "-C", str(folder), "-j", "2"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    return folder


def test_every_program_of_the_folder_is_found() -> None:
    assert len(PROGRAMS) >= 18 and {"threads", "fail_kth", "random_model", "code_heap_model", "stub_model"} <= set(
        PROGRAMS
    )
    assert any(flavour == "thread" for flavour, _ in CASES)


@pytest.mark.long
@pytest.mark.parametrize(("flavour", "program"), CASES, ids=[f"{f}-{p}" for f, p in CASES])
def test_hosted(flavour: str, program: str) -> None:
    folder = build(flavour)
    done = subprocess.run([str(folder / program)], capture_output=True, text=True, timeout=120)
    if done.returncode == SKIPPED:
        pytest.skip(f"this machine cannot: {done.stdout.strip()}")
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-4000:]}"
