"""The libFuzzer targets over the whole API (ref/fuzz): nothing is found in the library, and what is planted is found.

EXECMEM_FUZZ_CALLS chooses how many calls each makes; make test-full asks for 100 000 000.
"""

from __future__ import annotations

import fcntl
import os
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CALLS = int(os.environ.get("EXECMEM_FUZZ_CALLS", "1000000"))
# A tenth for page release, where a call takes or gives many blocks, and the system is asked what is left.
TARGETS = {"api": CALLS, "code_heap": CALLS, "stub_heap": CALLS, "release": CALLS // 10}

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="ref/tests/hosted_port.c is the port contract over the C library of x64"
)

# Target, file, text, what is planted instead. Each is a mistake of its own kind: bytes, places, counting, limits, undoing.
PLANTED = {
    "page-not-cleared": ("api", "ref/commit.c", "if (dirty)", "if (dirty && 0)"),
    "view-of-wrong-bytes": ("api", "ref/view.c", "mapping->rw + (offset - mapping->offset)", "mapping->rw + offset"),
    "pinned-view-evicted": ("api", "ref/rwcache.c", "if (victim->pins == 0) {", "{"),
    "released-twice": (
        "api",
        "ref/region.c",
        "if (record->generation == region->generation)",
        "if (region->generation)",
    ),
    "view-left-after-refusal": ("api", "ref/publish.c", "if (closed)\n", "if (0)\n"),
    "counter-lost": ("api", "ref/view.c", "record->counters.bypasses++;", ";"),
    "size-forgotten": (
        "code_heap",
        "ref/code_heap_best.c",
        "*alone = !(here[0] | here[1] | here[2] | here[3]);",
        "*alone = true;",
    ),
    "inside-freed": ("code_heap", "ref/code_heap.c", "if (block << heap->shift != offset)", "if (0)"),
    "record-half-cleared": ("stub_heap", "ref/stub_heap.c", "0, place.region->type->record_bytes);", "0, 8);"),
    "live-block-given-back": (
        "release",
        "ref/release_pages.c",
        "if (execmem_release_counter_get(&pages->live, page) == 0 && page",
        "if (execmem_release_counter_get(&pages->live, page) <= 1 && page",
    ),
}


def fuzz(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "EXECMEM_FUZZ_CALLS"}
    return subprocess.run(
        [str(root / "ref/fuzz/run"), *arguments], capture_output=True, text=True, env=environment, cwd=root
    )


@pytest.mark.long
@pytest.mark.parametrize("target", TARGETS)
def test_so_many_calls_find_nothing(target: str) -> None:
    calls = TARGETS[target]
    jobs = os.environ.get("EXECMEM_FUZZ_JOBS", "1")
    done = fuzz(ROOT, "--target", target, "--calls", str(calls), "--jobs", jobs)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr
    made = sum(int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith(f"{target}: "))
    assert made >= calls, done.stdout


def test_every_target_is_run() -> None:
    files = {path.stem for path in (ROOT / "ref/fuzz").glob("*.c")} - {"fuzz"}
    assert set(TARGETS) == files == {target for target, *_ in PLANTED.values()}


def test_an_unknown_target_is_named() -> None:
    done = fuzz(ROOT, "--target", "heap")
    assert done.returncode == 2 and "api, code_heap, stub_heap, release, not 'heap'" in done.stderr


# Found last of all: for make test-full.
SLOW = {"page-not-cleared"} if "EXECMEM_FUZZ_CALLS" not in os.environ else set()


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(set(PLANTED) - SLOW))
def test_what_is_planted_is_found_and_can_be_run_again(name: str, tmp_path: Path) -> None:
    target, path, text, planted = PLANTED[name]
    # What is built already comes along: only the file that is changed is compiled again.
    assert fuzz(ROOT, "--target", target, "--build").returncode == 0
    with (ROOT / "build/fuzz/lock").open() as lock:  # nothing is built meanwhile
        fcntl.flock(lock, fcntl.LOCK_SH)
        shutil.copytree(
            ROOT / "build/fuzz", tmp_path / "build/fuzz", ignore=shutil.ignore_patterns("failures", "*.log")
        )
    for folder in ("ref", "arch", "asm", "toolchains"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    source = tmp_path / path
    before = source.read_text(encoding="utf-8")
    assert before.count(text) == 1
    source.write_text(before.replace(text, planted), encoding="utf-8")
    done = fuzz(tmp_path, "--target", target, "--calls", "400000", "--seed", "1")
    assert done.returncode == 1, f"{name} was not found\n{done.stdout}{done.stderr}"
    (rerun,) = [line.removeprefix("rerun: ref/fuzz/run ") for line in done.stdout.splitlines() if "rerun: " in line]
    again = fuzz(tmp_path, *rerun.split())
    assert again.returncode not in (0, 2, 3), f"{name}: the reproducer finds nothing\n{again.stdout}{again.stderr}"
