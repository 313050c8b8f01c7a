"""How far mprotect came before it failed: the kernel goes from mapping to mapping, and leaves changed what it has changed.

    ENOMEM  a hole: everything below it is changed. Or, where there is none, too many mappings: nobody knows
    EACCES  a file's mapping may not have what is asked for: memory without a file is never refused so
"""

from __future__ import annotations

from collections.abc import Sequence

from .space import Piece

ERRORS = ("ENOMEM", "EACCES")


def changed_below(pieces: Sequence[Piece], start: int, end: int, error: str) -> int:
    """Below this address the call that failed has certainly changed [start, end), whose pieces are given in order."""
    at = start
    for piece in pieces:
        if piece.start > at or (error == "EACCES" and piece.mapping.file is not None):
            break
        at = piece.end
    whole = at >= end  # no reason was found: it may have failed at the first piece
    return start if whole else at


def is_doubtful(pieces: Sequence[Piece], start: int, end: int, error: str) -> bool:
    """May more be changed than `changed_below` says? Nothing is, where the first mapping was refused."""
    below = changed_below(pieces, start, end, error)
    rest = [piece for piece in pieces if piece.end > below]
    if error == "ENOMEM" and below > start:
        return False  # up to the hole, and no further
    return len(rest) > 1 or (error == "ENOMEM" and (not pieces or pieces[0].start > start))
