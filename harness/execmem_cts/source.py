"""A manifest as text: parsed, held against its JSON schema, and able to say on which line a field stands.

Errors are one line: file, line, path of the field, what was expected, what was found, and how to mend it.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Mapping, Sequence

SCHEMA_VERSION = 1
PORT_SCHEMA = Path("arch/port.schema.json")
SUBJECT_SCHEMA = Path("conformance/subject.schema.json")
TEMPLATES = Path("arch/templates.toml")
TEMPLATES_SCHEMA = Path("arch/templates.schema.json")

Step = str | int


class ManifestError(Exception):
    """A manifest that cannot be used. Exit status 2."""


def path_text(path: Sequence[Step]) -> str:
    """("template", 1, "pitch") as `template[1].pitch`, counted from 0 as a program would."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text or "top level"


def _mask(text: str) -> list[str]:
    """The lines without comments at their start, so that a key in a comment is not taken for a key."""
    return ["" if line.lstrip().startswith("#") else line for line in text.splitlines()]


def locate(text: str, path: Sequence[Step]) -> int:
    """The line of the deepest part of `path` that can be found, from 1; 0 where none can. A good guess, no parser."""
    lines = _mask(text)
    at, found, names = 0, -1, []
    position = 0
    while position < len(path):
        step = path[position]
        position += 1
        if isinstance(step, int):
            continue
        names.append(step)
        index = path[position] if position < len(path) else None
        number = index if isinstance(index, int) else 0
        begin = r"^\s*\[\[?\s*" + r"\s*\.\s*".join(re.escape(n) for n in names)
        header = re.compile(begin + r"\s*\]\]?")
        heads = [i for i in range(at, len(lines)) if header.match(lines[i])]
        if number < len(heads):
            at = found = heads[number]
            continue
        key = re.compile(r"(^|[\s{,])\"?" + re.escape(step) + r"\"?\s*=")
        end = next((i for i in range(at + 1, len(lines)) if re.match(r"^\s*\[", lines[i])), len(lines))
        keys = [i for i in range(at, end if found >= 0 else len(lines)) if key.search(lines[i])]
        if not keys and any(re.match(begin + r"\s*\.", line) for line in lines):
            continue  # [a.b], with no [a] before it
        if not keys:
            break
        at = found = keys[0]
        if isinstance(index, int):
            items = [i for i in range(at, len(lines)) if re.match(r"^\s*\{", lines[i])]
            if index < len(items):
                at = found = items[index]
    return found + 1


class Source:
    """One manifest file, parsed."""

    def __init__(self, path: Path, root: Path, text: str | None = None) -> None:
        """Raises ManifestError where the file is missing, not TOML, or of a schema version of the future."""
        self.path = path
        try:
            self.name = str(path.resolve().relative_to(root.resolve()))
        except ValueError:
            self.name = str(path)
        try:
            self.text = path.read_text() if text is None else text
        except (OSError, UnicodeDecodeError) as error:
            raise ManifestError(f"{self.name}: cannot be read: {error}; give the path of a manifest") from error
        try:
            self.data: dict[str, Any] = tomllib.loads(self.text)
        except tomllib.TOMLDecodeError as error:
            line = re.search(r"line (\d+)", str(error))
            where = f"{self.name}:{line.group(1)}" if line else self.name
            raise ManifestError(f"{where}: not valid TOML: {error}") from error
        version = self.data.get("schema")
        if isinstance(version, int) and version > SCHEMA_VERSION:
            raise self.error(
                ["schema"], f"expected {SCHEMA_VERSION}, found {version}", "use a newer execmem-cts for this manifest"
            )

    def error(self, path: Sequence[Step], problem: str, mend: str) -> ManifestError:
        """The one line of an error at `path`."""
        line = locate(self.text, path)
        where = f"{self.name}:{line}" if line else self.name
        return ManifestError(f"{where}: {path_text(path)}: {problem}; {mend}")

    def validate(self, root: Path, schema: Path, cache: Path | None = None) -> None:
        """Holds the data against the schema. `cache`: a folder that remembers which texts were found valid."""
        grammar = [(root / name).read_text() for name in dict.fromkeys((schema, PORT_SCHEMA))]
        digest = hashlib.sha256("\0".join([self.text, *grammar]).encode()).hexdigest()
        if cache is not None and (cache / digest).exists():
            return
        import jsonschema  # a sixth of a second, needed for new manifests only

        store = {PORT_SCHEMA.name: json.loads((root / PORT_SCHEMA).read_text())}
        main = json.loads(grammar[0])
        resolver = jsonschema.RefResolver(main["$id"], main, store={**store, main["$id"]: main})
        errors = list(jsonschema.Draft202012Validator(main, resolver=resolver).iter_errors(self.data))
        if errors:
            errors.sort(key=lambda e: (locate(self.text, list(e.absolute_path)), len(e.absolute_path)))
            raise self._schema_error(errors[0])
        if cache is not None:
            cache.mkdir(parents=True, exist_ok=True)
            (cache / digest).touch()

    def _schema_error(self, error: Any) -> ManifestError:
        while error.context:  # anyOf: the alternative that came furthest is the one that was meant
            error = max(error.context, key=lambda e: len(e.absolute_path))
        path = list(error.absolute_path)
        rule, value, found = error.validator, error.validator_value, error.instance
        shown = json.dumps(found, default=str) if not isinstance(found, (dict, list)) else type(found).__name__
        types = {"object": "table", "dict": "table", "list": "array"}
        shown = types.get(shown, shown)
        if rule == "required":
            missing = next(name for name in value if name not in found)
            return self.error([*path, missing], "is missing", f"add `{missing} = ...`")
        if rule == "additionalProperties":
            known = list(error.schema.get("properties", {}))
            extra = next(name for name in found if name not in known)
            near = difflib.get_close_matches(extra, known, 1)
            mend = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
            return self.error([*path, extra], f"unknown key {extra!r}", mend)
        if rule == "type":
            names = [value] if isinstance(value, str) else list(value)
            wanted = " or ".join(types.get(name, name) for name in names)
            return self.error(path, f"expected {wanted}, found {shown}", "see the schema for an example")
        if rule in ("enum", "const"):
            options = value if rule == "enum" else [value]
            wanted = ", ".join(json.dumps(option) for option in options)
            return self.error(path, f"expected {'one of ' if len(options) > 1 else ''}{wanted}, found {shown}", "mend")
        if rule == "pattern":
            return self.error(path, f"expected text that matches {value}, found {shown}", "rename it")
        if rule == "minItems":
            return self.error(path, f"expected at least {value} entry, found {len(found)}", "add one")
        if rule in ("minimum", "maximum"):
            return self.error(
                path, f"expected a number {'>=' if rule == 'minimum' else '<='} {value}, found {shown}", "mend"
            )
        return self.error(path, error.message.splitlines()[0], f"see rule {rule!r} of the schema")


@dataclass(frozen=True)
class Where:
    """A place in a manifest, to name it in an error. `moved`: keys of it that are written somewhere else."""

    source: Source
    path: tuple[Step, ...]
    moved: Mapping[str, Where] = field(default_factory=dict)

    def __truediv__(self, step: Step) -> Where:
        moved = self.moved.get(step) if isinstance(step, str) else None
        return moved or Where(self.source, (*self.path, step))

    def error(self, problem: str, mend: str) -> ManifestError:
        return self.source.error(self.path, problem, mend)
