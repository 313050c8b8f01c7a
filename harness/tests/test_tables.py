"""execmem-cts tables: the trace format, the generator, the placement model, and the replays of the real library.

The library is held against models of its own here that share nothing with it: misses counted by hand, and a few lines of
least-recently-used lists for every size of the cache.
"""

from __future__ import annotations

import hashlib
import json
import platform
import random
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from execmem_cts.source import ManifestError
from execmem_cts.tables import dotnet, dotnet_rw, placement, replay, scudo, trace
from execmem_cts.tables.dotnet_rw import AFTER, BEFORE
from execmem_cts.tables.replay import Config
from execmem_cts.tools import ToolError

ROOT = Path(__file__).resolve().parents[2]
COMMAND = ROOT / "harness" / "execmem-cts"
HEAD = "execmem-trace 1\n"
ALL = [Config(views, keep) for views in range(17) for keep in (False, True)]

native = pytest.mark.skipif(platform.machine() != "x86_64", reason="the replayer runs natively, on x86-64")


@pytest.fixture(scope="session")
def program() -> Path:
    return replay.build(ROOT, ROOT / "build" / "tables")


def parsed(text: str) -> trace.Trace:
    return trace.parse((HEAD + text).splitlines(True), "t")


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


def small(tmp_path: Path, **change: str) -> dotnet.Parameters:
    """The committed parameters with an application of 60 methods in place of theirs."""
    text = (ROOT / dotnet_rw.PARAMETERS).read_text().split("[[profile]]")[0]
    for key, value in change.items():
        assert f"\n{key} = " in text
        text = "\n".join(f"{key} = {value}" if line.startswith(f"{key} = ") else line for line in text.splitlines())
    path = tmp_path / "parameters.toml"
    counts = 'jitted = 20\ncode_bytes = 6000\nprepared = 40\nsource = { jitted = "a test" }\n'
    path.write_text(f'{text}\n[[profile]]\nname = "small"\n{counts}')
    return dotnet.load(path)


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


# ---- The real library ----


def replayed(program: Path, script: list[str], *configs: Config) -> list[dict[str, int]]:
    return list(replay.run(program, "\n".join([*script, ""]), configs).values())


@native
def test_misses_counted_by_hand(program: Path) -> None:
    # Windows of 64 KiB: A and B in one region, C in another.
    script = ["reserve 0 131072", "commit 0 0 131072", "reserve 1 65536", "commit 1 0 65536"]
    where = {"A": "0 0", "B": "0 65536", "C": "1 0"}
    script += [f"write {where[window]} 8 0" for window in "ABACABBC"]
    # 0: 8. 1: all but the second of BB: 7. 2, moving: A B . C . B . C = 5; keeping: A B . C(drops A) A(drops B) B(drops C)
    # . C = 6. 3: one each.
    expected = {Config(0): 8, Config(1): 7, Config(2): 5, Config(2, True): 6, Config(3): 3, Config(3, True): 3}
    got = dict(zip(expected, replayed(program, script, *expected)))
    assert {config: figures["misses"] for config, figures in got.items()} == expected
    assert got[Config(2)]["hits"] == 3 and got[Config(2)]["evictions"] == 3 and got[Config(2)]["publishes"] == 8
    # The model of the list: newest first, so C is 1 step and the first region 2; moved, each stands where it was last.
    # One view misses A B A C A B C: kept 2+2+2+1+2+2+1; moved 2, 1, 1, 2, 2, 1, 2.
    one = got[Config(1)]
    assert (one["walks"], one["walk_steps_kept"], one["walk_steps_moved"]) == (7, 12, 11)


@native
def test_single_use_and_open_views_by_hand(program: Path) -> None:
    script = ["reserve 0 196608", "commit 0 0 196608", "write 0 0 4096 1", "write 0 0 4096 1", "write 0 0 8 0"]
    # A view held open is not evicted: B finds no place with one cached view, and A is a hit while it is open.
    script += ["open 5 0 0 8", "write 0 65536 8 0", "write 0 0 8 0", "close 5", "write 0 131072 8 0", "write 0 0 8 0"]
    (got,) = replayed(program, script, Config(1))
    assert (got["bypasses"], got["misses"], got["hits"], got["evictions"]) == (2, 4, 2, 2)
    assert got["rw_maps"] == 6 and got["views_mapped"] == 1


