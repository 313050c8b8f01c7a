"""What the audit must say of one mapping at a time: its protection and what becomes of it, parts of pages, and what else."""

from __future__ import annotations

from audit_cases import ANON, CODE, FILE, MEMFD, RW, RWX, RX, VIEW, case

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
