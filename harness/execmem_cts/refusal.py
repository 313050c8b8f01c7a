"""Fields that the assembly refused to encode: what asm/asm.h makes the compiler say of them."""

from __future__ import annotations

import re
from dataclasses import dataclass

REACH = re.compile(
    r"execmem-reach: port=(?P<port>\S+) template=(?P<template>\S+) field=(?P<field>\S+) "
    r"reach=(?P<lowest>-?\d+)\.\.(?P<highest>-?\d+) distance=(?P<distance>-?\d+)"
)


@dataclass(frozen=True)
class Refusal:
    """One field that the assembly refused to encode."""

    template: str
    field: str
    lowest: int
    highest: int
    distance: int
    text: str  # the compiler's line


def refusals(text: str) -> list[Refusal]:
    """The `execmem-reach:` lines of a compiler's output, each once."""
    found = {}
    for match in REACH.finditer(text):
        found[match.group(0)] = Refusal(
            match["template"],
            match["field"],
            int(match["lowest"]),
            int(match["highest"]),
            int(match["distance"]),
            match.group(0),
        )
    return list(found.values())
