"""What the audit must say where memory is shared: by two mappings, by threads, by processes."""

from __future__ import annotations

from audit_cases import ANON, CODE, EXEC, FILE, MEMFD, RW, RX, THREAD, VIEW, case

CASES = (
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
)