class Model:
    """Least recently used, from its definition: the mappings of each region in the order of last use, and of all."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.order: list[tuple[int, int, int]] = []  # region, from, to; most recent first
        self.near: dict[int, list[tuple[int, int, int]]] = {}
        self.hits = self.misses = self.bypasses = self.evictions = 0

    def write(self, region: int, offset: int, size: int, once: int) -> None:
        if once:
            self.bypasses += 1
            return
        mine = self.near.setdefault(region, [])
        for found in mine:
            if found[1] <= offset and offset + size <= found[2]:
                self.hits += 1
                if not self.config.keep_order:
                    for queue in (mine, self.order):
                        queue.remove(found)
                        queue.insert(0, found)
                return
        self.misses += 1
        if self.config.views == 0:
            return
        if len(self.order) == self.config.views:
            gone = self.order.pop()
            self.near[gone[0]].remove(gone)
            self.evictions += 1
        made = (region, offset // 65536 * 65536, -(-(offset + size) // 65536) * 65536)
        mine.insert(0, made)
        self.order.insert(0, made)


@native
@pytest.mark.parametrize("seed", [1, 2])
def test_every_size_and_order_equals_an_independent_model(program: Path, seed: int) -> None:
    """Also across windows: a write over a boundary needs a mapping of both, which then serves either."""
    chance = random.Random(seed)
    units = [12, 5, 3]
    script = [s for r, n in enumerate(units) for s in (f"reserve {r} {n * 65536}", f"commit {r} 0 {n * 65536}")]
    writes = []
    for _ in range(200):
        region = chance.choice((0, 0, 0, 1, 2))
        size = chance.choice((1, 8, 4096, 30000))
        offset = chance.randrange(units[region] * 65536 - size + 1)
        writes.append((region, offset, size, int(chance.random() < 0.1)))
    script += [f"write {r} {o} {s} {once}" for r, o, s, once in writes]
    for config, got in replay.run(program, "\n".join([*script, ""]), ALL).items():
        model = Model(config)
        for write in writes:
            model.write(*write)
        expected = (model.hits, model.misses, model.bypasses, model.evictions)
        assert (got["hits"], got["misses"], got["bypasses"], got["evictions"]) == expected, (seed, config)


@native
def test_more_views_never_miss_more_when_hits_move_to_front(program: Path, tmp_path: Path) -> None:
    parameters = small(tmp_path)
    script = placement.place(dotnet.generate(parameters, parameters.profiles[0]), BEFORE)
    got = replay.run(program, script.text(), [Config(n) for n in range(17)])
    misses = [figures["misses"] for figures in got.values()]
    assert misses == sorted(misses, reverse=True) and misses[0] == script.writes > misses[16]
    assert all(figures["hits"] + figures["misses"] == script.writes for figures in got.values())


@native
@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("leap 1\n", "script:1: expected reserve, commit, write, open, close or release"),
        ("reserve 1 65536\n", "script:1: expected the next region to reserve, or one that was reserved"),
        ("reserve 0 65536\nwrite 0 0 8\n", "script:2: expected write REGION OFFSET BYTES ONCE"),
        ("reserve 0 65536\nwrite 0 0 8 0\n", "step 2: map_rw: the range holds a page that is not committed"),
        ("close 3\n", "step 1: a view that is not open is closed"),
    ],
)
def test_the_replayer_says_what_is_wrong(program: Path, script: str, said: str) -> None:
    with pytest.raises(ToolError) as caught:
        replay.run(program, script, [Config(3)])
    assert said in str(caught.value)


@native
def test_recorded_traces_replay_as_their_excerpts_do(program: Path) -> None:
    """The first 400 allocations of each recorded trace: every one a view, and the model's misses."""
    found = dotnet_rw.recorded(ROOT)
    assert {s.name for s in found} == {"javac-128x6", "javac-128x6-24m", "script-128x6", "classgen-128x6"}
    for subject in found:
        events = subject.trace.events[:400]
        script = placement.place(replace(subject.trace, events=events), BEFORE)
        writes = [tuple(map(int, s.split()[1:])) for s in script.steps if s.startswith("write")]
        assert len(writes) == sum(e.word == "alloc" for e in events) == script.writes
        for config, got in replay.run(program, script.text(), [Config(1), Config(3)]).items():
            model = Model(config)
            for region, offset, size, once in writes:
                model.write(region, offset, size, once)
            assert (got["misses"], got["hits"]) == (model.misses, model.hits), (subject.name, config)


