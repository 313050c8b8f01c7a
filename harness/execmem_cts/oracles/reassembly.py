"""Templates of a set assembled again, as the build does, for stub page sizes that nobody declared.

What came of it is kept in the build folder, and is taken again while every file that the assembler read is the same.

A source is preprocessed once, with a name in place of the stub page size, which is then replaced in the text: a third of
the processes. Where preprocessing may depend on the size itself (`#if`), each size goes the build's own way.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from .. import build
from ..model import Template, TemplateSet
from ..refusal import Refusal, refusals
from ..tools import find
from . import Context

_SIZE = "execmem_cts_stub_page_size"  # stands for the stub page size in preprocessed text
_ERROR = re.compile(r"^(?P<file>[^\s:][^:]*):(?P<line>\d+):(?:\d+:)? error: (?P<text>.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Assembled:
    """The templates of a set, assembled for one stub page size."""

    object: Path | None  # None: refused
    refusals: list[Refusal]
    errors: list[tuple[str, int, str]]  # file name, line, the assembler's words; `execmem-reach` lines left out
    text: str


_assembled: dict[tuple[Path, Path, str], Assembled] = {}


@dataclass
class Assembler:
    """Assembles a set's templates as the build does, each size once."""

    template_set: TemplateSet
    context: Context
    expanded: dict[Path, str | None] = field(default_factory=dict)

    def at(self, size: int) -> Assembled:
        scratch = self.context.directory.parent / f"{self.template_set.variant}-limits"
        sources = [_hash(source) for source in self.template_set.sources]
        key = repr((self.commands(size, scratch), Path(self.context.clang).stat().st_mtime_ns, sources))
        kept = scratch / f"{size}.json"
        here = (self.context.root, scratch, key)
        if here not in _assembled:
            _assembled[here] = _take(kept, key, self.context.root) or self._assemble(size, scratch, kept, key)
        return _assembled[here]

    def commands(self, size: int, scratch: Path) -> list[list[str]]:
        """One a source: assemble to OBJECT and write what was read to OBJECT.d; the last argument is OBJECT."""
        chosen, context = self.template_set, self.context
        flags = build.template_flags(context.root, chosen, size)
        argvs = []
        for index, source in enumerate(chosen.sources):
            obj = self.short(scratch / f"{size}-{index}.o")
            argv = [context.clang, f"--target={chosen.port.triple}", "-c", "-MD", "-MF", f"{obj}.d", *flags]
            argvs.append([*argv, self.short(source), "-o", obj])
        return argvs

    def short(self, path: Path) -> str:
        """From the root where it lies there, so that what is kept holds for a copy of the tree as well."""
        root = self.context.root
        return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)

    def _assemble(self, size: int, scratch: Path, kept: Path, key: str) -> Assembled:
        scratch.mkdir(parents=True, exist_ok=True)
        objects, text, failed = [], "", False
        for source, argv in zip(self.template_set.sources, self.commands(size, scratch)):
            done = self._run(self._expanded_command(source, size, argv))
            text, failed = text + done.stderr, failed or done.returncode != 0
            objects.append(self.context.root / argv[-1])
        if not failed and len(objects) > 1:
            merged = scratch / f"{size}.o"
            argv = [find().lld, "-r", *map(str, objects), "-o", str(merged)]
            done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
            text, failed = text + done.stderr, done.returncode != 0
            objects = [merged]
        errors = [(Path(m["file"]).name, int(m["line"]), m["text"]) for m in _ERROR.finditer(text)]
        errors = [error for error in errors if "execmem-reach:" not in error[2]]
        assembled = Assembled(None if failed else objects[0], refusals(text), errors, text)
        rules = [self.context.root / f"{argv[-1]}.d" for argv in self.commands(size, scratch)]
        read = [self.context.root / name for rule in rules for name in _read(rule)]
        _keep(kept, key, {self.short(path): path for path in (*self.template_set.sources, *read)}, assembled)
        return assembled

    def _run(self, argv: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(argv, cwd=self.context.root, capture_output=True, text=True, timeout=60, check=False)

    def _expanded_command(self, source: Path, size: int, argv: list[str]) -> list[str]:
        """The command for text that is preprocessed already; `argv` itself where preprocessing depends on the size."""
        obj = self.context.root / argv[-1]
        if source not in self.expanded:
            self.expanded[source] = self._expand(source, obj.with_name(f"{source.name}.d"))
        text = self.expanded[source]
        if text is None:
            return argv
        path = obj.parent / obj.stem / f"{source.stem}-{size}.s"  # as clang names such a file of its own: see places()
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.replace(_SIZE, str(size)))
        obj.with_name(f"{obj.name}.d").write_text(obj.with_name(f"{source.name}.d").read_text())
        return [*argv[:2], "-c", *argv[argv.index("-MF") + 2 : -3], self.short(path), "-o", argv[-1]]

    def _expand(self, source: Path, depfile: Path) -> str | None:
        """The preprocessed source with _SIZE for the size; None where that may be another text for some size."""
        if source.suffix not in (".S", ".sx"):
            return None
        chosen = self.template_set
        flags = build.template_flags(self.context.root, chosen, _SIZE)
        argv = [self.context.clang, f"--target={chosen.port.triple}", "-E", "-MD", "-MF", self.short(depfile), *flags]
        # A name that stands for no macro is 0 in `#if`, and -Wundef says so.
        done = self._run([*argv, "-Wundef", "-Wno-error", self.short(source)])
        return done.stdout if done.returncode == 0 and _SIZE not in done.stderr else None

    def places(self, template: Template, size: int) -> set[tuple[str, int]]:
        """File name and number of every line from a template's begin to its end, where its source spells these out.

        Clang names some errors by a line of the preprocessed text, which it keeps in a file called STEM-DIGITS.s.
        """
        flags = build.template_flags(self.context.root, self.template_set, size)
        found: set[tuple[str, int]] = set()
        for source in self.template_set.sources:
            argv = [self.context.clang, f"--target={self.template_set.port.triple}", "-E", *flags, str(source)]
            done = self._run(argv)
            for name, text in ((source.name, source.read_text(errors="replace")), (f"{source.stem}.s", done.stdout)):
                found |= {(name, number) for number in _span(text.splitlines(), template)}
        return found


