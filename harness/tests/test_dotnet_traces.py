"""Traces of .NET's executable memory: the format, where blocks land, and the generator."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
from dotnet_cases import HEAD, parsed, small

from execmem_cts.source import ManifestError
from execmem_cts.tables import dotnet, dotnet_rw, placement, trace
from execmem_cts.tables.dotnet_rw import AFTER, BEFORE

ROOT = Path(__file__).resolve().parents[2]


def steps(text: str, switches: placement.Switches = BEFORE) -> list[str]:
    return placement.place(parsed(text), switches).steps


# ---- The format ----


def test_a_trace_survives_being_written_and_read() -> None:
    text = (
        HEAD
        + "set code_align 32\nset own.lookup 8000\nregion r 65536\nalloc a 100 hot\nalloc b 7\nwrite a 3 4\nmap v a 0 8\n"
        "unmap v\ntrim a 50\nstub lookup 32\nslot pre 24\nfree a\nrelease r\n"
    )
    read = trace.parse(text.splitlines(True), "t")
    assert "".join(trace.lines_of(read.settings, read.events)) == text
    assert read.settings["code_align"] == 32 and read.settings["fragment_chunk"] == 1024
    assert read.events[1] == trace.Event("alloc", "a", 100, heap="hot", line=5)
    assert {event.word for event in read.events} == set(trace.FORMS) - {"set"}


def test_comments_and_empty_lines_are_nothing() -> None:
    read = trace.parse(["execmem-trace 1 # version\n", "# a line\n", "\n", "alloc a 1 # one\n"], "t")
    assert [(e.word, e.name, e.line) for e in read.events] == [("alloc", "a", 4)]


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz"])
def test_compressed_files_are_read(tmp_path: Path, suffix: str) -> None:
    import gzip
    import lzma

    path = tmp_path / f"t.trace{suffix}"
    data = (HEAD + "alloc a 1\n").encode()
    path.write_bytes({"": data, ".gz": gzip.compress(data), ".xz": lzma.compress(data)}[suffix])
    assert len(trace.read(path).events) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "t:1: expected `execmem-trace 1`, found an empty file"),
        ("alloc a 1\n", "t:1: expected `execmem-trace 1`, found 'alloc a 1'"),
        ("execmem-trace 2\n", "t:1: expected version 1, found 2; use a newer execmem-cts"),
        (HEAD, "t:1: expected at least one event, found none"),
        (HEAD + "jump a\n", "t:2: expected one of set, region, "),
        (HEAD + "alloc a\n", "t:2: expected `alloc NAME BYTES [HEAP]`, found 1 fields after 'alloc'"),
        (HEAD + "alloc a 1 h x\n", "t:2: expected `alloc NAME BYTES [HEAP]`, found 4 fields after 'alloc'"),
        (HEAD + "alloc a 0x10\n", "t:2: bytes: expected a decimal number, found '0x10'"),
        (HEAD + "alloc a -1\n", "t:2: bytes: expected a decimal number, found '-1'"),
        (HEAD + "alloc a ²\n", "t:2: bytes: expected a decimal number, found '²'"),
        (HEAD + "alloc a 0\n", "t:2: bytes: expected 1 to 4294967296, found 0"),
        (HEAD + "alloc a/b 1\n", "t:2: name: expected up to 64 letters"),
        (HEAD + "alloc a 1\nset code_align 8\n", "t:3: set: expected before the first event"),
        (HEAD + "set speed 8\n", "t:2: set: expected one of code_align, "),
        (HEAD + "set code_align 24\n", "t:2: set code_align: expected a power of two, found 24"),
        (HEAD + "set reserve_granule 4096\n", "t:2: set reserve_granule: expected at least 65536, found 4096"),
        (HEAD + "set fragment_chunk 0\n", "t:2: set fragment_chunk: expected at least 1, found 0"),
    ],
)
def test_a_mistake_names_file_line_and_what_was_expected(text: str, said: str) -> None:
    with pytest.raises(ManifestError) as caught:
        trace.parse(text.splitlines(True), "t")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("free a\n", "t:2: free: expected a block that was allocated and not freed, found 'a'"),
        ("alloc a 1\nfree a\nfree a\n", "t:4: free: expected a block that was allocated and not freed, found 'a'"),
        ("alloc a 1\nalloc a 1\n", "t:3: alloc: expected a new name, found 'a', which is a live block"),
        ("alloc a 9\nwrite a 8 2\n", "t:3: write: expected a range inside the 9 bytes of 'a', found 2 bytes from 8 on"),
        ("alloc a 9\ntrim a 10\n", "t:3: trim: expected at most the 9 bytes of 'a', found 10"),
        ("alloc a 9\nmap v a 0 1\nmap v a 0 1\n", "t:4: map: expected a view that is not open, found 'v'"),
        ("alloc a 9\nmap v a 0 1\nfree a\n", "t:4: free: expected a block without an open view, found 'a', which 'v'"),
        ("alloc a 9\nmap v a 0 1\ntrim a 1\n", "t:4: trim: expected a block without an open view"),
        ("unmap v\n", "t:2: unmap: expected a view that is open, found 'v'"),
        ("alloc a 9\nmap v a 0 1\n", "t: expected every view to be closed at the end, 'v' is open"),
        ("release r\n", "t:2: release: expected a region that is reserved, found 'r'"),
        ("region r 1\nregion r 1\n", "t:3: region: expected a new name, found 'r', which is a region already"),
        ("slot s 4097\n", "t:2: slot: expected at most the 4096 bytes of a stub page, found 4097"),
    ],
)
def test_events_that_do_not_fit_together_are_refused(text: str, said: str) -> None:
    with pytest.raises(ManifestError) as caught:
        steps(text)
    assert said in str(caught.value)


# ---- Placement, by hand ----


def test_the_code_heap_takes_the_best_fit_and_merges_neighbours() -> None:
    text = "set code_align 16\nalloc a 64\nalloc b 32\nalloc c 16\nalloc d 16\n"  # at 0, 64, 96, 112
    # b's hole of 32 is a better fit than a's of 64, though it lies behind it.
    assert steps(text + "free a\nfree b\n")[-1] == "write 0 112 16 0"
    assert steps(text + "free a\nfree c\nalloc e 16\n")[-1] == "write 0 96 16 0"
    # a and b merge, whichever went first: 96 bytes fit there.
    for order in ("free a\nfree b\n", "free b\nfree a\n"):
        assert steps(text + order + "alloc e 96\n")[-1] == "write 0 0 96 0"
    # A hole on both sides: one of 112.
    assert steps(text + "free a\nfree c\nfree b\nalloc e 112\n")[-1] == "write 0 0 112 0"
    # A cut block gives its tail back.
    assert steps(text + "trim a 16\nalloc e 48\n")[-1] == "write 0 16 48 0"
    # The start of a hole is taken first, and the rest stays a hole.
    assert steps(text + "free a\nalloc e 48\nalloc f 16\n")[-2:] == ["write 0 0 48 0", "write 0 48 16 0"]


def test_a_header_lies_in_front_of_a_block() -> None:
    assert steps("set code_align 16\nset code_header 8\nalloc a 8\nalloc b 9\nwrite b 1 2\n")[2:] == [
        "write 0 8 8 0",
        "write 0 24 9 0",
        "write 0 25 2 0",
    ]


def test_code_regions_grow_as_the_settings_say() -> None:
    text = "set code_reserve 65536\nset code_reserve_later 131072\nset code_reserve_threshold 1\n"
    made = [s for s in steps(text + "".join(f"alloc a{i} 65536\n" for i in range(5))) if s.startswith("reserve")]
    assert made == ["reserve 0 65536", "reserve 1 65536", "reserve 2 131072", "reserve 3 131072"]


def test_stubs_are_where_the_switch_says() -> None:
    text = "set own.lookup 8192\nset own.dispatch 8192\nset apart.other 65536\nalloc a 64\n"
    stubs = "stub lookup 32\nstub lookup 32\nstub dispatch 48\nstub helper 8\nstub other 8\n"
    own = [s for s in steps(text + stubs) if s[0] in "rw"]
    assert own == [
        *("reserve 0 268435456", "write 0 0 64 0"),
        *("reserve 1 65536", "write 1 0 32 0", "write 1 32 32 0", "write 1 8192 48 0"),  # one after the other
        "write 0 64 8 0",  # a kind without a heap shares the pages of code in any case
        *("reserve 2 65536", "write 2 0 8 0"),  # and one that is apart never does
    ]
    shared = [s for s in steps(text + stubs, replace(BEFORE, share=True)) if s[0] in "rw"]
    assert shared[2:5] == ["write 0 64 32 0", "write 0 96 32 0", "write 0 1088 48 0"]  # chunks of 1 KiB each


def test_an_interleaved_page_is_written_once_for_its_slots() -> None:
    text = "slot s 2048\nslot s 2048\nslot s 2048\n"
    assert [s for s in steps(text) if s[0] == "w"] == ["write 0 0 4096 0", "write 0 8192 4096 0"]
    assert [s for s in steps(text, AFTER) if s[0] == "w"] == ["write 0 0 16384 1"]


def test_views_across_windows_are_counted() -> None:
    script = placement.place(parsed("alloc a 65537\nalloc b 1\nwrite a 65535 2\nmap v a 65536 1\nunmap v\n"), BEFORE)
    assert (script.writes, script.crossing) == (4, 2)


def test_the_placement_is_the_good_fit_that_the_readme_compares_with() -> None:
    """Misses on javac's whole trace by the rule of those figures: a write belongs to the window that it starts in."""
    (path,) = (ROOT / dotnet_rw.RECORDED).glob("javac-128x6.trace.xz")
    script = placement.place(trace.read(path), BEFORE)
    writes = [s.split()[1:3] for s in script.steps if s.startswith("write")]
    misses = []
    for views in (1, 3):
        near: list[tuple[str, int]] = []
        missed = 0
        for region, offset in writes:
            window = (region, int(offset) // 65536)
            missed += window not in near
            near = [window, *(w for w in near if w != window)][:views]
        misses.append(missed)
    readme = " ".join((ROOT / "ref/replay/README.md").read_text().split())
    assert (script.writes, script.crossing, *misses) == (17774, 3173, 10123, 5288)
    assert "| 17 774, 3 173 | 12 456 / 5 714 | 10 123 / 5 288 | 10 121 / 5 312 |" in readme


# ---- The generator ----


def digest(made: trace.Trace) -> str:
    return hashlib.sha256("".join(trace.lines_of(made.settings, made.events)).encode()).hexdigest()


def test_the_generator_makes_exactly_this_trace(tmp_path: Path) -> None:
    parameters = small(tmp_path)
    made = dotnet.generate(parameters, parameters.profiles[0])
    # Of the text, so that it holds for every machine and version of Python. It changes with the generator, on purpose.
    assert digest(made) == "0eda41422ffe810e675f450f43f958da8a51d4242385c7168731f44e69be1d63"
    assert digest(dotnet.generate(parameters, parameters.profiles[0])) == digest(made)
    other = small(tmp_path, seed="2")
    assert digest(dotnet.generate(other, other.profiles[0])) != digest(made)


def test_a_saved_trace_is_the_generated_one(tmp_path: Path) -> None:
    made = dotnet_rw.generated(small(tmp_path))
    (path,) = dotnet_rw.save(made, tmp_path / "new" / "folder")
    read = trace.read(path)
    assert path.name == "small.trace" and digest(read) == digest(made[0].trace)
    for switches in (BEFORE, AFTER):
        assert placement.place(read, switches) == placement.place(made[0].trace, switches)


def test_the_generator_makes_what_the_counts_say(tmp_path: Path) -> None:
    parameters = small(tmp_path, lookup_percent="100", vtable_percent="0", freed_percent="100", freed_after="1")
    made = dotnet.generate(parameters, parameters.profiles[0]).events
    count = lambda word, heap="": sum(e.word == word and (not heap or e.heap == heap) for e in made)
    assert (count("alloc"), count("write"), count("stub", "lookup"), count("stub", "vtable")) == (20, 20, 60, 0)
    assert count("slot", "fixup_precode") == 40 // 4 * 10
    assert count("region") == -(-40 * 2048 // 65536)
    assert count("free") in (19, 20)  # the last may be due after the end
    sizes = {e.bytes for e in made if e.word == "alloc"}
    assert sizes <= {300 * percent // 100 for percent in (15, 25, 40, 60, 80, 110, 160, 310)}


def test_the_committed_profiles_are_the_published_applications() -> None:
    parameters = dotnet.load(ROOT / dotnet_rw.PARAMETERS)
    known = dotnet_rw.published(ROOT)
    assert [p.name for p in parameters.profiles] == list(known)
    assert known["PowerShell"].misses == (1967, 154) and known["Crossgen2"].walk == (74.5, 2.4)
    for profile in parameters.profiles:  # each count says where it is from
        assert set(profile.source) == {"jitted", "code_bytes", "prepared"}
        assert all(text.startswith(("published: ", "stand-in: ")) for text in profile.source.values())


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("schema = 1", "schema = 2", "schema: expected 1, found 2"),
        ("seed = 83632", "seed = -1", "seed: expected a number from 0 to 2^64 - 1, found -1"),
        ("seed = 83632", "seed =", "not valid TOML"),
        (
            "freed_percent = 2",
            "freed_percent = 101",
            "methods.freed_percent: expected a number from 0 to 100, found 101",
        ),
        ("freed_percent = 2", "", "methods.freed_percent: is missing"),
        ("freed_percent = 2", "freed_percent = 2\nfree = 1", "methods.free: unknown; known are size_percent"),
        ("lookup = 32,", "", "stubs.bytes: expected lookup, dispatch, resolve, vtable, found dispatch"),
        ("[[profile]]", "[[profiles]]", "profiles: unknown; known are schema"),
        ("jitted = 488\n", "jitted = true\n", "profile[0].jitted: expected a number from 0"),
    ],
)
def test_a_mistake_in_the_parameters_is_named(tmp_path: Path, old: str, new: str, said: str) -> None:
    text = (ROOT / dotnet_rw.PARAMETERS).read_text()
    assert old in text
    path = tmp_path / "wrong.toml"
    path.write_text(text.replace(old, new))
    with pytest.raises(ManifestError) as caught:
        dotnet.load(path)
    assert said in str(caught.value) and "wrong.toml" in str(caught.value)
