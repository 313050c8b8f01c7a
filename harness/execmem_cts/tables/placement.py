"""A model of where a runtime puts what a trace asks for: from a trace to the script that the replayer runs.

Placement is modelled, views are not: libexecmem's code heap and stub heap do not exist yet, so their part is played here,
and the steps that come out are taken by the library itself. The models, one class each:

- CodeHeap: best fit (the lowest of equals), cut from the start, both neighbours merged, metadata apart from the code.
- Fragments: stubs that share the pages of jitted code; small ones are cut from chunks that the code heap gives.
- OwnHeaps: stubs in heaps of their own, which only grow, side by side in one region as .NET reserves them.
- SlotHeap: interleaved pages; a page of code is written, whole and once, when its first slot is asked for, and its data
  page needs no view.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field

from ..source import ManifestError
from .trace import Event, Trace

UNIT = 65536  # memory is committed in these, the library's own unit, and a window is as large by default
VIEWS = 1024  # as many can be open; SCRIPT_VIEWS of ref/replay/script.h


@dataclass(frozen=True, slots=True)
class Switches:
    """Two of the three changes of #83632, and its page size. The third is the size of the cache."""

    share: bool  # virtual-call stubs lie in the pages of jitted code
    bypass: bool  # pages that are written once get a view of their own, which is not cached
    stub_page: int  # bytes of code of an interleaved page

    @property
    def text(self) -> str:
        stubs, once = "shared pages" if self.share else "own heaps", "bypass" if self.bypass else "cached"
        return f"{stubs}, {once}, {self.stub_page // 1024}K pages"


@dataclass
class Script:
    """`steps` is what ref/replay/script.h describes. The other figures are for the report."""

    steps: list[str] = field(default_factory=list)
    writes: int = 0  # views that will be opened
    crossing: int = 0  # of which reach over the boundary of a window, and so need a mapping of two
    regions: int = 0

    def text(self) -> str:
        return "\n".join([*self.steps, ""])


