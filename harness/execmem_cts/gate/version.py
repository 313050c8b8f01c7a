"""Ranges of versions, as expectations name them: ">=7.2, <9"."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass

_COMPARISONS: dict[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}
_PART = re.compile(r"\s*(>=|<=|==|!=|>|<)\s*(\d+(?:\.\d+)*)\s*")


def numbers(text: str) -> tuple[int, ...]:
    """The first version in a text: (7, 2, 22) of "qemu-arm version 7.2.22 (Debian 1:7.2)"; () where there is none."""
    found = re.search(r"(?<![\w.])\d+(?:\.\d+)+", text) or re.search(r"(?<![\w.])\d+", text)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


@dataclass(frozen=True)
class Range:
    """Comparisons that must all hold."""

    parts: tuple[tuple[str, tuple[int, ...]], ...]

    @staticmethod
    def parse(text: str) -> Range:
        """Raises ValueError."""
        parts = []
        for piece in text.split(","):
            match = _PART.fullmatch(piece)
            if match is None:
                raise ValueError(f"{piece.strip()!r} is no comparison with a version")
            parts.append((match[1], numbers(match[2])))
        return Range(tuple(parts))

    def holds(self, version: tuple[int, ...]) -> bool:
        """Missing parts count as 0: 7.2 is 7.2.0. A version that is not known is in no range."""
        if not version:
            return False

        def padded(value: tuple[int, ...], length: int) -> tuple[int, ...]:
            return value + (0,) * (length - len(value))

        for comparison, wanted in self.parts:
            length = max(len(version), len(wanted))
            if not _COMPARISONS[comparison](padded(version, length), padded(wanted, length)):
                return False
        return True
