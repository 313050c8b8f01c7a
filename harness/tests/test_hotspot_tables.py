"""execmem-cts tables hotspot-code-cache: its traces, the model of HotSpot's list, the replays of the library, and goals.

The model in C is held against one in Python that shares nothing with it, against counts by hand, and against what HotSpot
itself printed in fifteen recorded runs.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from execmem_cts.source import ManifestError
from execmem_cts.tables import hotspot, hotspot_replay, hotspot_trace
from execmem_cts.tables.hotspot import Goal, Own
from execmem_cts.tables.hotspot_replay import Config, Replay
from execmem_cts.tables.hotspot_trace import HeapTrace
from execmem_cts.tools import ToolError

from hotspot_cases import at_random, calls, native_program, one, trace

ROOT = Path(__file__).resolve().parents[2]
COMMAND = ROOT / "harness" / "execmem-cts"


@pytest.fixture(scope="session")
def program() -> Path:
    return native_program()


# ---- Traces ----


def test_both_formats_are_one_trace(tmp_path: Path) -> None:
    recorded = "a 7 100 2\na 8 50 0\nt 7 60\nf 8\na 8 10 2\n"
    written = "execmem-trace 1\nalloc x 100 hot\nalloc y 50\ntrim x 60\nfree y\nalloc y 10 hot\n"
    for text in (recorded, written, "# a comment\n\n" + recorded):
        got = trace(text)
        assert got.text == "a 0 100 0\na 1 50 1\nt 0 60\nf 1\na 2 10 0\n"
        assert (got.heaps, got.allocations, got.frees, got.asked_most, got.asked_last) == (2, 3, 1, 150, 70)
        assert got.sizes == (10, 60) and got.default_size
    path = tmp_path / "mine.trace"
    path.write_text(recorded)
    assert hotspot_trace.choose(ROOT, [str(path)])[0].name == "mine"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a 0 10\nx 0\n", "t:2: expected a, f or t, or `execmem-trace 1` first, found 'x'"),
        ("a 0\n", "t:1: expected `a ID BYTES [HEAP]`, numbers in decimal, found 'a 0'"),
        ("a 0 1 2 3\n", "t:1: expected `a ID BYTES [HEAP]`"),
        ("a 0 -1\n", "t:1: expected `a ID BYTES [HEAP]`"),
        ("a 0 0\n", "t:1: bytes: expected 1 to 1073741824, found 0"),
        ("a 0 10\na 0 10\n", "t:2: expected a block that is not live, found '0'"),
        ("a 0 10\nf 0\nf 0\n", "t:3: expected a block that is live, found '0'"),
        ("a 0 10\nt 0 11\n", "t:2: expected at most the 10 bytes that '0' has, found 11"),
        ("".join(f"a {i} 1 {i}\n" for i in range(9)), "t:9: expected at most 8 heaps, found one more, '8'"),
        ("# nothing\n", "t: expected at least one event, found none"),
        ("execmem-trace 1\nalloc a 10\nstub k 10\n", "t:3: expected alloc, trim or free, found 'stub'"),
        ("execmem-trace 2\nalloc a 10\n", "t:1: expected version 1, found 2"),
    ],
)
def test_a_mistake_in_a_trace_names_its_line(text: str, said: str) -> None:
    with pytest.raises(ManifestError) as caught:
        trace(text)
    assert said in str(caught.value)


def test_the_recorded_traces_are_those_whose_figures_are_known() -> None:
    assert (
        list(hotspot_trace.recorded(ROOT)) == list(hotspot.own_figures(ROOT)) and len(hotspot.own_figures(ROOT)) == 15
    )


@pytest.mark.parametrize(
    ("argv", "text", "status", "said"),
    [
        (["segment=64"], "a 0 10\nf 1\n", 2, "trace:2: expected the number of a block that is live"),
        (["segment=64"], "a 0 10\nt 0 11\n", 2, "trace:2: expected t BLOCK BYTES, BYTES at most what the block has"),
        (["segment=64"], "a 1 10\n", 2, "trace:1: expected the next number of a block"),
        (["segment=64"], "a 0 10 8\n", 2, "HEAP from 0 to 7"),
        (["segment=64"], "a 0 10 \n", 2, "trace:1: expected a BLOCK BYTES [HEAP]"),
        (["segment=64"], "", 2, "expected at least one line"),
        (["segment=65"], "a 0 10\n", 2, "segment=65: expected KEY=VALUE"),
        (["list=1,policy=near"], "a 0 10\n", 2, "expected KEY=VALUE"),
        (["minimum=65"], "a 0 10\n", 2, "expected KEY=VALUE"),
        ([], "a 0 10\n", 2, "usage: replay CONFIG... < TRACE"),
    ],
)
def test_the_program_refuses_what_it_does_not_understand(
    program: Path, argv: list[str], text: str, status: int, said: str
) -> None:
    done = subprocess.run([str(program), *argv], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == status and said in done.stderr and done.stdout == ""


def test_a_program_that_fails_is_an_error_of_the_tool(program: Path) -> None:
    with pytest.raises(ToolError, match="exit status 2"):
        hotspot_replay.run([str(program)], HeapTrace("bad", "f 0\n", 1, 0, 0, 0, 0, (), 0), [Config()])
    with pytest.raises(ToolError, match="answered 0 of 1"):
        hotspot_replay.run(["/bin/true"], calls("a 1"), [Config()])


# ---- The model of HotSpot ----


def test_the_model_counted_by_hand(program: Path) -> None:
    """Blocks of 64 x 4: 256 bytes at least; a header of 16 bytes counts as unused."""
    of = calls("a 240", "a 241", "a 500", "a 1000", "f 1", "f 0", "a 100")
    got = one(program, of, Config(True, segment=64, minimum=4))
    # 4, 5, 9 and 16 segments; 9 free in front; the last block is cut from their end: 5 stay.
    assert (got["footprint_bytes"], got["free_blocks"], got["free_bytes"]) == (34 * 64, 1, 5 * 64)
    assert got["unused_bytes"] == (9 * 64 - 500) + (16 * 64 - 1000) + (4 * 64 - 100)
    assert (got["segment_map_bytes"], got["largest_used_bytes"]) == (34, 34 * 64)
    assert got["wasted_bytes"] == 320 + got["unused_bytes"] + 34
    assert got["overhead_per_myriad"] == round(10000 * got["wasted_bytes"] / (34 * 64))
    # A remainder of less than the minimum stays with the block: 9 - 6 segments.
    of = calls("a 240", "a 560", "a 300", "f 1", "a 360")
    got = one(program, of, Config(True, segment=64, minimum=4))
    assert (got["free_blocks"], got["unused_bytes"]) == (0, 16 + (5 * 64 - 300) + (9 * 64 - 360))
    # The smallest that is large enough, not the first; and the first where that is asked for.
    of = calls("a 1000", "a 1", "a 500", "a 1", "f 0", "f 2", "a 496")
    assert one(program, of, Config(True, segment=64, minimum=4))["free_bytes"] == 16 * 64  # the ninth segment stays
    assert one(program, of, Config(True, "first", 64, 4))["free_bytes"] == (16 - 8) * 64 + 9 * 64


class Naive:
    """HotSpot's heap as a list of [length, bytes asked or None], without an index of anything."""

    def __init__(self, segment: int, minimum: int, first: bool) -> None:
        self.segment, self.minimum, self.first = segment, minimum, first
        self.blocks: list[tuple[int, int | None, int]] = []  # segments, block or None, bytes
        self.used_most = 0

    def length(self, bytes_: int) -> int:
        return -(-(bytes_ + 16) // self.segment)

    def allocate(self, block: int, bytes_: int) -> None:
        length = max(self.length(bytes_), self.minimum)
        fits = [i for i, (l, who, _) in enumerate(self.blocks) if who is None and l >= length]
        if not fits:
            self.blocks.append((length, block, bytes_))
        else:
            at = fits[0] if self.first else min(fits, key=lambda i: (self.blocks[i][0], i))
            rest = self.blocks[at][0] - length
            if rest < self.minimum:
                self.blocks[at] = (self.blocks[at][0], block, bytes_)
            else:
                self.blocks[at : at + 1] = [(rest, None, 0), (length, block, bytes_)]
        self.used_most = max(self.used_most, sum(l for l, who, _ in self.blocks if who is not None))

    def merge(self) -> None:
        merged: list[tuple[int, int | None, int]] = []
        for block in self.blocks:
            if merged and merged[-1][1] is None and block[1] is None:
                merged[-1] = (merged[-1][0] + block[0], None, 0)
            else:
                merged.append(block)
        self.blocks = merged

    def free(self, block: int) -> None:
        self.blocks = [(l, None, 0) if who == block else (l, who, b) for l, who, b in self.blocks]
        self.merge()

    def trim(self, block: int, bytes_: int) -> None:
        at = next(i for i, (_, who, _) in enumerate(self.blocks) if who == block)
        length, left = self.blocks[at][0], self.length(bytes_)
        self.blocks[at : at + 1] = [(left, block, bytes_)] + ([(length - left, None, 0)] if length > left else [])
        self.merge()


@pytest.mark.parametrize("policy", ["best", "first"])
@pytest.mark.parametrize("shape", [(64, 4), (128, 6), (32, 1)])
def test_the_model_is_the_naive_one(program: Path, policy: str, shape: tuple[int, int]) -> None:
    for seed in range(6):
        of = at_random(seed, 900)  # more than 100 free blocks at times: the walk begins at the hint then
        naive = Naive(*shape, policy == "first")
        for line in of.text.splitlines():
            word, block, *rest = line.split()
            if word == "a":
                naive.allocate(int(block), int(rest[0]))
            elif word == "f":
                naive.free(int(block))
            else:
                naive.trim(int(block), int(rest[0]))
        got = one(program, of, Config(True, policy, *shape))
        free = [l for l, who, _ in naive.blocks if who is None]
        assert got["free_blocks"] == len(free) and got["free_bytes"] == sum(free) * shape[0]
        assert got["footprint_bytes"] == sum(l for l, _, _ in naive.blocks) * shape[0]
        assert got["largest_used_bytes"] == naive.used_most * shape[0]


def test_the_model_is_what_hotspot_printed(program: Path) -> None:
    """In every recorded run; and a number that is not, is told."""
    own = hotspot.own_figures(ROOT)
    for of in hotspot_trace.choose(ROOT, []):
        shape = hotspot.recorded_shape(of.name)
        assert shape
        got = one(program, of, Config(True, "best", *shape))
        assert hotspot.apart(got, own[of.name]) == []
        replays = {of.name: {got.config: got}}
        assert hotspot.wrong([of], replays, own) == []
        off = replace(own[of.name], free_blocks=own[of.name].free_blocks + 5)
        assert "free blocks: the model has" in hotspot.wrong([of], replays, {of.name: off})[0]


def test_apart_looks_at_each_figure() -> None:
    figures = {"free_blocks": 10, "free_bytes": 102400, "largest_used_bytes": 1024000}
    got = Replay(Config(True), figures, (0, 0))
    assert hotspot.apart(got, Own(12, 112, 1007)) == []
    for own in (Own(13, 100, 1000), Own(10, 113, 1000), Own(10, 100, 1008)):
        assert len(hotspot.apart(got, own)) == 1


# ---- The library ----


@pytest.mark.parametrize("policy", ["first", "best", "near"])
def test_the_library_replays_any_trace(program: Path, policy: str) -> None:
    for seed in range(4):
        of = at_random(seed, 2000, heaps=3)
        for segment, minimum, together in ((16, 1, False), (64, 4, True), (128, 6, False)):
            config = Config(False, policy, segment, minimum, together=together)
            got = one(program, of, config)
            assert got["metadata_bytes"] > 0 and got["searches"] >= of.allocations
            assert got["regions"] == (1 if together else of.heaps)


def test_best_fit_of_the_library_counted_by_hand(program: Path) -> None:
    """No header, no minimum, cut from the beginning."""
    of = calls("a 100", "a 1000", "a 100", "a 500", "a 100", "f 1", "f 3", "a 490", "a 900")
    got = one(program, of, Config(segment=32))
    assert got["footprint_bytes"] == 32 * (4 + 32 + 4 + 16 + 4)  # both holes were taken, by what fits
    assert got["free_bytes"] == 32 * (32 - 29)
    assert got["unused_bytes"] == 3 * 28 + (512 - 490) + (29 * 32 - 900)
    assert got["segment_map_bytes"] == 60


def test_a_figure_that_contradicts_the_trace_is_told(program: Path) -> None:
    of = at_random(1, 500)
    got = one(program, of, Config())
    for name in ("live_blocks", "used_bytes", "free_bytes", "segment_map_bytes", "wasted_bytes", "overhead_per_myriad"):
        assert hotspot_replay.faults(of, replace(got, figures={**got.figures, name: got[name] + 1}))
    for name in ("events", "heaps", "asked_most", "allocations", "frees"):
        assert hotspot_replay.faults(of, replace(got, figures={**got.figures, name: got[name] - 1}))
    assert hotspot_replay.faults(of, replace(got, figures={**got.figures, "sizes": got.figures["sizes"][1:]}))
    assert hotspot_replay.faults(replace(of, asked_most=got["footprint_bytes"] + 1), got)


@pytest.mark.parametrize("policy", ["best", "near"])
def test_mappings_on_paper_are_counted_as_real_ones(program: Path, policy: str) -> None:
    of = at_random(3, 1500, heaps=2)
    for views in (0, 1, 3):
        config = Config(policy=policy, segment=64, views=views, together=policy == "near")
        paper, real = (one(program, of, replace(config, write=write)) for write in (1, 2))
        assert (paper["misses"], paper["hits"]) == (real["misses"], real["hits"])
        assert paper["misses"] + paper["hits"] == of.allocations and paper["misses"] > 0
        assert (paper["hits"] > 0) == (views > 0) and paper["resident_samples"] == 0 < real["resident_samples"]


def test_what_was_written_is_looked_at(program: Path) -> None:
    """Pages that are released too early would lose it: as good as any mistake is a heap that hands a block out twice."""
    of = at_random(5, 1500)
    for release in ("exact", "scudo", "forced"):
        got = one(program, of, Config(segment=64, minimum=4, write=2, release=release, every=1))
        assert got["release_attempts"] == of.frees
    got = one(program, of, Config(segment=64, minimum=4, write=2, release="exact", every=1))
    assert got["release_bytes"] > 0 and got["release_skipped"] == 0


# ---- Goals ----


def answer(config: Config, **figures: int) -> Replay:
    return Replay(config, figures, (0, 0))


def test_goals_take_the_better_of_hotspots() -> None:
    model = {
        Config(True, "best", *shape): answer(
            Config(True, "best", *shape), footprint_bytes=footprint, unused_bytes=600, metadata_bytes=400
        )
        for shape, footprint in zip(hotspot.SHAPES, (1000, 900, 980))
    }
    mine = {
        Config(False, "best", *shape): answer(
            Config(False, "best", *shape), footprint_bytes=footprint, unused_bytes=300, metadata_bytes=kept
        )
        for shape, footprint, kept in zip(hotspot.FINE, (980, 981, 970), (100, 101, 0))
    }
    of = calls("a 100")
    goals = hotspot.figure_goals(of, {**model, **mine})
    assert [(goal.measured, goal.met) for goal in goals] == [
        (1.0, True),
        (0.4, True),
        (981 / 980, False),
        (0.401, False),
        (970 / 980, True),
        (0.3, True),
    ]
    assert Goal("", "", 4, 4, True).met and not Goal("", "", 3.99, 4, True).met


def test_goals_of_near_take_the_most_that_the_memory_allows() -> None:
    configs = hotspot.near_configs((10, 20))
    figures = ((800, 1000), (900, 900), (300, 1100), (200, 1251), (210, 1240), (190, 1250))
    replays = {c: answer(c, misses=m, footprint_bytes=f) for c, (m, f) in zip(configs, figures)}
    of = replace(calls("a 100", "f 0"), heaps=3, asked_most=3 * 65536 + 1)
    (goal,) = hotspot.near_goals(of, replays)
    assert goal.met and goal.measured == pytest.approx(800 / 190) and "800 to 190 with 20 %, one heap" in goal.note
    points = hotspot.frontier(replays)
    assert [point.good for point in points] == [False, False, False, True]
    assert [hotspot.dominated(point, points) for point in points] == [False, True, False, False]
    replays[configs[5]] = answer(configs[5], misses=190, footprint_bytes=1251)
    (goal,) = hotspot.near_goals(of, replays)
    assert not goal.met and goal.measured == pytest.approx(800 / 210)
    assert "200 are wanted, and 4 windows of code are live at once" in goal.note
    assert hotspot.near_goals(replace(of, heaps=1), replays) == []  # not recorded at HotSpot's own size
    for config in configs[2:]:
        replays[config] = answer(config, misses=190, footprint_bytes=1251)
    assert not hotspot.near_goals(of, replays)[0].met


# ---- The command ----


def called(*argv: str) -> subprocess.CompletedProcess[str]:
    command = [str(COMMAND), "tables", "hotspot-code-cache", *argv]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_the_command_shows_every_part_of_a_trace(tmp_path: Path, program: Path) -> None:
    path = tmp_path / "mine.trace"
    path.write_text(at_random(4, 800, heaps=2).text)
    argv = ["--trace", str(path), *(word for part in ("figures", "own", "sizes", "near") for word in ("--part", part))]
    done = called(*argv)
    assert done.returncode == 0, done.stderr
    for text in (
        "mine: ",
        "libexecmem first",
        "HotSpot best",
        "live blocks at the end by size",
        "near_percent",
        "Goals",
    ):
        assert text in done.stdout
    data = json.loads(called(*argv, "--json").stdout)
    assert data["source"] == "JDK-8029799" and data["wrong"] == [] and len(data["goals"]) == 7
    rows = [row for row in data["rows"] if row["part"] == "figures"]
    assert len(rows) == len(hotspot.figure_configs()) and {row["heap"] for row in rows} == {"hotspot", "libexecmem"}
    assert len(data["rows"]) - len(rows) == len(hotspot.near_configs()) and data["sizes"]["mine"]


def test_the_published_rows_are_medians() -> None:
    medians = hotspot.published(ROOT)
    assert len(medians) == 6
    assert medians["failing test case", 64, 4]["freelist_length"] == 3859
    assert medians["compiler.compiler", 128, 4]["overhead_percent"] == 9.99


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--trace", "absent"], "--trace absent: expected a file, or one of classgen-128x4, "),
        (["--trace", "javac-64x4", "--trace", str(ROOT / "ref/replay/hotspot/traces/javac-64x4.trace.xz")], "twice"),
        (["--part", "nothing"], "'nothing' is not one of"),
        (["--rounds", "0"], "0 is not in the range"),
    ],
)
def test_a_mistake_on_the_command_line_ends_with_two(argv: list[str], said: str) -> None:
    done = called(*argv)
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr


def test_help_teaches_the_format() -> None:
    shown = called("--help").stdout
    assert "a 0 1200 2" in shown and "--part" in shown