# ---- The command ----


def called(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(COMMAND), "tables", *argv], capture_output=True, text=True, timeout=120, check=False)


@native
def test_the_command_replays_a_trace_of_ones_own(tmp_path: Path, program: Path) -> None:
    path = tmp_path / "mine.trace"
    path.write_text(HEAD + "set own.dispatch 4096\nalloc a 100\nstub dispatch 48\nslot s 24\nalloc b 5\n")
    argv = ("dotnet-rw", "--trace", str(path), "--cache-sizes", "1,3")
    data = json.loads(called(*argv, "--json").stdout)
    assert data["source"] == "dotnet/runtime#83632" and len(data["published"]) == 3
    rows = {(r["share"], r["bypass"], r["stub_page"], r["views"], r["keep_order"]): r for r in data["rows"]}
    assert rows[False, False, 4096, 1, False]["mappings"] == 4
    assert rows[False, False, 4096, 3, False]["mappings"] == 3
    last = rows[True, True, 16384, 3, False]  # code and stubs in one window, the page for once
    assert (last["misses"], last["bypasses"], last["mappings"], last["hits"]) == (1, 1, 2, 2)
    assert (
        called(*argv, "--csv").stdout.splitlines()[0].startswith("trace,kind,share,bypass,stub_page,views,keep_order")
    )
    shown = called(*argv)
    assert shown.returncode == 0, shown.stderr
    for text in ("before: 1 view", "all but bypass", "Real: libexecmem", "Modelled: where blocks land"):
        assert text in shown.stdout


@native
def test_rows_tell_the_orders_of_the_cache_apart(program: Path) -> None:
    """The sequence counted by hand above, ABACABBC, as a trace: each block fills a region of its own."""
    text = "set code_reserve 65536\nset code_reserve_later 65536\nalloc A 65536\nalloc B 65536\nwrite A 0 8\nalloc C 65536\n"
    text += "".join(f"write {window} 0 8\n" for window in "ABBC")
    subject = dotnet_rw.Subject("by hand", "given", parsed(text))
    said: list[tuple[str, int, int]] = []
    rows = dotnet_rw.replay_all(program, [subject], [1, 2], 1, lambda *words: said.append(words))
    assert [(r.views, r.keep_order, r.mappings) for r in rows] == [
        (1, False, 7),
        (1, True, 7),
        (2, False, 5),
        (2, True, 6),
    ]
    assert {(r.opened, r.crossing, r.regions, r.kind) for r in rows} == {(8, 0, 3, "given")} and said[-1][1:] == (1, 1)
    # The list: A, B, A, C newest first, A, B, C looked for: 1 1 2 1 3 2 1 in order of age, 1 1 2 1 2 3 3 moved.
    assert (rows[0].walk_kept, rows[0].walk_moved) == (round(11 / 7, 1), round(13 / 7, 1))
    assert list(dotnet_rw.wanted(subject, dotnet_rw.sizes("2,0-1"))) == [BEFORE]  # no stubs: nothing else to switch


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--cache-sizes", "17"], "--cache-sizes 17: expected 0 to 16, the smaller first, found '17'"),
        (["--cache-sizes", "3-1"], "expected 0 to 16, the smaller first, found '3-1'"),
        (["--cache-sizes", "few"], "expected numbers from 0 to 16 such as 0-16 or 1,3, found 'few'"),
        (["--trace", "absent.trace"], "absent.trace: cannot be read"),
        (["--parameters", "absent.toml"], "absent.toml: cannot be read"),
        (["--trace", "a", "--no-recorded"], "--trace replays that trace alone"),
    ],
)
def test_a_mistake_on_the_command_line_ends_with_two(argv: list[str], said: str) -> None:
    done = called("dotnet-rw", *argv)
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr


