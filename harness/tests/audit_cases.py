"""What the audit must make of short histories: strace's lines, less thread and time, and the kinds that come of them.

Each case is one rule of the model, from the side where it speaks or the one where it must be silent. Lines are of thread
100 unless they begin with another number and a blank; `pid` lines of strace are written in full.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from execmem_cts.audit import strace
from execmem_cts.audit.events import Event

EXEC = 'execve("./program", ["./program"], 0x7ffc0 /* 41 vars */) = 0'
END = ["exit_group(0) = ?", "+++ exited with 0 +++"]
RW, RX, RWX = "PROT_READ|PROT_WRITE", "PROT_READ|PROT_EXEC", "PROT_READ|PROT_WRITE|PROT_EXEC"
ANON = "MAP_PRIVATE|MAP_ANONYMOUS, -1, 0"
FILE = "3</memfd:code>(deleted)"
MEMFD = f'memfd_create("code", 0) = {FILE}'
VIEW = f"mmap(NULL, 4096, {RW}, MAP_SHARED, {FILE}, 0) = 0x10000"
CODE = f"mmap(NULL, 4096, {RX}, MAP_SHARED, {FILE}, 0) = 0x20000"
THREAD = "CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD|CLONE_SYSVSEM"


@dataclass(frozen=True)
class Case:
    name: str
    lines: tuple[str, ...]
    kinds: tuple[str, ...]
    incomplete: bool = False
    ended: bool = True


def case(name: str, lines: Iterable[str], *kinds: str, incomplete: bool = False, ended: bool = True) -> Case:
    return Case(name, tuple(lines), kinds, incomplete, ended)


def log(found: Case) -> list[str]:
    """The case as strace would write it: a line a millisecond."""
    lines = [EXEC, *found.lines, *(END if found.ended else [])]
    made = []
    for number, line in enumerate(lines):
        thread, what = re.match(r"^(?:(\d+) )?(.*)$", line, re.DOTALL).groups()  # type: ignore[union-attr]
        made.append(f"{thread or 100} {1000 + number / 1000:.6f} {what}")
    return made


def events(found: Case) -> Iterator[Event]:
    reader = strace.Reader()
    for line in log(found):
        yield from reader.feed(line)
    assert not reader.strange, reader.last_strange


CASES = (
    # ---- Writable and executable at once ----
    case("mapped rwx", [f"mmap(NULL, 4096, {RWX}, {ANON}) = 0x10000"], "rwx"),
    case("mapped rw", [f"mmap(NULL, 4096, {RW}, {ANON}) = 0x10000"]),
    case("mapping rwx failed", [f"mmap(NULL, 4096, {RWX}, {ANON}) = -1 EACCES (Permission denied)"]),
    case("made rwx", [f"mmap(NULL, 4096, {RX}, {ANON}) = 0x10000", f"mprotect(0x10000, 4096, {RWX}) = 0"], "rwx"),
    case(
        "made rwx again is nothing new",
        [f"mmap(NULL, 4096, {RWX}, {ANON}) = 0x10000", f"mprotect(0x10000, 4096, {RWX}) = 0"],
        "rwx",
    ),
    case("write and exec without read", [f"mmap(NULL, 4096, PROT_WRITE|PROT_EXEC, {ANON}) = 0x10000"], "rwx"),
    case("exec's own page made rwx", [f"mprotect(0x10000, 4096, {RWX}) = 0"], "rwx"),
    case(
        "rwx under a protection key",
        [f"mmap(NULL, 4096, PROT_NONE, {ANON}) = 0x10000", f"pkey_mprotect(0x10000, 4096, {RWX}, 1) = 0"],
        "rwx",
    ),
    case(
        "read implies exec",
        ["personality(READ_IMPLIES_EXEC) = 0", f"mmap(NULL, 4096, {RW}, {ANON}) = 0x10000"],
        "rwx",
    ),
    case("shared memory segment", ["shmget(0, 8192, 0600) = 5", "shmat(5, NULL, SHM_EXEC) = 0x10000"], "rwx"),
    case(
        "read-only shared memory segment",
        ["shmget(0, 8192, 0600) = 5", "shmat(5, NULL, SHM_EXEC|SHM_RDONLY) = 0x10000"],
    ),
    case(
        "one shared memory segment at two addresses",
        [
            "shmget(0, 8192, 0600) = 5",
            "shmat(5, NULL, SHM_EXEC|SHM_RDONLY) = 0x20000",
            "shmat(5, NULL, 0) = 0x10000",
            "shmdt(0x10000) = 0",
        ],
        "alias",
    ),
    case(
        "remapped in its file",
        [
            MEMFD,
            f"mmap(NULL, 8192, {RX}, MAP_SHARED, {FILE}, 0) = 0x20000",
            f"mmap(NULL, 4096, {RW}, MAP_SHARED, {FILE}, 0x5000) = 0x10000",
            "remap_file_pages(0x10000, 4096, 0, 1, 0) = 0",
        ],
        "view-at-end",
    ),
    # ---- Executable by mprotect after it was writable ----
    case("w then x", [f"mmap(NULL, 4096, {RW}, {ANON}) = 0x10000", f"mprotect(0x10000, 4096, {RX}) = 0"], "w-then-x"),
    case(
        "w then r then x",
        [
            f"mmap(NULL, 8192, {RW}, {ANON}) = 0x10000",
            "mprotect(0x10000, 8192, PROT_READ) = 0",
            f"mprotect(0x11000, 4096, {RX}) = 0",
        ],
        "w-then-x",
    ),
    case(
        "each toggle counts",
        [
            f"mmap(NULL, 4096, {RX}, {ANON}) = 0x10000",
            *[f"mprotect(0x10000, 4096, {bits}) = 0" for bits in (RW, RX, RW, RX)],
        ],
        "w-then-x",
        "w-then-x",
    ),
    case(
        "mapped anew over it",
        [
            f"mmap(NULL, 4096, {RW}, {ANON}) = 0x10000",
            f"mmap(0x10000, 4096, {RX}, MAP_PRIVATE|MAP_FIXED|MAP_ANONYMOUS, -1, 0) = 0x10000",
        ],
    ),
    case(
        "unmapped and mapped again",
        [
            f"mmap(NULL, 4096, {RW}, {ANON}) = 0x10000",
            "munmap(0x10000, 4096) = 0",
            f"mmap(NULL, 4096, PROT_READ, {ANON}) = 0x10000",
            f"mprotect(0x10000, 4096, {RX}) = 0",
        ],
        "x-by-mprotect",
    ),
    case(
        "only the neighbour was writable",
        [
            f"mmap(NULL, 8192, PROT_READ, {ANON}) = 0x10000",
            f"mprotect(0x10000, 4096, {RW}) = 0",
            f"mprotect(0x11000, 4096, {RX}) = 0",
        ],
        "x-by-mprotect",
    ),
    case(
        "the rest of a cut mapping was writable",
        [
            f"mmap(NULL, 8192, {RW}, {ANON}) = 0x10000",
            "mprotect(0x10000, 4096, PROT_READ) = 0",
            f"mprotect(0x11000, 4096, {RX}) = 0",
        ],
        "w-then-x",
    ),
    case("heap", ["brk(NULL) = 0x10000", "brk(0x12000) = 0x12000", f"mprotect(0x11000, 4096, {RX}) = 0"], "w-then-x"),
    case(
        "mprotect that failed",
        [f"mmap(NULL, 4096, {RW}, {ANON}) = 0x10000", f"mprotect(0x10000, 4096, {RX}) = -1 EACCES (Permission denied)"],
    ),
    case(
        "moved by mremap",
        [
            f"mmap(NULL, 4096, {RW}, {ANON}) = 0x10000",
            "mremap(0x10000, 4096, 8192, MREMAP_MAYMOVE) = 0x30000",
            f"mprotect(0x31000, 4096, {RX}) = 0",
        ],
        "w-then-x",
    ),
    case(
        "what mremap moved away is not there any more",
        [
            f"mmap(NULL, 4096, {RW}, {ANON}) = 0x10000",
            "mremap(0x10000, 4096, 4096, MREMAP_MAYMOVE|MREMAP_FIXED, 0x30000) = 0x30000",
            f"mmap(NULL, 4096, PROT_READ, {ANON}) = 0x10000",
            f"mprotect(0x10000, 4096, {RX}) = 0",
        ],
        "x-by-mprotect",
    ),
    case(
        "x by mprotect",
        [f"mmap(NULL, 4096, PROT_NONE, {ANON}) = 0x10000", f"mprotect(0x10000, 4096, {RX}) = 0"],
        "x-by-mprotect",
    ),
    case("exec's own page made executable", [f"mprotect(0x10000, 4096, {RX}) = 0"], "x-by-mprotect", incomplete=True),
    case(
        "exec's own page, writable for a time",
        [f"mprotect(0x10000, 4096, {RW}) = 0", f"mprotect(0x10000, 4096, {RX}) = 0"],
        "w-then-x",
    ),
    # ---- mprotect that failed half-way ----
    case(
        "rwx up to a hole",
        [
            f"mmap(NULL, 8192, {RW}, {ANON}) = 0x10000",
            "munmap(0x11000, 4096) = 0",
            f"mprotect(0x10000, 8192, {RWX}) = -1 ENOMEM (Cannot allocate memory)",
        ],
        "rwx",
    ),
    case(
        "rwx up to a hole, with more above it",
        [
            f"mmap(NULL, 20480, {RW}, {ANON}) = 0x10000",
            "munmap(0x11000, 4096) = 0",
            "mprotect(0x13000, 4096, PROT_READ) = 0",
            f"mprotect(0x10000, 20480, {RWX}) = -1 ENOMEM (Cannot allocate memory)",
        ],
        "rwx",
    ),
    case(
        "rwx up to a file that may not be written",
        [
            f"mmap(NULL, 8192, {RW}, {ANON}) = 0x10000",
            "mmap(0x11000, 4096, PROT_READ, MAP_SHARED|MAP_FIXED, 3</etc/passwd>, 0) = 0x11000",
            f"mprotect(0x10000, 8192, {RWX}) = -1 EACCES (Permission denied)",
        ],
        "rwx",
    ),
    case(
        "a file alone that may not be written",
        [
            "mmap(NULL, 4096, PROT_READ, MAP_SHARED, 3</etc/passwd>, 0) = 0x10000",
            f"mprotect(0x10000, 4096, {RWX}) = -1 EACCES (Permission denied)",
        ],
    ),
    case(
        "a file that may not be written, and more behind it",
        [
            f"mmap(NULL, 8192, {RW}, {ANON}) = 0x10000",
            "mmap(0x10000, 4096, PROT_READ, MAP_SHARED|MAP_FIXED, 3</etc/passwd>, 0) = 0x10000",
            f"mprotect(0x10000, 8192, {RWX}) = -1 EACCES (Permission denied)",
        ],
        incomplete=True,
    ),
    case(
        "a hole alone",
        [
            f"mmap(NULL, 8192, {RW}, {ANON}) = 0x10000",
            "munmap(0x10000, 4096) = 0",
            f"mprotect(0x10000, 8192, {RWX}) = -1 ENOMEM (Cannot allocate memory)",
        ],
        incomplete=True,
    ),
    case("a hole alone, not to be executed", [f"mprotect(0x10000, 4096, {RW}) = -1 ENOMEM (Cannot allocate memory)"]),
    case(
        "no memory to cut one mapping",
        [
            f"mmap(NULL, 8192, {RW}, {ANON}) = 0x10000",
            f"mprotect(0x10000, 4096, {RWX}) = -1 ENOMEM (Cannot allocate memory)",
        ],
    ),
    case(
        "a memory file opened by its mapping",
        [
            MEMFD,
            VIEW,
            'openat(AT_FDCWD</tmp>, "/proc/self/map_files/10000-11000", O_RDWR) = 4</memfd:code>(deleted)',
            f"mmap(NULL, 4096, {RX}, MAP_SHARED, 4</memfd:code>(deleted), 0) = 0x20000",
        ],
        incomplete=True,
    ),
    # ---- Aliases ----
    case("alias", [MEMFD, CODE, VIEW, "munmap(0x10000, 4096) = 0"], "alias"),
    case("alias, view first", [MEMFD, VIEW, CODE, "munmap(0x10000, 4096) = 0"], "alias"),
    case("alias ends with the code", [MEMFD, VIEW, CODE, "munmap(0x20000, 4096) = 0"], "alias"),
    case("alias ends by protection", [MEMFD, CODE, VIEW, "mprotect(0x10000, 4096, PROT_READ) = 0"], "alias"),
    case("view held to the end", [MEMFD, CODE, VIEW], "view-at-end"),
    case("view held to an exec", [MEMFD, CODE, VIEW, EXEC], "view-at-end"),
    case("view held when killed", [MEMFD, CODE, VIEW, "+++ killed by SIGSEGV +++"], "view-at-end", ended=False),
    case("view of half of it", [MEMFD, CODE, VIEW, "munmap(0x10000, 2048) = 0"], "alias", "sub-page"),
    case("closed before it is executable", [MEMFD, VIEW, "munmap(0x10000, 4096) = 0", CODE], "published"),
    case("read-only view", [MEMFD, CODE, f"mmap(NULL, 4096, PROT_READ, MAP_SHARED, {FILE}, 0) = 0x10000"]),
    case("private view", [MEMFD, CODE, f"mmap(NULL, 4096, {RW}, MAP_PRIVATE, {FILE}, 0) = 0x10000"]),
    case("private code", [MEMFD, VIEW, f"mmap(NULL, 4096, {RX}, MAP_PRIVATE, {FILE}, 0) = 0x20000"], "view-at-end"),
    case("other pages", [MEMFD, CODE, f"mmap(NULL, 4096, {RW}, MAP_SHARED, {FILE}, 0x1000) = 0x10000"]),
    case(
        "overlapping pages",
        [
            MEMFD,
            f"mmap(NULL, 8192, {RX}, MAP_SHARED, {FILE}, 0) = 0x20000",
            f"mmap(NULL, 8192, {RW}, MAP_SHARED, {FILE}, 0x1000) = 0x10000",
        ],
        "view-at-end",
    ),
    case(
        "two memory files of one name",
        [MEMFD, CODE, "close(3</memfd:code>(deleted)) = 0", MEMFD, VIEW],
    ),
    case(
        "through a duplicate",
        [MEMFD, CODE, f"dup({FILE}) = 4</memfd:code>(deleted)", VIEW.replace("3<", "4<")],
        "view-at-end",
    ),
    case(
        "opened again through /proc",
        [
            MEMFD,
            CODE,
            'openat(AT_FDCWD</tmp>, "/proc/self/fd/3", O_RDWR) = 5</memfd:code>(deleted)',
            VIEW.replace("3<", "5<"),
        ],
        "view-at-end",
    ),
    case(
        "a new file under an old name",
        [
            'openat(AT_FDCWD</tmp>, "/tmp/x", O_RDWR|O_CREAT|O_EXCL, 0600) = 3</tmp/x>',
            f"mmap(NULL, 4096, {RX}, MAP_SHARED, 3</tmp/x>, 0) = 0x20000",
            'openat(AT_FDCWD</tmp>, "/tmp/x", O_RDWR|O_CREAT|O_EXCL, 0600) = 4</tmp/x>',
            f"mmap(NULL, 4096, {RW}, MAP_SHARED, 4</tmp/x>, 0) = 0x10000",
        ],
    ),
    case(
        "the same file opened twice",
        [
            'openat(AT_FDCWD</tmp>, "x", O_RDONLY) = 3</tmp/x>',
            f"mmap(NULL, 4096, {RX}, MAP_PRIVATE, 3</tmp/x>, 0) = 0x20000",
            'openat(AT_FDCWD</tmp>, "/tmp/x", O_RDWR) = 4</tmp/x>',
            f"mmap(NULL, 4096, {RW}, MAP_SHARED, 4</tmp/x>, 0) = 0x10000",
        ],
        "view-at-end",
    ),
    case(
        "shared memory mapped twice by mremap",
        [
            f"mmap(NULL, 4096, {RX}, MAP_SHARED|MAP_ANONYMOUS, -1, 0) = 0x20000",
            "mremap(0x20000, 0, 4096, MREMAP_MAYMOVE) = 0x10000",
            f"mprotect(0x10000, 4096, {RW}) = 0",
        ],
        "view-at-end",
    ),
    case(
        "a descriptor that came in unseen",
        [CODE, VIEW],
        "view-at-end",
        incomplete=True,
    ),
    # ---- Parts of pages ----
    case("executable in parts", [f"mmap(NULL, 100, {RX}, {ANON}) = 0x10000"], "sub-page"),
    case("data in parts", [f"mmap(NULL, 100, {RW}, {ANON}) = 0x10000"], "sub-page-data"),
    case("a loader's mapping", [f"mmap(NULL, 100, {RX}, MAP_PRIVATE, 3</lib/x.so>, 0) = 0x10000"], "sub-page-data"),
    case(
        "taking execution away in parts",
        [f"mmap(NULL, 4096, {RX}, {ANON}) = 0x10000", "mprotect(0x10000, 100, PROT_READ) = 0"],
        "sub-page",
    ),
    case(
        "a loader's data beside its code",
        [
            f"mmap(NULL, 4096, {RX}, MAP_PRIVATE, 3</lib/x.so>, 0) = 0x10000",
            f"mmap(NULL, 4096, {RW}, MAP_PRIVATE, 3</lib/x.so>, 0x1000) = 0x11000",
            "mprotect(0x11000, 100, PROT_READ) = 0",
        ],
        "sub-page-data",
    ),
    case("view in parts", [MEMFD, CODE, VIEW.replace("4096", "100")], "sub-page", "view-at-end"),
    case(
        "unmapping in parts takes the whole page",
        [
            f"mmap(NULL, 4096, {RX}, {ANON}) = 0x10000",
            "munmap(0x10000, 100) = 0",
            f"mmap(NULL, 4096, {RX}, {ANON}) = 0x10000",
        ],
        "sub-page",
    ),
    # ---- Threads and processes ----
    case(
        "two threads share a space",
        [
            f"mmap(NULL, 4096, {RW}, {ANON}) = 0x10000",
            f"clone(child_stack=0x5000, flags={THREAD}, parent_tid=[101]) = 101",
            f"101 mprotect(0x10000, 4096, {RX}) = 0",
            "101 exit(0) = ?",
            "101 +++ exited with 0 +++",
        ],
        "w-then-x",
    ),
    case(
        "a thread that begins before its clone returns",
        [
            f"mmap(NULL, 4096, {RW}, {ANON}) = 0x10000",
            f"clone3({{flags={THREAD}, exit_signal=0}} <unfinished ...>",
            f"101 mprotect(0x10000, 4096, {RX}) = 0",
            "<... clone3 resumed> => {parent_tid=[101]}, 88) = 101",
            "101 +++ exited with 0 +++",
        ],
        "w-then-x",
    ),
    case(
        "fork copies",
        [
            f"mmap(NULL, 4096, {RW}, {ANON}) = 0x10000",
            "clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD) = 101",
            "munmap(0x10000, 4096) = 0",
            f"101 mprotect(0x10000, 4096, {RX}) = 0",
            "101 +++ exited with 0 +++",
        ],
        "w-then-x",
    ),
    case(
        "a child's doings are not its parent's",
        [
            f"mmap(NULL, 4096, PROT_READ, {ANON}) = 0x10000",
            "fork() = 101",
            f"101 mprotect(0x10000, 4096, {RW}) = 0",
            f"mprotect(0x10000, 4096, {RX}) = 0",
            "101 +++ exited with 0 +++",
        ],
        "x-by-mprotect",
    ),
    case(
        "vfork shares until exec",
        [
            f"mmap(NULL, 4096, {RW}, {ANON}) = 0x10000",
            "vfork( <unfinished ...>",
            f"101 {EXEC}",
            "<... vfork resumed>) = 101",
            f"mprotect(0x10000, 4096, {RX}) = 0",
            "101 +++ exited with 0 +++",
        ],
        "w-then-x",
    ),
    case(
        "an alias that came by fork",
        [
            MEMFD,
            CODE,
            VIEW,
            "fork() = 101",
            "101 exit_group(0) = ?",
            "101 +++ exited with 0 +++",
            "munmap(0x10000, 4096) = 0",
        ],
        "alias",
        "alias",
    ),
    case(
        "exec by a thread",
        [
            f"clone(child_stack=0x5000, flags={THREAD}, parent_tid=[101]) = 101",
            '101 execve("./other", ["./other"], 0x7ffc /* 41 vars */ <pid changed to 100 ...>',
            "+++ superseded by execve in pid 101 +++",
            "<... execve resumed>) = 12",
            f"mmap(NULL, 4096, {RW}, {ANON}) = 0x10000",
            f"mprotect(0x10000, 4096, {RX}) = 0",
        ],
        "w-then-x",
    ),
    case(
        "exec forgets what was mapped",
        [
            f"mmap(NULL, 4096, {RW}, {ANON}) = 0x10000",
            EXEC,
            f"mprotect(0x10000, 4096, {RX}) = 0",
        ],
        "x-by-mprotect",
        incomplete=True,
    ),
    case(
        "addresses reused before the unmapping has returned",
        [
            f"clone(child_stack=0x5000, flags={THREAD}, parent_tid=[101]) = 101",
            f"mmap(NULL, 4096, PROT_READ, {ANON}) = 0x10000",
            "munmap(0x10000, 4096 <unfinished ...>",
            f"101 mmap(NULL, 4096, {RW}, {ANON}) = 0x10000",
            "<... munmap resumed>) = 0",
            f"101 mprotect(0x10000, 4096, {RX}) = 0",
            "101 +++ exited with 0 +++",
        ],
        "w-then-x",
    ),
    case(
        "what a thread maps is there for all",
        [
            f"clone(child_stack=0x5000, flags={THREAD}, parent_tid=[101]) = 101",
            f"101 mmap(NULL, 4096, {RW}, {ANON}) = 0x10000",
            f"mprotect(0x10000, 4096, {RX}) = 0",
            "101 +++ exited with 0 +++",
        ],
        "w-then-x",
    ),
    case(
        "addresses reused for no reason",
        [
            f"mmap(NULL, 4096, {RW}, {ANON}) = 0x10000",
            f"mmap(NULL, 4096, PROT_READ, {ANON}) = 0x10000",
        ],
        incomplete=True,
    ),
    case(
        "not forked",
        [
            f"mmap(NULL, 4096, {RW}, {ANON}) = 0x10000",
            "madvise(0x10000, 4096, MADV_DONTFORK) = 0",
            "fork() = 101",
            f"101 mmap(NULL, 4096, PROT_READ, {ANON}) = 0x10000",
            f"101 mprotect(0x10000, 4096, {RX}) = 0",
            "101 +++ exited with 0 +++",
        ],
        "x-by-mprotect",
    ),
    case(
        "closed on exec",
        [
            MEMFD.replace(", 0)", ", MFD_CLOEXEC)"),
            EXEC,
            f"mmap(NULL, 4096, {RX}, MAP_SHARED, {FILE}, 0) = 0x20000",
        ],
        incomplete=True,
    ),
    # ---- Others ----
    case(
        "its own memory, opened for writing",
        ['openat(AT_FDCWD</tmp>, "/proc/self/mem", O_RDWR) = 8</proc/100/mem>'],
        "process-memory",
    ),
    case(
        "its own memory, opened for reading", ['openat(AT_FDCWD</tmp>, "/proc/self/mem", O_RDONLY) = 8</proc/100/mem>']
    ),
)
