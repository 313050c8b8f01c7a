"""Generates the start-up of a .NET application as a trace, from parameters that are a file (ref/replay).

Everything that could be chosen is in that file; what is here is the order of things in the runtime. Whole numbers only,
and a generator of random numbers of our own, so that a seed means the same trace on every machine and Python.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..source import ManifestError
from .trace import Event, Trace

STUB_KINDS = ("lookup", "dispatch", "resolve", "vtable")
# Table: its keys. A dict, a list, or a number of at least so much.
GRAMMAR: dict[str, dict[str, Any]] = {
    "memory": {
        "reserve_granule": 65536,
        "code_reserve": 65536,
        "code_reserve_later": 65536,
        "code_reserve_threshold": 0,
        "code_align": 1,
        "code_header": 0,
        "fragment_chunk": 1,
        "fragment_small": 1,
        "own_heap_stubs": dict,
        "stub_heap_reserve": 65536,
    },
    "stubs": {"bytes": dict, "precode_bytes": 1, "helper_bytes": 1, "other_bytes": 1},
    "types": {"prepared_per_type": 1, "methods_per_type": 1, "loader_bytes_per_prepared": 0},
    "methods": {
        "size_percent": list,
        "header_writes": 0,
        "freed_percent": 0,
        "freed_after": 1,
        "call_counting_percent": 0,
        "call_counting_batch": 1,
    },
    "calls": {
        "lookup_percent": 0,
        "dispatch_percent": 0,
        "resolve_percent": 0,
        "vtable_percent": 0,
        "helper_percent": 0,
        "other_percent": 0,
    },
}
PROFILE: dict[str, Any] = {"name": str, "jitted": 0, "code_bytes": 0, "prepared": 0, "source": dict}


@dataclass(frozen=True)
class Profile:
    """An application: the counts that its start-up is scaled by. `source` says of each where it is from."""

    name: str
    jitted: int
    code_bytes: int
    prepared: int
    source: dict[str, str]


@dataclass(frozen=True)
class Parameters:
    source: str
    digest: str  # of the file's bytes: results name what they came from
    seed: int
    tables: dict[str, dict[str, Any]]
    profiles: tuple[Profile, ...]


def _check(where: str, table: Any, grammar: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(table, dict):
        raise ManifestError(f"{where}: expected a table")
    for extra in sorted(set(table) - set(grammar)):
        raise ManifestError(f"{where}.{extra}: unknown; known are {', '.join(grammar)}")
    for key, rule in grammar.items():
        if key not in table:
            raise ManifestError(f"{where}.{key}: is missing")
        value = table[key]
        if isinstance(rule, int):
            most = 100 if key.endswith("_percent") else 1 << 32
            if not isinstance(value, int) or isinstance(value, bool) or not rule <= value <= most:
                raise ManifestError(f"{where}.{key}: expected a number from {rule} to {most}, found {value!r}")
        elif not isinstance(value, rule) or not value:
            kind = {dict: "a table", list: "an array", str: "text"}[rule]
            raise ManifestError(f"{where}.{key}: expected {kind} that is not empty, found {value!r}")
    return table


def _numbers(where: str, values: dict[str, Any] | list[Any], keys: tuple[str, ...] | None) -> None:
    pairs = values.items() if isinstance(values, dict) else enumerate(values)
    for key, value in pairs:
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 1 << 20:
            raise ManifestError(f"{where}.{key}: expected a number from 1 to {1 << 20}, found {value!r}")
    if keys is not None and isinstance(values, dict) and sorted(values) != sorted(keys):
        raise ManifestError(f"{where}: expected {', '.join(keys)}, found {', '.join(values)}")


def load(path: Path) -> Parameters:
    """Reads a file of parameters. Raises ManifestError, naming file, key, and what was expected."""
    try:
        raw = path.read_bytes()
        data = tomllib.loads(raw.decode())
    except (OSError, UnicodeDecodeError) as error:
        raise ManifestError(
            f"{path}: cannot be read: {error}; give a file like ref/replay/dotnet-startup.toml"
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise ManifestError(f"{path}: not valid TOML: {error}") from error
    if data.get("schema") != 1:
        raise ManifestError(f"{path}: schema: expected 1, found {data.get('schema')!r}")
    seed = data.get("seed")
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 1 << 64:
        raise ManifestError(f"{path}: seed: expected a number from 0 to 2^64 - 1, found {seed!r}")
    for extra in sorted(set(data) - {"schema", "seed", "profile", *GRAMMAR}):
        raise ManifestError(f"{path}: {extra}: unknown; known are schema, seed, profile, {', '.join(GRAMMAR)}")
    tables = {name: _check(f"{path}: {name}", data.get(name), grammar) for name, grammar in GRAMMAR.items()}
    _numbers(f"{path}: memory.own_heap_stubs", tables["memory"]["own_heap_stubs"], STUB_KINDS)
    _numbers(f"{path}: stubs.bytes", tables["stubs"]["bytes"], STUB_KINDS)
    _numbers(f"{path}: methods.size_percent", tables["methods"]["size_percent"], None)
    profiles = data.get("profile")
    if not isinstance(profiles, list) or not profiles:
        raise ManifestError(f"{path}: profile: expected at least one [[profile]]")
    found = [Profile(**_check(f"{path}: profile[{i}]", p, PROFILE)) for i, p in enumerate(profiles)]
    for i, profile in enumerate(found):
        if profile.jitted + profile.prepared == 0:
            raise ManifestError(f"{path}: profile[{i}]: expected jitted or prepared methods, found none")
    return Parameters(str(path), hashlib.sha256(raw).hexdigest(), seed, tables, tuple(found))


class Random:
    """splitmix64: one step is an addition and a mix, the same everywhere."""

    def __init__(self, seed: int) -> None:
        self.state = seed

    def next(self) -> int:
        mask = (1 << 64) - 1
        self.state = (self.state + 0x9E3779B97F4A7C15) & mask
        z = self.state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
        z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
        return z ^ z >> 31

    def below(self, bound: int) -> int:
        return self.next() % bound

    def percent(self, share: int) -> bool:
        return self.below(100) < share


class _Startup:
    """One application's start-up, method by method."""

    def __init__(self, parameters: Parameters, profile: Profile) -> None:
        self.p, self.profile = parameters.tables, profile
        name = hashlib.sha256(profile.name.encode()).digest()
        self.random = Random(parameters.seed ^ int.from_bytes(name[:8], "little"))
        self.blocks = self.regions = self.loader_bytes = self.prepared = 0
        self.counted = 0
        self.freed: deque[tuple[int, str]] = deque()

    def prepare(self) -> Iterator[Event]:
        """A method whose precompiled code is looked up, with its type where it is the first of it."""
        types, granule = self.p["types"], self.p["memory"]["reserve_granule"]
        if self.prepared % types["prepared_per_type"] == 0:
            for _ in range(types["methods_per_type"]):
                yield Event("slot", heap="fixup_precode", bytes=self.p["stubs"]["precode_bytes"])
        self.prepared += 1
        self.loader_bytes -= types["loader_bytes_per_prepared"]
        while self.loader_bytes < 0:
            yield Event("region", name=f"loader{self.regions}", bytes=granule)
            self.regions += 1
            self.loader_bytes += granule
        if self.random.percent(self.p["calls"]["helper_percent"]):
            yield Event("stub", heap="helper", bytes=self.p["stubs"]["helper_bytes"])
        if self.random.percent(self.p["calls"]["other_percent"]):
            yield Event("stub", heap="other", bytes=self.p["stubs"]["other_bytes"])

    def jit(self, step: int) -> Iterator[Event]:
        """A method that is compiled: its code block, and the writes to the header in front of it."""
        methods = self.p["methods"]
        percent = methods["size_percent"][self.random.below(len(methods["size_percent"]))]
        size = max(1, self.profile.code_bytes * percent // (100 * self.profile.jitted))
        name = f"m{self.blocks}"
        self.blocks += 1
        yield Event("alloc", name=name, bytes=size)
        for _ in range(methods["header_writes"]):
            yield Event("write", name=name, offset=0, bytes=min(size, 8))
        if self.random.percent(methods["freed_percent"]):
            self.freed.append((step + methods["freed_after"], name))

    def calls(self) -> Iterator[Event]:
        """The stubs that a method's first calls through interfaces make, and its call counting."""
        for kind in STUB_KINDS:
            if self.random.percent(self.p["calls"][f"{kind}_percent"]):
                yield Event("stub", heap=kind, bytes=self.p["stubs"]["bytes"][kind])
        self.counted += self.random.percent(self.p["methods"]["call_counting_percent"])
        if self.counted == self.p["methods"]["call_counting_batch"]:
            yield from self.call_counting()

    def call_counting(self) -> Iterator[Event]:
        for _ in range(self.counted):
            yield Event("slot", heap="call_counting", bytes=self.p["stubs"]["precode_bytes"])
        self.counted = 0

    def events(self) -> Iterator[Event]:
        jitted, prepared = self.profile.jitted, self.profile.prepared
        for step in range(jitted + prepared):
            while self.freed and self.freed[0][0] <= step:
                yield Event("free", name=self.freed.popleft()[1])
            if self.random.below(jitted + prepared) < jitted:  # an urn: every order is as likely
                jitted -= 1
                yield from self.jit(step)
            else:
                prepared -= 1
                yield from self.prepare()
            yield from self.calls()
        yield from self.call_counting()


def generate(parameters: Parameters, profile: Profile) -> Trace:
    """The trace of one application. The same parameters give the same trace, event by event."""
    memory, stubs = parameters.tables["memory"], parameters.tables["stubs"]
    plain = ("code_align", "code_header", "code_reserve", "code_reserve_later", "code_reserve_threshold")
    settings = {key: memory[key] for key in (*plain, "fragment_chunk", "fragment_small", "reserve_granule")}
    for kind in STUB_KINDS:
        settings[f"own.{kind}"] = memory["own_heap_stubs"][kind] * stubs["bytes"][kind]
    settings["apart.other"] = memory["stub_heap_reserve"]
    source = f"{parameters.source} ({profile.name}, seed {parameters.seed})"
    return Trace(source, settings, list(_Startup(parameters, profile).events()))
