"""A badge: JSON as shields.io's endpoint badge reads it."""

from __future__ import annotations

import json
from pathlib import Path

from ..verdict import Overall

NAME = "badge.json"
_COLORS = {0: "brightgreen", 1: "red", 3: "orange", 4: "yellow"}


def badge(overall: Overall) -> dict[str, object]:
    """https://shields.io/badges/endpoint-badge: schemaVersion, label, message, color; isError where it is not green."""
    passed, ran = overall.counts.get("PASS", 0), sum(
        overall.counts.get(k, 0) for k in ("PASS", "FAIL", "XFAIL", "XPASS")
    )
    message = f"{overall.word} ({passed} of {ran})" if ran else overall.word
    # "as expected" is no conformance: it has known failures.
    color = "green" if overall.word == "as expected" else _COLORS.get(overall.exit_status, "lightgrey")
    return {
        "schemaVersion": 1,
        "label": "execmem-cts",
        "message": message,
        "color": color,
        "isError": overall.exit_status != 0,
    }


def write(path: Path, overall: Overall) -> None:
    path.write_text(json.dumps(badge(overall)) + "\n")