def _read(depfile: Path) -> list[str]:
    """The files that a make rule of the compiler names; none where it wrote no rule."""
    try:
        rule = depfile.read_text().replace("\\\n", " ")
    except FileNotFoundError:
        return []
    names = re.findall(r"(?:\\.|[^\s\\])+", rule.partition(": ")[2])
    return [re.sub(r"\\(.)", r"\1", name).replace("$$", "$") for name in names]


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _keep(kept: Path, key: str, read: dict[str, Path], assembled: Assembled) -> None:
    plain = dataclasses.asdict(assembled) | {"object": assembled.object.name if assembled.object else None}
    half = kept.with_suffix(".part")
    hashes = {name: _hash(path) for name, path in read.items()}
    half.write_text(json.dumps({"key": key, "read": hashes, "assembled": plain}))
    half.replace(kept)


def _take(kept: Path, key: str, root: Path) -> Assembled | None:
    """What was kept, where command, compiler and every file that was read are the same."""
    try:
        data = json.loads(kept.read_text())
        if data["key"] != key or any(_hash(root / path) != digest for path, digest in data["read"].items()):
            return None
        plain = data["assembled"]
        obj = kept.with_name(plain["object"]) if plain["object"] else None
        if obj is not None and not obj.is_file():
            return None
        refusals = [Refusal(**one) for one in plain["refusals"]]
        return Assembled(obj, refusals, [(f, n, t) for f, n, t in plain["errors"]], plain["text"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _span(lines: list[str], template: Template) -> range:
    marks = [
        next((n for n, line in enumerate(lines, 1) if re.match(rf"\s*{re.escape(symbol)}\s*:", line)), 0)
        for symbol in (template.begin, template.end)
    ]
    return range(marks[0], marks[1] + 1) if all(marks) else range(0)
