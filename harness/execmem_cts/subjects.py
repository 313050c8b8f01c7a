"""Subjects: where they are found, and what they can claim.

A subject is a folder with a `subject.toml`. Those of the tree lie in conformance/subjects; a folder of
`--subject-path`, or of the variable EXECMEM_SUBJECT_PATH, is a subject itself or holds some. The claims, and the
operations of each, are those that the headers conformance/subject*.h say.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .model import Subject
from .source import ManifestError, Source

MANIFEST = "subject.toml"
VARIABLE = "EXECMEM_SUBJECT_PATH"
MOST_NAMES = 8
_UNLINKED = {
    "undefined": "name the source or the object that defines it, or say `hosted = true` where a C library does",
    "duplicate": "remove one of the sources or objects that define it",
}
TEMPLATE_CLAIMS = ("stub-pages", "stub-page-size")
FOLDER = Path("conformance/subjects")
# In subject.h, each of these is an operation of its own.
_SINGLE = re.compile(r'\* Claim "(?P<claim>[\w-]+)"\.(?:(?!\*/).)*\*/\s*\w+ \(\*(?P<operation>\w+)\)', re.DOTALL)
_TABLE = re.compile(r'\bX\((?P<operation>\w+), "(?P<claim>[\w-]+)"\)')


@functools.lru_cache(maxsize=None)
def operations(root: Path) -> dict[str, dict[str, tuple[str, ...]]]:
    """Claim -> header -> the operations that belong to it, in the order of the headers."""
    found: dict[str, dict[str, list[str]]] = {}
    headers = sorted((root / "conformance").glob("subject*.h"), key=lambda path: (path.name != "subject.h", path.name))
    for header in headers:
        for match in (_SINGLE if header.name == "subject.h" else _TABLE).finditer(header.read_text()):
            found.setdefault(match["claim"], {}).setdefault(header.name, []).append(match["operation"])
    return {claim: {name: tuple(them) for name, them in tables.items()} for claim, tables in found.items()}


def claims(root: Path) -> tuple[str, ...]:
    """Every claim that a subject can make."""
    return tuple(operations(root))


def search_path(given: Sequence[Path], variable: str | None = None) -> list[Path]:
    """The folders of the options, then those of EXECMEM_SUBJECT_PATH. Raises ManifestError for one that is not there."""
    text = os.environ.get(VARIABLE, "") if variable is None else variable
    named = [("--subject-path", path) for path in given]
    named += [(VARIABLE, Path(part)) for part in text.split(os.pathsep) if part]
    for source, path in named:
        if not path.is_dir():
            raise ManifestError(f"{source} {path}: no such folder; name one that is a subject, or that holds some")
    return [path for _, path in named]


def _in(folder: Path) -> list[Path]:
    own = folder / MANIFEST
    return [own] if own.is_file() else sorted(folder.glob(f"*/{MANIFEST}"))


def discover(root: Path, folders: Sequence[Path] = ()) -> dict[str, Path]:
    """Every subject by name: the tree's, and those of the folders. Raises ManifestError where two have one name, or a
    folder holds none."""
    found: dict[str, Path] = {}
    for folder in (root / FOLDER, *folders):
        manifests = _in(folder)
        if not manifests and folder != root / FOLDER:
            raise ManifestError(
                f"{folder}: expected {MANIFEST}, here or in a folder of it, found none; "
                "`execmem-cts new-subject` writes one"
            )
        for path in manifests:
            source = Source(path, root)
            name = str(source.data.get("name", path.parent.name))
            if name in found and found[name].resolve() != path.resolve():
                raise source.error(["name"], f"{name!r} is the name of {found[name]} as well", "rename one of them")
            found[name] = path
    return found


def find(root: Path, name: str, folders: Sequence[Path] = ()) -> Path:
    """The manifest of the subject of that name, or the path itself where `name` is one."""
    path = Path(name)
    if path.suffix == ".toml" or len(path.parts) > 1:
        return path if path.suffix == ".toml" else path / MANIFEST
    if not folders and (root / FOLDER / name / MANIFEST).is_file():
        return root / FOLDER / name / MANIFEST
    there = discover(root, folders)
    if name not in there:
        raise ManifestError(
            f"--subject {name}: no such subject; there are {', '.join(sorted(there))}, "
            "or give a path to a manifest, or its folder with --subject-path"
        )
    return there[name]


def has_templates(manifest: Mapping[str, Any], table: Mapping[str, Any]) -> bool:
    """Are there templates to be judged on a port? Its own, or the port's where it fills pages with them; not for a
    subject that claims other things alone."""
    claimed = manifest.get("claims", ())
    return "template" in table or not claimed or any(claim in claimed for claim in TEMPLATE_CLAIMS)


def claims_alone(subject: Subject) -> bool:
    """Does it claim operations, and none that fill pages with templates?"""
    return bool(subject.claims) and not any(claim in subject.claims for claim in TEMPLATE_CLAIMS)


def allocates(subject: Subject) -> bool:
    """Does it claim anything that the allocator families judge?"""
    return any(claim not in TEMPLATE_CLAIMS for claim in subject.claims)


def refuse_unlinked(subject: Subject, errors: Mapping[str, str]) -> None:
    """Raises ManifestError where the code of a subject does not link: names that nothing defines, or defined twice.

    `errors`: the linker's text, by what was linked.
    """
    for key, text in errors.items():
        if subject.alone:
            return
        port = key.split("/", 1)[0]
        for kind, mend in _UNLINKED.items():
            names = list(dict.fromkeys(re.findall(rf"error: {kind} symbol: (.*)", text)))
            if names:
                more = f" and {len(names) - MOST_NAMES} more" if names[MOST_NAMES:] else ""
                raise ManifestError(
                    f"{subject.manifest}: {subject.name} does not link on {port}: {kind} symbol"
                    f"{'s' if names[1:] else ''} {', '.join(names[:MOST_NAMES])}{more}; {mend}"
                )
