"""Events in, findings out: which threads share which address space, and what each call does to it.

Effects are applied when a call has returned, because only then its result is known. Of two calls that overlap in time,
strace may show the later one first; where the kernel has handed out an address that another thread is just unmapping,
that unmapping has happened. Anything else that does not fit is counted, and makes the audit incomplete rather than wrong.

Threads, processes and descriptors are here, memory is in memory.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from .events import (
    CLONE_FILES,
    CLONE_THREAD,
    CLONE_VM,
    O_ACCMODE,
    READ_IMPLIES_EXEC,
    Born,
    Call,
    Enter,
    Event,
    Leave,
    Moved,
)
from .files import Descriptors
from .kinds import Finding, Place, Step
from .memory import Memory, Report, Task
from .partial import ERRORS
from .space import Piece, Space

BOOKKEEPING = {"open", "memfd_create", "close", "close_range", "dup", "dup2", "dup3", "fcntl", "shmget"}


class Model(Memory):
    """Feed it events in the order in which the runner tells them, then `finish`."""

    def __init__(self, page_size: int, image: Callable[[str], Iterable[str]] | None = None, judged_by: int = 0) -> None:
        """`image` says what is wrong with a program file that exec names (see `elf.unsafe_segments`); the rest is
        `Memory`'s.
        """
        super().__init__(page_size, judged_by)
        self.image = image or (lambda path: ())
        self.root: int | None = None
        self.root_status: int | None = None
        self._start: float | None = None
        self._now: float | None = None
        self._waiting: dict[int, list[Event]] = {}

    # ---- Threads ----

    def feed(self, event: Event) -> None:
        if event.time is not None:
            self._start = event.time if self._start is None else self._start
            self._now = event.time - self._start
        if isinstance(event, Born):
            self._born(event)
            return
        task = self.tasks.get(event.task)
        if task is None:
            task = self._unknown(event)
            if task is None:
                self._waiting.setdefault(event.task, []).append(event)
                return
        if isinstance(event, Enter):
            task.pending, task.applied, task.made = event, False, 0
        elif isinstance(event, Leave):
            self._leave(task, event)
        elif isinstance(event, Moved):
            self._moved(task, event.to)
        else:
            self._gone(task, event.status)

    def _first(self, number: int, process: int) -> Task:
        space = Space()
        space.tasks.add(number)
        self.counts["processes"] += 1
        self.counts["threads"] += 1
        self.tasks[number] = Task(number, process, space, Descriptors(self.files))
        return self.tasks[number]

    def _unknown(self, event: Event) -> Task | None:
        """A thread that was not heard of: the first of all, or one whose maker has not returned yet."""
        if self.root is None:
            self.root = event.task
            return self._first(event.task, event.task)
        makers = [
            t for t in self.tasks.values() if t.pending is not None and t.pending.call.name == "clone" and not t.made
        ]
        flags = {t.pending.call.number(0) for t in makers if t.pending is not None}
        if len(makers) == 1 or (
            len({id(t.space) for t in makers}) == 1 and len(flags) == 1 and flags.pop() & CLONE_THREAD
        ):
            assert makers[0].pending is not None
            makers[0].made = event.task
            return self._child(makers[0], makers[0].pending.call.number(0), event.task)
        return None

    def _child(self, parent: Task, flags: int, number: int) -> Task:
        """A thread or process that `parent` has made."""
        if flags & CLONE_VM:
            space = parent.space
        else:
            space = parent.space.copy()
            self.aliases.fork(parent.space, space)
        space.tasks.add(number)
        process = parent.process if flags & CLONE_THREAD else number
        descriptors = parent.descriptors if flags & CLONE_FILES else parent.descriptors.copy()
        self.counts["threads"] += 1
        self.counts["processes"] += process == number
        self.tasks[number] = Task(number, process, space, descriptors)
        return self.tasks[number]

    def _born(self, event: Born) -> None:
        if event.task in self.tasks:
            return
        parent = self.tasks.get(event.parent)
        if parent is None:
            if self.root is None:
                self.root = event.process
            self._first(event.task, event.process)
            return
        flags = CLONE_VM | CLONE_FILES | CLONE_THREAD if event.shares else 0
        self._child(parent, flags, event.task).process = event.process

    def _moved(self, task: Task, to: int) -> None:
        """exec by another thread: it takes over the leader's number, and all others are gone."""
        replaced = self.tasks.pop(to, None)
        if replaced is not None:
            replaced.space.tasks.discard(to)
        del self.tasks[task.number]
        task.space.tasks.discard(task.number)
        task.number = to
        task.space.tasks.add(to)
        self.tasks[to] = task

    def _gone(self, task: Task, status: int | None) -> None:
        if task.number == self.root:
            self.root_status = status
        self.tasks.pop(task.number, None)
        how = f"killed by signal {-status}" if status is not None and status < 0 else "the program ended"
        self._leave_space(task, how)

    def _leave_space(self, task: Task, how: str) -> None:
        task.space.tasks.discard(task.number)
        if not task.space.tasks:
            end = replace(self._step, time=self._now, process=task.process, thread=task.number, text=how)
            self._add(self.aliases.end(task.space, end, how))

    def processes(self) -> list[int]:
        """Those that live now, the first one of all first."""
        return sorted({task.process for task in self.tasks.values()}, key=lambda number: (number != self.root, number))

    def finish(self) -> None:
        """The runner has nothing more to tell. Whatever still lives is taken to end here."""
        for number, events in list(self._waiting.items()):
            self.incomplete["a thread or process whose beginning was not seen"] += 1
            self._first(number, number)
            self._waiting.pop(number)
            for event in events:
                if number in self.tasks:
                    self.feed(event)
        for task in list(self.tasks.values()):
            if task.space.tasks:
                self._leave_space(task, "the audit ended")
        self.tasks.clear()
        if self.files.guessed:
            self.incomplete[
                "a memory file known by its name alone, because its descriptor came in unseen"
            ] = self.files.guessed

    def note_image(self, path: str, unsafe: Iterable[str]) -> None:
        """Tells what is wrong with the file of the program that begins."""
        for detail in unsafe:
            place = Place(0, 0, None, path)
            self._mappings += 1
            self._add([Finding("rwx-image", self._step, place, self._mappings, f"{path}: {detail}")])

    # ---- Calls ----

    def _leave(self, task: Task, event: Leave) -> None:
        entered, task.pending = task.pending, None
        if entered is None:
            return  # the runner began to look in the middle of a call
        call = entered.call
        if event.error or event.result is None:
            if call.name not in ("mprotect", "pkey_mprotect") or event.error not in ERRORS:
                return
            cut = self._half_done(task, call, event.error)
            if cut is None:
                return
            call, event = cut, replace(event, result=-1)
        handler = getattr(self, f"_on_{call.name}", None)
        if handler is None:
            return
        self.counts["calls"] += call.name not in BOOKKEEPING
        assert event.result is not None
        value = f"{event.result:#x}" if event.result > 4096 else f"{event.result} {event.error}".rstrip()
        text = f"{call.text} = {value}"
        self._step = Step(self.counts["calls"], self._now, task.process, task.number, text)
        report = Report()
        if not task.applied:
            handler(task, call, event, report)
        self._settle(task, report)

    # ---- Processes ----

    def _on_clone(self, task: Task, call: Call, event: Leave, report: Report) -> None:
        assert event.result is not None
        if not event.result:
            return  # the child's own return
        if task.made not in (0, event.result) and not call.number(0) & CLONE_THREAD:
            self.incomplete["a process taken for another's child"] += 1
        if event.result not in self.tasks:
            self._child(task, call.number(0), event.result)
            step = self._step
            for waiting in self._waiting.pop(event.result, ()):
                self.feed(waiting)
            self._step = step

    def _on_execve(self, task: Task, call: Call, event: Leave, report: Report) -> None:
        path = str(call.args[0])
        self._leave_space(task, f"exec of {path}")
        space = Space()
        space.read_implies_exec = task.space.read_implies_exec
        space.tasks.add(task.number)
        task.space, task.descriptors = space, task.descriptors.after_exec()
        task.process = task.number
        self.counts["programs"] += 1
        self.note_image(path, self.image(path))

    def _on_personality(self, task: Task, call: Call, event: Leave, report: Report) -> None:
        if call.number(0) != 0xFFFFFFFF:
            task.space.read_implies_exec = bool(call.number(0) & READ_IMPLIES_EXEC)

    # ---- Descriptors ----

    def _on_open(self, task: Task, call: Call, event: Leave, report: Report) -> None:
        task.descriptors.opened(call, event.returned)
        name = event.returned.name if event.returned and event.returned.name else str(call.args[0])
        if call.number(1) & O_ACCMODE and Path(name).name == "mem" and name.startswith("/proc/"):
            piece = Piece(0, 0, self._mapping(self.files.named(name), False), 0, 0, False)
            report.found.append(("process-memory", piece, name))

    def _on_memfd_create(self, task: Task, call: Call, event: Leave, report: Report) -> None:
        task.descriptors.memory_file(call, event.returned)

    def _on_close(self, task: Task, call: Call, event: Leave, report: Report) -> None:
        task.descriptors.closed(call.number(0))

    def _on_close_range(self, task: Task, call: Call, event: Leave, report: Report) -> None:
        task.descriptors = task.descriptors.close_range(call)

    def _on_dup(self, task: Task, call: Call, event: Leave, report: Report) -> None:
        assert event.result is not None
        task.descriptors.duplicated(call, event.result)

    _on_dup2 = _on_dup3 = _on_fcntl = _on_dup
