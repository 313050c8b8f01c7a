"""The audit's readers, on what the runners really wrote: fixtures/audit/*.log were recorded with `audit --log`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from execmem_cts.audit import constants, plugin, qemu_strace, strace
from execmem_cts.audit.events import Born, Call, Descriptor, Enter, Event, Gone, Leave, Moved
from execmem_cts.audit.model import Model

RECORDED = Path(__file__).resolve().parent / "fixtures" / "audit"


def told(name: str) -> list[Event]:
    reader = strace.Reader()
    events = [event for line in (RECORDED / name).read_text().splitlines() for event in reader.feed(line)]
    assert reader.strange == 0, reader.last_strange
    return events


def modelled(events: list[Event]) -> Model:
    model = Model(4096)
    for event in events:
        model.feed(event)
    model.finish()
    return model


def one(line: str) -> list[Event]:
    return list(strace.Reader().feed(line))


# ---- strace ----


def test_every_line_of_a_varied_program_is_understood() -> None:
    events = told("calls.log")
    entered = Counter(event.call.name for event in events if isinstance(event, Enter))
    assert entered["mmap"] > 10 and entered["clone"] == 3 and entered["execve"] == 3
    assert {"shmget", "shmat", "shmdt", "brk", "dup", "dup2", "fcntl", "close_range", "memfd_create"} <= set(entered)
    assert Counter(type(event) for event in events)[Moved] == 1
    model = modelled(events)
    kinds = Counter(finding.kind for finding in model.findings)
    assert kinds["rwx"] == 3 and kinds["process-memory"] == 1, kinds
    assert not model.incomplete and model.counts["processes"] == 3 and model.root_status == 0


def test_threads_whose_calls_cross() -> None:
    events = told("threads.log")
    text = (RECORDED / "threads.log").read_text()
    assert "<unfinished ...>" in text and "resumed>" in text
    model = modelled(events)
    found = [(f.kind, f.step.process == f.step.thread) for f in model.findings if f.kind == "rwx"]
    assert found == [("rwx", False), ("rwx", False)]  # by the two threads, not the leader
    assert not model.incomplete and model.root_status == 3


def test_luajit_toggles_its_code() -> None:
    text = (RECORDED / "luajit.log").read_text()
    model = modelled(told("luajit.log"))
    toggles = [line for line in text.splitlines() if "mprotect(" in line and "PROT_READ|PROT_EXEC) = 0" in line]
    found = [finding for finding in model.findings if finding.kind == "w-then-x"]
    assert len(found) == len(toggles) > 0
    assert [finding.step.text for finding in found] == [line.split(" ", 2)[2] for line in toggles]


@pytest.mark.parametrize(
    ("line", "call"),
    [
        (
            "1 1.5 mmap(NULL, 8192, PROT_READ|PROT_EXEC, MAP_SHARED|MAP_NORESERVE, 3</a b, c>(deleted), 0x1000) = 0x9000",
            ("mmap", (0, 8192, 5, 0x4001, Descriptor(3, "/a b, c", True), 0x1000)),
        ),
        ("1 1.5 mmap2(NULL, 4096, PROT_NONE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x9000", ("mmap", (0, 4096, 0, 0x22, Descriptor(-1), 0))),
        ("1 1.5 mprotect(0x9000, 4096, PROT_READ|0x10 /* PROT_??? */) = 0", ("mprotect", (0x9000, 4096, 0x11))),
        ("1 1.5 pkey_mprotect(0x9000, 4096, PROT_READ, -1) = 0", ("pkey_mprotect", (0x9000, 4096, 1, -1))),
        ("1 1.5 memfd_create(\"a\\74b,\\\"\", MFD_CLOEXEC) = 3", ("memfd_create", ('a<b,"', 1))),
        ('1 1.5 openat(AT_FDCWD</tmp>, "x, y", O_RDWR|O_CREAT, 0600) = 3</tmp/x, y>', ("open", ("x, y", 0o102))),
        ('1 1.5 openat2(AT_FDCWD, "x", {flags=O_RDWR|O_CREAT, mode=0600, resolve=0}, 24) = 3', ("open", ("x", 0o102))),
        ('1 1.5 execveat(3</tmp>, "x", ["x"], 0x7ff /* 3 vars */, 0) = 0', ("execve", ("x",))),
        ("1 1.5 close(3<socket:[77]>) = 0", ("close", (Descriptor(3, "socket:[77]"),))),
        ("1 1.5 vfork() = 7", ("clone", (0x4100,))),
        ("1 1.5 clone3({flags=CLONE_VM|CLONE_THREAD, exit_signal=0} => {parent_tid=[7]}, 88) = 7", ("clone", (0x10100,))),
        (
            "1 1.5 mmap(NULL, 4096, PROT_READ, MAP_SHARED|MAP_HUGETLB|21<<MAP_HUGE_SHIFT, 3</dev/hugepages/x>, 0) = 0x9000",
            ("mmap", (0, 4096, 1, 1 | 0x40000 | 21 << 26, Descriptor(3, "/dev/hugepages/x"), 0)),
        ),
        ("1.5 munmap(0x9000, 4096) = 0", ("munmap", (0x9000, 4096))),
    ],
)  # fmt: skip
def test_line(line: str, call: tuple[str, tuple[object, ...]]) -> None:
    entered, left = one(line)
    assert isinstance(entered, Enter) and isinstance(left, Leave)
    assert (entered.call.name, entered.call.args) == call
    assert entered.call.text == line.split(" ", 1 if line.startswith("1.5") else 2)[-1].rpartition(" = ")[0].rstrip()


def test_results() -> None:
    failed = one("1 1.5 mmap(NULL, 0, PROT_NONE, MAP_PRIVATE, 3, 0) = -1 EINVAL (Invalid argument)")[1]
    assert isinstance(failed, Leave) and (failed.result, failed.error) == (None, "EINVAL")
    opened = one('1 1.5 open("/x (y) = 3", O_RDONLY) = 4</x (y) = 3>')[1]
    assert isinstance(opened, Leave) and opened.returned == Descriptor(4, "/x (y) = 3")
    never = one("1 1.5 exit_group(3) = ?")[1]
    assert isinstance(never, Leave) and (never.result, never.error) == (None, "")
    flags = one("1 1.5 fcntl(6</x>, F_GETFD) = 0x1 (flags FD_CLOEXEC)")[1]
    assert isinstance(flags, Leave) and flags.result == 1


def test_ends() -> None:
    assert one("1 1.5 +++ exited with 3 +++") == [Gone(1, 1.5, 3)]
    assert one("1 1.5 +++ killed by SIGSEGV (core dumped) +++") == [Gone(1, 1.5, -11)]
    assert one("1 1.5 --- SIGSEGV {si_signo=SIGSEGV} ---") == []


@pytest.mark.parametrize("line", ["nonsense", "1 1.5 mmap(NULL, 40", "1 1.5 +++ odd +++", "1 1.5 <... mmap resumed>"])
def test_a_line_that_is_not_understood_is_counted(line: str) -> None:
    reader = strace.Reader()
    assert list(reader.feed(line)) == []
    assert reader.strange == 1 and reader.last_strange == line


def test_numbers() -> None:
    assert constants.value("MAP_PRIVATE|MAP_HUGETLB|21<<MAP_HUGE_SHIFT") == 2 | 0x40000 | 21 << 26
    assert constants.number("0600") == 0o600 and constants.number("-1") == -1 and constants.number("0x10") == 16
    assert constants.number("PROT_READ") is None and constants.number("10") == 10 and constants.number("0") == 0


# ---- The emulator's -strace ----


def emulated(name: str) -> tuple[qemu_strace.Reader, Model]:
    reader, model = qemu_strace.Reader(), Model(4096)
    for line in (RECORDED / name).read_text().splitlines():
        for event in reader.feed(line):
            model.feed(event)
    reader.finish()
    model.finish()
    return reader, model


def test_strace_of_a_single_thread() -> None:
    reader, model = emulated("qemu-arm32.log")
    assert not reader.incomplete and not model.incomplete
    assert [finding.kind for finding in model.findings] == ["view-at-end"]
    assert model.root_status == 0


def test_strace_of_threads_is_incomplete() -> None:
    reader, _ = emulated("qemu-threads.log")
    assert "threads or processes, which -strace does not tell apart" in reader.incomplete


def test_strace_counts_mmap2_in_units_and_knows_errors() -> None:
    reader = qemu_strace.Reader()
    entered, _ = reader.feed("7 mmap2(NULL,65536,PROT_EXEC|PROT_READ,MAP_SHARED,4,16) = 0x3ffef000")
    assert isinstance(entered, Enter) and entered.call.args[5] == 65536
    _, left = reader.feed("7 mprotect(0x3ffef001,65536,PROT_EXEC) = -1 errno=22 (Invalid argument)")
    assert isinstance(left, Leave) and left.result is None and left.error == "EINVAL"


def test_strace_says_that_exec_is_not_followed() -> None:
    reader = qemu_strace.Reader()
    assert list(reader.feed('7 execve("/bin/true",{"true",NULL})')) == []
    reader.finish()
    assert list(reader.incomplete) == ["a program started by exec, which this emulator does not follow"]


# ---- The plugin's records ----

CALLS = {
    "mmap2": 192,
    "munmap": 91,
    "mprotect": 125,
    "clone": 120,
    "execve": 11,
    "exit": 1,
    "exit_group": 248,
    "ipc": 117,
}


def record(
    kind: int, number: int, *arguments: int, thread: int = 5, process: int = 5, parent: int = 4, **more: object
) -> plugin.Record:
    args = (*arguments, *[0] * (6 - len(arguments)))
    result, file = more.get("result", 0), more.get("file")
    assert isinstance(result, int) and (file is None or isinstance(file, Descriptor))
    return plugin.Record(kind, 1.0, process, parent, thread, number, result, args, file)


def read(*records: plugin.Record, pointer_bytes: int = 4) -> tuple[plugin.Reader, list[Event]]:
    reader = plugin.Reader(CALLS, pointer_bytes)
    return reader, list(reader.events(records))


def test_a_record_is_what_the_plugin_writes(tmp_path: Path) -> None:
    assert plugin.RECORD.size == 256
    log = tmp_path / "log"
    plugin.make_log(log, 4)
    with log.open("r+b") as stream:
        stream.write(plugin.RECORD.pack(0, 3, *[0] * 6, *[0] * 11, b""))
        stream.write(
            plugin.RECORD.pack(
                1, 2 * 10**9, 5, 4, 6, 0, 192, 0, 0, 4096, 5, 1, 3, 0, 77, 8, 1, 0, 1, b"/memfd:x (deleted)"
            )
        )
    found, lost = plugin.records(log)
    assert lost == 2  # begun, and never finished
    assert found == [
        plugin.Record(1, 2.0, 5, 4, 6, 192, 0, (0, 4096, 5, 1, 3, 0), Descriptor(-1, "/memfd:x", True, "8:1:77"))
    ]


def test_numbers_have_the_width_of_the_port() -> None:
    wide = 0xFFFFFFFF_00000000
    _, events = read(
        record(1, 192, wide, 4096, 5, 1, 3, 16, file=Descriptor(-1, "/memfd:x", True, "8:1:77")),
        record(2, 192, result=-0x11000),  # 0xfffef000, sign-extended
        record(1, 192, 0, 4096, 3, 0x22, 0xFFFFFFFF, 0),
        record(2, 192, result=-12),
    )
    born, entered, left, anonymous, failed = events
    assert isinstance(born, Born) and not born.shares
    assert isinstance(entered, Enter) and entered.call.args == (
        0,
        4096,
        5,
        1,
        Descriptor(3, "/memfd:x", True, "8:1:77"),
        65536,
    )
    assert entered.call.text == "mmap(0x0, 0x1000, PROT_READ|PROT_EXEC, MAP_SHARED, 3</memfd:x>(deleted), 0x10000)"
    assert isinstance(left, Leave) and left.result == 0xFFFEF000
    assert isinstance(anonymous, Enter) and anonymous.call.args[4] == -1
    assert isinstance(failed, Leave) and failed.error == "ENOMEM"


def test_threads_and_children_are_told_by_their_process() -> None:
    reader, events = read(
        record(1, 120, 0x10F00),
        record(1, 125, 0x9000, 4096, 5, thread=6),
        record(1, 120, 0x4111, thread=6),
        record(2, 120, result=0, thread=9, process=9, parent=5),
        record(1, 11, thread=9, process=9, parent=5),
        record(1, 248, 3),
    )
    assert [event for event in events if isinstance(event, Born)] == [
        Born(5, 1.0, 5, -1, False),
        Born(6, 1.0, 5, 5, True),
        Born(9, 1.0, 9, 5, False),
    ]
    calls = [event.call for event in events if isinstance(event, Enter)]
    assert calls[2] == Call("clone", (0x4011,), "clone(0x4111)")  # this emulator's vfork copies
    assert {event.task for event in events if isinstance(event, Gone)} == {5, 6}
    assert list(reader.incomplete) == ["a program started by exec, which this emulator does not follow"]


def test_a_call_that_the_plugin_cannot_read_makes_it_incomplete() -> None:
    reader, _ = read(record(1, 117, 21))
    assert list(reader.incomplete) == ["a call of ipc, whose arguments the plugin cannot read"]