class Memory:
    """Regions of the script, committed as far as they are used."""

    def __init__(self, script: Script, granule: int) -> None:
        self.script, self.granule = script, granule
        self.committed: dict[tuple[int, int], bool] = {}

    def reserve(self, size: int) -> int:
        size = -(-size // self.granule) * self.granule
        region = self.script.regions
        self.script.regions += 1
        self.script.steps.append(f"reserve {region} {size}")
        return region

    def commit(self, region: int, offset: int, size: int) -> None:
        for unit in range(offset // UNIT, (offset + size - 1) // UNIT + 1):
            if (region, unit) not in self.committed:
                self.committed[region, unit] = True
                self.script.steps.append(f"commit {region} {unit * UNIT} {UNIT}")

    def write(self, region: int, offset: int, size: int, once: bool = False) -> None:
        self.viewed(offset, size)
        self.script.steps.append(f"write {region} {offset} {size} {int(once)}")

    def viewed(self, offset: int, size: int) -> None:
        """Counts a view."""
        self.script.writes += 1
        self.script.crossing += offset // UNIT != (offset + size - 1) // UNIT


@dataclass(slots=True)
class Block:
    """A block of a code heap: where it lies, what it takes there, and what was asked for."""

    heap: CodeHeap
    region: int
    offset: int
    taken: int
    size: int


class CodeHeap:
    """Blocks of jitted code. Free blocks are known by size, by start and by end."""

    def __init__(self, memory: Memory, settings: dict[str, int]) -> None:
        self.memory, self.settings = memory, settings
        self.regions = 0
        self.free: list[tuple[int, int, int]] = []  # (bytes, region, offset), sorted
        self.starts: dict[tuple[int, int], int] = {}  # (region, offset): bytes
        self.ends: dict[tuple[int, int], int] = {}  # (region, end): offset
        self.top, self.end, self.region = 0, 0, -1  # what is left of the newest region

    def rounded(self, size: int) -> int:
        align = self.settings["code_align"]
        return -(-(size + self.settings["code_header"]) // align) * align

    def alloc(self, size: int) -> Block:
        need = self.rounded(size)
        at = bisect.bisect_left(self.free, (need, -1, -1))
        if at < len(self.free):
            have, region, offset = self.free[at]
            self._forget(have, region, offset)
            if have > need:
                self._remember(have - need, region, offset + need)
        else:
            region, offset = self._grow(need)
        self.memory.commit(region, offset, need)
        return Block(self, region, offset, need, size)

    def release(self, region: int, offset: int, size: int) -> None:
        start = self.ends.get((region, offset))
        if start is not None:
            before = self.starts[region, start]
            self._forget(before, region, start)
            offset, size = start, size + before
        after = self.starts.get((region, offset + size))
        if after is not None:
            self._forget(after, region, offset + size)
            size += after
        self._remember(size, region, offset)

    def _grow(self, need: int) -> tuple[int, int]:
        if self.top + need > self.end:
            if self.end > self.top:
                self.release(self.region, self.top, self.end - self.top)
            later = self.regions > self.settings["code_reserve_threshold"]
            size = max(need, self.settings["code_reserve_later" if later else "code_reserve"])
            size = -(-size // self.memory.granule) * self.memory.granule
            self.region, self.top, self.end = self.memory.reserve(size), 0, size
            self.regions += 1
        self.top += need
        return self.region, self.top - need

    def _remember(self, size: int, region: int, offset: int) -> None:
        bisect.insort(self.free, (size, region, offset))
        self.starts[region, offset], self.ends[region, offset + size] = size, offset

    def _forget(self, size: int, region: int, offset: int) -> None:
        self.free.pop(bisect.bisect_left(self.free, (size, region, offset)))
        del self.starts[region, offset], self.ends[region, offset + size]


class Fragments:
    """Stubs of one kind in the pages of jitted code."""

    def __init__(self, memory: Memory, code: CodeHeap) -> None:
        self.memory, self.code, self.settings = memory, code, code.settings
        self.region, self.at, self.end = -1, 0, 0

    def stub(self, size: int) -> None:
        if self.at + size > self.end:
            small = size < self.settings["fragment_small"]
            block = self.code.alloc(max(size, self.settings["fragment_chunk"]) if small else size)
            header = self.settings["code_header"]
            if header:
                self.memory.write(block.region, block.offset, header)
            self.region, self.at = block.region, block.offset + header
            self.end = self.at + block.size
        self.memory.write(self.region, self.at, size)
        self.at += size


class OwnHeaps:
    """Stubs in heaps of their own. All heaps of one region are reserved together when the first of them is used."""

    def __init__(self, memory: Memory, sizes: dict[str, int]) -> None:
        self.memory, self.sizes = memory, sizes
        self.heaps: dict[str, list[int]] = {}  # kind: region, where the next stub goes, end

    def stub(self, kind: str, size: int) -> None:
        if not self.heaps:
            pages = {k: -(-v // 4096) * 4096 for k, v in self.sizes.items()}
            region, offset = self.memory.reserve(sum(pages.values())), 0
            for k, v in pages.items():
                self.heaps[k] = [region, offset, offset + v]
                offset += v
        heap = self.heaps[kind]
        if heap[1] + size > heap[2]:
            heap[:] = [self.memory.reserve(max(size, self.memory.granule)), 0, max(size, self.memory.granule)]
        self.memory.commit(heap[0], heap[1], size)
        self.memory.write(heap[0], heap[1], size)
        heap[1] += size


class SlotHeap:
    """Slots of one kind in interleaved pages."""

    def __init__(self, memory: Memory, switches: Switches) -> None:
        self.memory, self.switches = memory, switches
        self.region, self.at, self.end, self.left = -1, 0, 0, 0

    def slot(self, size: int) -> bool:
        """False where the slot is larger than a page."""
        page = self.switches.stub_page
        if size > page:
            return False
        if self.left < size:
            if self.at + 2 * page > self.end:
                self.end = max(2 * page, self.memory.granule)
                self.region, self.at = self.memory.reserve(self.end), 0
            self.memory.commit(self.region, self.at, 2 * page)
            self.memory.write(self.region, self.at, page, self.switches.bypass)
            self.at, self.left = self.at + 2 * page, page
        self.left -= size
        return True


class _Placer:
    """Places the events of one trace."""

    def __init__(self, trace: Trace, switches: Switches) -> None:
        self.trace, self.switches, self.script = trace, switches, Script()
        self.memory = Memory(self.script, trace.settings["reserve_granule"])
        self.blocks: dict[str, Block] = {}
        self.named: dict[str, int] = {}
        self.views: dict[str, tuple[int, str]] = {}  # name: number, block
        self.numbers = list(range(VIEWS - 1, -1, -1))
        self.code: dict[str, CodeHeap] = {}
        self.fragments: dict[str, Fragments] = {}
        self.slots: dict[str, SlotHeap] = {}
        self.own = OwnHeaps(self.memory, self._kinds("own."))
        self.apart = {kind: OwnHeaps(self.memory, {kind: size}) for kind, size in self._kinds("apart.").items()}

    def _kinds(self, prefix: str) -> dict[str, int]:
        return {k.removeprefix(prefix): v for k, v in self.trace.settings.items() if k.startswith(prefix)}

    def error(self, event: Event, problem: str) -> ManifestError:
        return self.trace.error(event, f"{event.word}: {problem}")

    def block(self, event: Event) -> Block:
        found = self.blocks.get(event.name)
        if found is None:
            raise self.error(event, f"expected a block that was allocated and not freed, found {event.name!r}")
        return found

    def inside(self, event: Event) -> Block:
        block = self.block(event)
        if event.offset + event.bytes > block.size:
            raise self.error(
                event,
                f"expected a range inside the {block.size} bytes of {event.name!r}, "
                f"found {event.bytes} bytes from {event.offset} on",
            )
        return block

    def heap(self, name: str) -> CodeHeap:
        if name not in self.code:
            self.code[name] = CodeHeap(self.memory, self.trace.settings)
        return self.code[name]

    def region(self, e: Event) -> None:
        if e.name in self.named:
            raise self.error(e, f"expected a new name, found {e.name!r}, which is a region already")
        self.named[e.name] = self.memory.reserve(e.bytes)

    def release(self, e: Event) -> None:
        region = self.named.pop(e.name, None)
        if region is None:
            raise self.error(e, f"expected a region that is reserved, found {e.name!r}")
        self.script.steps.append(f"release {region}")

    def alloc(self, e: Event) -> None:
        if e.name in self.blocks:
            raise self.error(e, f"expected a new name, found {e.name!r}, which is a live block")
        block = self.blocks[e.name] = self.heap(e.heap).alloc(e.bytes)
        self.memory.write(block.region, block.offset + self.trace.settings["code_header"], e.bytes)

    def trim(self, e: Event) -> None:
        block = self.block(e)
        if e.bytes > block.size:
            raise self.error(e, f"expected at most the {block.size} bytes of {e.name!r}, found {e.bytes}")
        self._unviewed(e)
        keep = block.heap.rounded(e.bytes)
        if keep < block.taken:
            block.heap.release(block.region, block.offset + keep, block.taken - keep)
        block.taken, block.size = keep, e.bytes

    def free(self, e: Event) -> None:
        block = self.block(e)
        self._unviewed(e)
        del self.blocks[e.name]
        block.heap.release(block.region, block.offset, block.taken)

    def _unviewed(self, e: Event) -> None:
        for view, (_, name) in self.views.items():
            if name == e.name:
                raise self.error(e, f"expected a block without an open view, found {e.name!r}, which {view!r} writes")

    def write(self, e: Event) -> None:
        block = self.inside(e)
        self.memory.write(block.region, block.offset + self.trace.settings["code_header"] + e.offset, e.bytes)

    def map(self, e: Event) -> None:
        block = self.inside(e)
        if e.view in self.views:
            raise self.error(e, f"expected a view that is not open, found {e.view!r}")
        if not self.numbers:
            raise self.error(e, f"expected at most {VIEWS} views open at a time")
        number = self.numbers.pop()
        self.views[e.view] = (number, e.name)
        at = block.offset + self.trace.settings["code_header"] + e.offset
        self.memory.viewed(at, e.bytes)
        self.script.steps.append(f"open {number} {block.region} {at} {e.bytes}")

    def unmap(self, e: Event) -> None:
        number, _ = self.views.pop(e.view, (-1, ""))
        if number < 0:
            raise self.error(e, f"expected a view that is open, found {e.view!r}")
        self.numbers.append(number)
        self.script.steps.append(f"close {number}")

    def stub(self, e: Event) -> None:
        if e.heap in self.apart:
            self.apart[e.heap].stub(e.heap, e.bytes)
        elif e.heap in self.own.sizes and not self.switches.share:
            self.own.stub(e.heap, e.bytes)
        else:
            if e.heap not in self.fragments:
                self.fragments[e.heap] = Fragments(self.memory, self.heap(""))
            self.fragments[e.heap].stub(e.bytes)

    def slot(self, e: Event) -> None:
        if e.heap not in self.slots:
            self.slots[e.heap] = SlotHeap(self.memory, self.switches)
        if not self.slots[e.heap].slot(e.bytes):
            raise self.error(e, f"expected at most the {self.switches.stub_page} bytes of a stub page, found {e.bytes}")


def place(trace: Trace, switches: Switches) -> Script:
    """Raises ManifestError, naming the line, where an event does not fit those before it."""
    placer = _Placer(trace, switches)
    act = {name: getattr(placer, name) for name in {e.word for e in trace.events}}
    for event in trace.events:
        act[event.word](event)
    if placer.views:
        view = next(iter(placer.views))
        raise ManifestError(f"{trace.source}: expected every view to be closed at the end, {view!r} is open")
    return placer.script