def test_help_teaches_the_format() -> None:
    shown = called("dotnet-rw", "--help").stdout
    assert "execmem-trace 1" in shown and "--save" in shown and "dotnet-rw" in called("--help").stdout


# ---- D82031 ----


def test_the_closed_form_is_a_count_of_every_pattern() -> None:
    """Exactly, on regions so small that every set of free blocks can be tried."""
    for page, block, pages in ((8, 4, 3), (8, 3, 3), (8, 6, 3), (16, 12, 3)):  # each ends where a block does
        blocks = pages * page // block
        free, mean, square = 0.9, 0.0, 0.0
        for pattern in range(1 << blocks):
            chance = free ** pattern.bit_count() * (1 - free) ** (blocks - pattern.bit_count())
            touching = [range(i * page // block, ((i + 1) * page - 1) // block + 1) for i in range(pages)]
            count = sum(all(pattern >> b & 1 for b in t) for t in touching)
            mean += chance * count
            square += chance * count * count
        expected, error = scudo.closed_form(page, block, 90, pages)
        assert expected == pytest.approx(mean / pages)
        assert error == pytest.approx((square - mean * mean) ** 0.5 / pages)


def test_the_published_table_is_the_closed_form() -> None:
    known = scudo.published(ROOT)
    assert len(known) == 210
    floors = {cell: int(100 * scudo.closed_form(4096, scudo.block_of(cell[0]), cell[1], 1)[0]) for cell in known}
    assert sum(floors[cell] == known[cell] for cell in known) == 197
    assert max(abs(floors[cell] - known[cell]) for cell in known) == 1


@native
def test_the_library_releases_what_a_naive_count_says(tmp_path: Path) -> None:
    command = [str(COMMAND), "tables", "scudo-release", "--blocks", "60000", "--seed", "7", "--json"]
    command += ["--page", "4096", "--page", "16384"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert len(data["cells"]) == 2 * 210 and data["wrong"] == []
    assert all(cell["released"] == cell["naive"] for cell in data["cells"])
    assert all((cell["resident"] == cell["naive"]) == (cell["page"] == 4096) for cell in data["cells"] if cell["naive"])
    assert sum(cell["forced"] == "go" for cell in data["cells"]) > 100
    assert sum(cell["naive"] > 0 for cell in data["cells"]) > 200


def test_a_cell_that_is_not_right_is_told() -> None:
    known = scudo.published(ROOT)
    expected, error = scudo.closed_form(4096, 32, 99, 32768)
    count = round(expected * 32768)
    cell = scudo.Cell(4096, 16, 32, 99, 32768, count, count, count, "go", count, 1.0, expected, error, known[16, 99])
    assert scudo.faults([cell], 1000) == []
    far = round((expected + 4.5 * error) * 32768)
    for wrong, said in (
        (replace(cell, released=count + 1), "a naive count says"),
        (replace(cell, resident=count - 1), "the system says"),
        (replace(cell, forced_pages=count - 1), "released by force"),
        (replace(cell, naive=far, released=far, resident=far, forced_pages=far), "standard error"),
    ):
        assert any(said in text for text in scudo.faults([wrong], 1000))
    assert any("published integers" in text for text in scudo.faults([cell], scudo.FULL))
    assert (
        any("26 % published" in text for text in scudo.faults([replace(cell, published=26 + 3)], scudo.FULL)) is False
    )
    assert any("% published" in text for text in scudo.faults([replace(cell, published=90)], scudo.FULL))


@native
def test_too_few_blocks_are_a_usage_error() -> None:
    done = subprocess.run([str(COMMAND), "tables", "scudo-release", "--blocks", "10"], capture_output=True, text=True)
    assert done.returncode == 2 and "--blocks: expected more" in done.stderr
