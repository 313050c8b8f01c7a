"""execmem-cts tables dotnet-rw: replays of the real library, and the command.

The library is held against models of its own here that share nothing with it: misses counted by hand, and a few lines of
least-recently-used lists for every size of the cache.
"""

from __future__ import annotations

import json
import platform
import random
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from dotnet_cases import HEAD, parsed, small

from execmem_cts.tables import dotnet, dotnet_rw, placement, replay
from execmem_cts.tables.dotnet_rw import BEFORE
from execmem_cts.tables.replay import Config
from execmem_cts.tools import ToolError

ROOT = Path(__file__).resolve().parents[2]
COMMAND = ROOT / "harness" / "execmem-cts"
ALL = [Config(views, keep) for views in range(17) for keep in (False, True)]

native = pytest.mark.skipif(platform.machine() != "x86_64", reason="the replayer runs natively, on x86-64")


@pytest.fixture(scope="session")
def program() -> Path:
    return replay.build(ROOT, ROOT / "build" / "tables")


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
