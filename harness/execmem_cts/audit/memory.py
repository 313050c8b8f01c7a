"""What calls do to the address space of their thread, and what of that is found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from .aliases import Aliases
from .events import (
    MADV_DOFORK,
    MADV_DONTFORK,
    MAP_ANONYMOUS,
    MAP_FIXED,
    MAP_FIXED_NOREPLACE,
    MAP_HUGE_SHIFT,
    MAP_HUGETLB,
    MAP_SHARED,
    MAP_TYPE,
    MREMAP_DONTUNMAP,
    PROT_EXEC,
    PROT_READ,
    PROT_WRITE,
    SHM_EXEC,
    SHM_RDONLY,
    Call,
    Descriptor,
    Enter,
    Leave,
)
from .files import Descriptors, File, Files
from .kinds import Finding, Step
from .partial import changed_below, is_doubtful
from .space import HISTORY, Mapping, Piece, Space

RWX = PROT_WRITE | PROT_EXEC
HUGE_PAGE = 21  # log2 of the usual huge page, where a call does not name one
KEEP = 100_000  # findings kept; more are counted


@dataclass
class Task:
    """A thread."""

    number: int
    process: int
    space: Space
    descriptors: Descriptors
    pending: Enter | None = None
    applied: bool = False  # the pending call's effect was seen before its return
    made: int = 0  # the child that the pending call is taken to have made


@dataclass
class Report:
    """What one call brought, until it is known which step it is."""

    touched: list[Mapping] = field(default_factory=list)
    found: list[tuple[str, Piece, str]] = field(default_factory=list)


class Memory:
    """The state of an audit, and what calls do to the memory of a process."""

    def __init__(self, page_size: int, judged_by: int = 0) -> None:
        """Ranges are of pages of `page_size` bytes, as the kernel makes them; `judged_by`, where it is given, is the page
        size of which lengths and file offsets must be multiples.
        """
        self.page = page_size
        self.judged_by = judged_by or page_size
        self.files = Files()
        self.aliases = Aliases()
        self.tasks: dict[int, Task] = {}
        self.findings: list[Finding] = []
        self.counts: Counter[str] = Counter()  # calls, processes, threads, dropped findings
        self.incomplete: Counter[str] = Counter()  # reason -> how often
        self._mappings = 0
        self._step = Step(0, None, 0, 0, "")
        self._shared_memory: dict[int, tuple[int, File]] = {}  # System V: id -> size, memory

    def _half_done(self, task: Task, call: Call, error: str) -> Call | None:
        """The part of a failed mprotect that was done all the same, as a call of its own; None where there is none."""
        start, end = self._range(call)
        pieces = [piece.cut(start, end) for piece in task.space.within(start, end)]
        if (pieces or call.number(2) & PROT_EXEC) and is_doubtful(pieces, start, end, error):
            self.incomplete[f"mprotect failed with {error}, perhaps half done"] += 1
        below = changed_below(pieces, start, end, error)
        return replace(call, args=(start, below - start, *call.args[2:])) if below > start else None

    def _settle(self, task: Task, report: Report) -> None:
        """After the call: what it found is told with the state that it left."""
        step = self._step
        self._add(self.aliases.update(task.space, report.touched, step))
        for kind, piece, detail in report.found:
            if kind == "published" and self.aliases.is_open(task.space, piece.mapping):
                continue  # told as an alias when that closes
            self._add([Finding(kind, step, piece.place(), piece.mapping.number, detail)])

    def _add(self, findings: Iterable[Finding]) -> None:
        for finding in findings:
            if len(self.findings) >= KEEP:
                self.counts["dropped"] += 1
            else:
                self.findings.append(finding)

    def _mapping(self, file: File | None, shared: bool) -> Mapping:
        self._mappings += 1
        return Mapping(self._mappings, self._step, file, shared)

    def _up(self, value: int) -> int:
        return -(-value // self.page) * self.page

    def _range(self, call: Call) -> tuple[int, int]:
        """Start and end of what a call with an address and a length affects."""
        start = call.number(0) // self.page * self.page
        return start, self._up(call.number(0) + call.number(1))

    def _unaligned(self, call: Call, *indices: int) -> list[int]:
        return [call.number(i) for i in indices if call.number(i) % self.judged_by]

    def _sub_page(
        self, call: Call, report: Report, pieces: Sequence[Piece], *indices: int, executable: bool = False
    ) -> None:
        """A call with arguments that the kernel rounds. What it touches says how grave that is."""
        values = self._unaligned(call, *indices)
        piece = next(iter(pieces), None)
        if not values or piece is None:
            return
        grave = executable or any(p.executable or _is_view(p) for p in pieces)
        if call.name == "mmap" and piece.mapping.file is not None and not piece.mapping.shared:
            grave = False  # to the end of the file, as loaders map
        shown = ", ".join(f"{value:#x}" for value in values)
        kind = "sub-page" if grave else "sub-page-data"
        report.found.append((kind, piece, f"{call.name} with {shown}, page size {self.judged_by:#x}"))

    def _map(self, task: Task, piece: Piece, fixed: bool, report: Report) -> None:
        """Puts a new mapping in, and says what of it is new and bad."""
        space = task.space
        if not fixed and space.within(piece.start, piece.end):
            self._catch_up(task, piece)
            if space.within(piece.start, piece.end):
                self.incomplete["the kernel mapped where the model has a mapping already"] += 1
        report.touched += [p.mapping for p in space.take(piece.start, piece.end)]
        space.put(piece)
        report.touched.append(piece.mapping)
        self._became(piece, 0, report)

    def _became(self, piece: Piece, before: int, report: Report) -> None:
        """Judges a piece whose protection was `before` and is another now."""
        file, bits = piece.mapping.file, piece.protection & RWX
        fresh = bits & ~before
        end = piece.offset + piece.end - piece.start
        if bits == RWX and fresh:
            report.found.append(("rwx", piece, ""))
        elif fresh & PROT_EXEC:
            mapped_now = piece.mapping.origin is self._step
            if piece.written:
                report.found.append(("w-then-x", piece, ""))
            elif not mapped_now:
                report.found.append(("x-by-mprotect", piece, ""))
                if piece.mapping.origin is None:
                    self.incomplete["memory of exec's made executable: had it been writable? That is not seen"] += 1
            if file is not None and file.was_written(piece.offset, end):
                detail = f"{file.label} from {piece.offset:#x} to {end:#x}"
                report.found.append(("published", piece, detail))
        if file is not None:
            file.executed = file.executed or piece.executable
            if piece.writable and piece.mapping.shared:
                file.note_written(piece.offset, end)
        piece.written = piece.written or piece.writable

    def _catch_up(self, task: Task, piece: Piece) -> None:
        """Another thread's unmapping has happened although its return was not seen: the kernel reused the addresses."""
        for other in self.tasks.values():
            if other.space is not task.space or other.pending is None or other.applied:
                continue
            call = other.pending.call
            if call.name != "munmap":
                continue
            start, end = self._range(call)
            if start < piece.end and piece.start < end:
                self._settle(task, Report(touched=[p.mapping for p in task.space.take(start, end)]))
                other.applied = True

    def _protection(self, task: Task, bits: int) -> int:
        return bits | PROT_EXEC if task.space.read_implies_exec and bits & PROT_READ else bits

    def _on_mmap(self, task: Task, call: Call, event: Leave, report: Report) -> None:
        assert event.result is not None
        length, flags, descriptor = call.number(1), call.number(3), call.args[4]
        shared = bool(flags & MAP_SHARED and flags & MAP_TYPE)
        file: File | None = None
        if flags & MAP_ANONYMOUS or not isinstance(descriptor, Descriptor):
            file = self.files.fresh("shared anonymous memory") if shared else None
        else:
            file = task.descriptors.file(descriptor)
            if file.device:
                file = self.files.fresh(f"shared {file.label}") if shared else None
        end = event.result + self._up(length)
        if flags & MAP_HUGETLB:
            huge = 1 << (flags >> MAP_HUGE_SHIFT & 63 or HUGE_PAGE)
            end = event.result + -(-length // huge) * huge
        bits = self._protection(task, call.number(2))
        piece = Piece(event.result, end, self._mapping(file, shared), call.number(5), bits, bool(bits & PROT_WRITE))
        piece.offset = 0 if flags & MAP_ANONYMOUS else piece.offset
        self._map(task, piece, bool(flags & MAP_FIXED) and not flags & MAP_FIXED_NOREPLACE, report)
        # A hint is a wish, and what the kernel makes of it shows in the result.
        self._sub_page(call, report, [piece], 1, 5)

    def _on_munmap(self, task: Task, call: Call, event: Leave, report: Report) -> None:
        gone = task.space.take(*self._range(call))
        report.touched += [p.mapping for p in gone]
        self._sub_page(call, report, gone, 1)

    def _on_mprotect(self, task: Task, call: Call, event: Leave, report: Report) -> None:
        start, end = self._range(call)
        bits = self._protection(task, call.number(2))
        key = call.number(3) if call.name == "pkey_mprotect" else -1
        pieces = self._known(task.space, start, end)
        executable = any(piece.executable for piece in pieces)
        for piece in pieces:
            before, piece.protection = piece.protection & RWX, bits
            at = len(report.found)
            self._became(piece, before, report)
            if key >= 0:
                said = f"under protection key {key}: threads that have not opened it cannot write; that is not seen"
                report.found[at:] = [(kind, p, said) for kind, p, _ in report.found[at:]]
            report.touched.append(piece.mapping)
        self._sub_page(call, report, pieces, 1, executable=executable)
        for piece in pieces:
            # What was found shows the piece as it was: its history gets this call only afterwards.
            piece.history = (*piece.history, self._step)[-HISTORY:]
        report.found = [
            (kind, replace(piece, history=piece.history[:-1]), detail) for kind, piece, detail in report.found
        ]

    _on_pkey_mprotect = _on_mprotect

    def _known(self, space: Space, start: int, end: int) -> list[Piece]:
        """The pieces of a range, cut at its ends, with what exec had mapped there put in: it was never seen."""
        taken = space.take(start, end)
        whole, at = [], start
        for piece in [*taken, None]:
            upto = piece.start if piece is not None else end
            if at < upto:
                self._mappings += 1
                whole.append(Piece(at, upto, Mapping(self._mappings, None, None, False), 0, 0, False))
            if piece is not None:
                whole.append(piece)
                at = piece.end
        for piece in whole:
            space.put(piece)
        return whole

    def _on_mremap(self, task: Task, call: Call, event: Leave, report: Report) -> None:
        assert event.result is not None
        space, old, new = task.space, call.number(0), event.result
        old_length, length, flags = self._up(call.number(1)), self._up(call.number(2)), call.number(3)
        kept = bool(flags & MREMAP_DONTUNMAP)
        if not old_length:  # a second mapping of shared memory
            source = space.within(old, old + 1)
            if not source:
                return
            first = source[0].cut(old, source[0].end)
            first.mapping = self._mapping(first.mapping.file, first.mapping.shared)
            moved, kept = [replace(first, start=old, end=old + length, history=())], True
        elif kept:
            moved = [p.cut(old, old + old_length) for p in space.within(old, old + old_length)]
        else:
            moved = space.take(old, old + old_length)
        if not moved:  # of exec's own mappings
            self._mappings += 1
            moved = [Piece(old, old + old_length, Mapping(self._mappings, None, None, False), 0, 0, False)]
        end = max(p.end for p in moved)
        if length > old_length and old_length and end == old + old_length:
            moved[-1] = replace(moved[-1], end=old + length)
        report.touched += [p.mapping for p in space.take(new, new + length)]
        for piece in moved:
            low, high = piece.start, min(piece.end, old + length)
            report.touched.append(piece.mapping)
            if low < high:
                put = replace(piece, start=low - old + new, end=high - old + new)
                put.history = (*put.history, self._step)[-HISTORY:]
                if kept and old_length:  # what stays behind is another generation, empty
                    put.mapping = self._mapping(piece.mapping.file, piece.mapping.shared)
                space.put(put)
                report.touched.append(put.mapping)
                if not old_length:
                    self._became(put, 0, report)
        self._sub_page(call, report, moved, 1, 2)

    def _on_remap_file_pages(self, task: Task, call: Call, event: Leave, report: Report) -> None:
        start, end = self._range(call)
        taken = task.space.take(start, end)
        for piece in taken:
            report.touched.append(piece.mapping)
            mapping = self._mapping(piece.mapping.file, piece.mapping.shared)
            offset = call.number(3) * self.page + piece.start - start
            put = replace(piece, mapping=mapping, offset=offset, written=piece.writable, history=())
            task.space.put(put)
            report.touched.append(mapping)
            self._became(put, 0, report)

    def _on_madvise(self, task: Task, call: Call, event: Leave, report: Report) -> None:
        start, end = self._range(call)
        if call.number(2) in (MADV_DONTFORK, MADV_DOFORK):
            for piece in task.space.take(start, end):
                task.space.put(replace(piece, forked=call.number(2) == MADV_DOFORK))
        self._sub_page(call, report, task.space.within(start, end), 1)

    def _on_brk(self, task: Task, call: Call, event: Leave, report: Report) -> None:
        assert event.result is not None
        space, end = task.space, self._up(event.result)
        if not space.heap_start:
            space.heap_start = space.heap_end = end
        if end > space.heap_end:
            before = space.within(space.heap_end - 1, space.heap_end)
            heap = before[0].mapping if before else self._mapping(None, False)
            bits = self._protection(task, PROT_READ | PROT_WRITE)
            self._map(task, Piece(space.heap_end, end, heap, 0, bits, True), False, report)
        elif end < space.heap_end:
            space.take(end, space.heap_end)
        space.heap_end = end

    # ---- System V shared memory ----

    def _on_shmget(self, task: Task, call: Call, event: Leave, report: Report) -> None:
        assert event.result is not None
        known = self._shared_memory.get(event.result)
        if known is None or call.number(1):
            file = known[1] if known else self.files.fresh(f"shared memory segment {event.result}")
            self._shared_memory[event.result] = (max(call.number(1), known[0] if known else 0), file)

    def _on_shmat(self, task: Task, call: Call, event: Leave, report: Report) -> None:
        assert event.result is not None
        number, flags = call.number(0), call.number(2)
        if number not in self._shared_memory:
            self.incomplete["a shared memory segment that was made elsewhere: its size is not known"] += 1
            self._shared_memory[number] = (self.page, self.files.fresh(f"shared memory segment {number}"))
        size, file = self._shared_memory[number]
        bits = PROT_READ | (0 if flags & SHM_RDONLY else PROT_WRITE) | (PROT_EXEC if flags & SHM_EXEC else 0)
        bits = self._protection(task, bits)
        mapping = self._mapping(file, True)
        end = event.result + self._up(size)
        self._map(task, Piece(event.result, end, mapping, 0, bits, bool(bits & PROT_WRITE)), True, report)

    def _on_shmdt(self, task: Task, call: Call, event: Leave, report: Report) -> None:
        found = task.space.within(call.number(0), call.number(0) + 1)
        for piece in task.space.of_file(found[0].mapping.file) if found and found[0].mapping.file else ():
            if piece.mapping is found[0].mapping:
                task.space.take(piece.start, piece.end)
                report.touched.append(piece.mapping)


def _is_view(piece: Piece) -> bool:
    """Of a file that was mapped executable, and not a copy of it."""
    return piece.mapping.shared and piece.mapping.file is not None and piece.mapping.file.executed
