"""Symbols in the arguments that strace and the emulator print, as numbers.

Values of asm-generic/mman-common.h, linux/mman.h, linux/sched.h, asm-generic/fcntl.h, linux/shm.h, linux/memfd.h and
linux/personality.h. A symbol that is missing here counts as 0: the model asks for none of the others.
"""

from __future__ import annotations

import re

NUMBERS = {
    "NULL": 0,
    "PROT_NONE": 0,
    "PROT_READ": 0x1,
    "PROT_WRITE": 0x2,
    "PROT_EXEC": 0x4,
    "PROT_GROWSDOWN": 0x1000000,
    "PROT_GROWSUP": 0x2000000,
    "MAP_SHARED": 0x1,
    "MAP_PRIVATE": 0x2,
    "MAP_SHARED_VALIDATE": 0x3,
    "MAP_FIXED": 0x10,
    "MAP_ANONYMOUS": 0x20,
    "MAP_32BIT": 0x40,
    "MAP_GROWSDOWN": 0x100,
    "MAP_DENYWRITE": 0x800,
    "MAP_EXECUTABLE": 0x1000,
    "MAP_LOCKED": 0x2000,
    "MAP_NORESERVE": 0x4000,
    "MAP_POPULATE": 0x8000,
    "MAP_NONBLOCK": 0x10000,
    "MAP_STACK": 0x20000,
    "MAP_HUGETLB": 0x40000,
    "MAP_SYNC": 0x80000,
    "MAP_FIXED_NOREPLACE": 0x100000,
    "MREMAP_MAYMOVE": 1,
    "MREMAP_FIXED": 2,
    "MREMAP_DONTUNMAP": 4,
    "MADV_DONTNEED": 4,
    "MADV_REMOVE": 9,
    "MADV_DONTFORK": 10,
    "MADV_DOFORK": 11,
    "SHM_RDONLY": 0o10000,
    "SHM_RND": 0o20000,
    "SHM_REMAP": 0o40000,
    "SHM_EXEC": 0o100000,
    "CLONE_VM": 0x100,
    "CLONE_FS": 0x200,
    "CLONE_FILES": 0x400,
    "CLONE_SIGHAND": 0x800,
    "CLONE_VFORK": 0x4000,
    "CLONE_THREAD": 0x10000,
    "O_RDONLY": 0,
    "O_WRONLY": 0o1,
    "O_RDWR": 0o2,
    "O_CREAT": 0o100,
    "O_EXCL": 0o200,
    "O_CLOEXEC": 0o2000000,
    "MFD_CLOEXEC": 1,
    "CLOSE_RANGE_UNSHARE": 2,
    "CLOSE_RANGE_CLOEXEC": 4,
    "F_DUPFD": 0,
    "F_SETFD": 2,
    "F_DUPFD_CLOEXEC": 1030,
    "FD_CLOEXEC": 1,
    "MAP_HUGE_SHIFT": 26,
    "READ_IMPLIES_EXEC": 0x0400000,
}
_NUMBER = re.compile(r"-?(0[xX][0-9a-fA-F]+|\d+)$")


def number(text: str) -> int | None:
    """A decimal, hexadecimal or, as C has it, octal number; None where it is none."""
    if not _NUMBER.match(text):
        return None
    digits = text.removeprefix("-")
    octal = len(digits) > 1 and digits.isdigit() and digits.startswith("0")
    value = int(digits, 8) if octal and set(digits) <= set("01234567") else int(digits, 0 if not octal else 10)
    return -value if text.startswith("-") else value


def value(text: str) -> int:
    """The value of `PROT_READ|0x10 /* ... */`, of `21<<MAP_HUGE_SHIFT`, of a plain number."""
    total = 0
    for part in re.sub(r"/\*.*?\*/", "", text).split("|"):
        left, shifted, right = part.strip().partition("<<")
        known = number(left)
        single = NUMBERS.get(left, 0) if known is None else known
        if shifted:
            by = number(right)
            single <<= NUMBERS.get(right, 0) if by is None else by
        total |= single
    return total
