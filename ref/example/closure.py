#!/usr/bin/python3
"""Writes what the example must know of a port's closure template, from the port's manifest, as C.

Usage: closure.py arch/<port>/port.toml OUTPUT

The library is built without a variant's defines; so the variant is the one that has none.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Any


def of_variant(value: Any, variant: str) -> Any:
    """A value that may be given by variant."""
    return value.get(variant) if isinstance(value, dict) else value


def main() -> None:
    manifest = tomllib.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    variant = next(v["name"] for v in manifest["variant"] if not v.get("defines"))
    template = next(t for t in manifest["template"] if t["kind"] == "closure")
    patches = of_variant(template.get("patches"), variant) or []
    lines = [f"{{{patch['offset']}, {patch['width']}}}," for patch in patches]
    Path(sys.argv[2]).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
