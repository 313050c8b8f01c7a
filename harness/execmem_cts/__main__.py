"""`python3 -m execmem_cts`: the command line, once what it imports is known to be there."""

from __future__ import annotations

import importlib.util
import sys

# Import name -> Debian package
NEEDED = {
    "click": "python3-click",
    "rich": "python3-rich",
    "jinja2": "python3-jinja2",
    "jsonschema": "python3-jsonschema",
    "elftools": "python3-pyelftools",
    "junitparser": "python3-junitparser",
    "pytest": "python3-pytest",
    "xdist": "python3-pytest-xdist",
}


def main() -> None:
    if sys.version_info < (3, 11):
        sys.exit(_missing("Python 3.11 or later is needed, this is " + sys.version.split()[0], "python3"))
    missing = [package for name, package in NEEDED.items() if importlib.util.find_spec(name) is None]
    if missing:
        sys.exit(_missing(f"missing Python packages: {', '.join(missing)}", " ".join(missing)))
    from .cli import main as command

    command(prog_name="execmem-cts")


def _missing(what: str, packages: str) -> int:
    print(f"execmem-cts: {what}\nRun toolchains/setup, or: apt-get install {packages}", file=sys.stderr)
    return 3


if __name__ == "__main__":
    main()
