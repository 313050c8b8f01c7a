"""What a runner tells of a program: system calls entered and left, threads that begin, move and end.

Every reader brings its runner's spelling into the one form below, so that the model knows no runner:

    mmap (address, length, protection, flags, descriptor, offset)       offset in bytes, whatever the call was
    munmap (address, length)          mprotect (address, length, protection)
    pkey_mprotect (address, length, protection, key)
    mremap (address, length, new length, flags, new address)
    remap_file_pages (address, length, protection, page offset, flags)
    madvise (address, length, advice)                                   brk (address)
    shmget (key, size, flags)         shmat (id, address, flags)        shmdt (address)
    clone (flags)                     for clone, clone3, fork and vfork, with the flags that the latter two stand for
    execve (path)                     personality (persona)             exit ()  exit_group ()
    open (path, flags)                for open, openat, openat2 and creat
    memfd_create (name, flags)        close (descriptor)                close_range (first, last, flags)
    dup (descriptor)                  dup2 (descriptor, number)         dup3 (descriptor, number, flags)
    fcntl (descriptor, command, argument)

Numbers are integers with Linux's generic values of asm-generic/mman-common.h, linux/mman.h, linux/sched.h, fcntl.h.
"""

from __future__ import annotations

from dataclasses import dataclass

PROT_READ, PROT_WRITE, PROT_EXEC = 1, 2, 4
MAP_SHARED, MAP_TYPE, MAP_FIXED, MAP_ANONYMOUS = 0x01, 0x0F, 0x10, 0x20
MAP_HUGETLB, MAP_FIXED_NOREPLACE, MAP_HUGE_SHIFT = 0x40000, 0x100000, 26
MREMAP_FIXED, MREMAP_DONTUNMAP = 2, 4
MADV_DONTFORK, MADV_DOFORK = 10, 11
SHM_RDONLY, SHM_EXEC, SHM_REMAP = 0o10000, 0o100000, 0o40000
CLONE_VM, CLONE_FILES, CLONE_VFORK, CLONE_THREAD = 0x100, 0x400, 0x4000, 0x10000
O_ACCMODE, O_CREAT, O_EXCL, O_CLOEXEC = 0o3, 0o100, 0o200, 0o2000000
MFD_CLOEXEC = 1
CLOSE_RANGE_UNSHARE, CLOSE_RANGE_CLOEXEC = 2, 4
F_DUPFD, F_SETFD, F_DUPFD_CLOEXEC, FD_CLOEXEC = 0, 2, 1030, 1
READ_IMPLIES_EXEC = 0x0400000


@dataclass(frozen=True)
class Descriptor:
    """A file descriptor as an argument or a result, with what the runner says that it refers to."""

    number: int
    name: str = ""
    deleted: bool = False  # the file has no name any more
    identity: str = ""  # device and inode, where the runner knows them: then nothing need be inferred


Argument = int | str | Descriptor


@dataclass(frozen=True)
class Call:
    """A system call as above. `text`: as the runner spells it, to be shown."""

    name: str
    args: tuple[Argument, ...]
    text: str

    def number(self, index: int) -> int:
        """An integer argument; 0 where there is none, the number of a descriptor."""
        value = self.args[index] if index < len(self.args) else 0
        return value.number if isinstance(value, Descriptor) else value if isinstance(value, int) else 0


@dataclass(frozen=True)
class Enter:
    """A thread enters the kernel. `time`: seconds from any start, None where the runner has no clock."""

    task: int
    time: float | None
    call: Call


@dataclass(frozen=True)
class Leave:
    """The call that this thread entered last returns. `error`: "EINVAL" and so on, or "" for success."""

    task: int
    time: float | None
    result: int | None
    error: str = ""
    returned: Descriptor | None = None


@dataclass(frozen=True)
class Born:
    """A thread begins, where the runner says so by itself. `parent`: a thread of the process that made it."""

    task: int
    time: float | None
    process: int
    parent: int
    shares: bool  # the address space


@dataclass(frozen=True)
class Moved:
    """A thread other than the leader calls exec, and goes on under the leader's number."""

    task: int
    time: float | None
    to: int


@dataclass(frozen=True)
class Gone:
    """A thread ends. `status`: exit status, or minus the signal's number."""

    task: int
    time: float | None
    status: int | None


Event = Enter | Leave | Born | Moved | Gone
