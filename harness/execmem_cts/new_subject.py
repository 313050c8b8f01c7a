"""new-subject: an adapter to be filled in, with every operation of the claims as the headers declare it.

What is written builds and runs at once: each operation answers SUBJECT_ERROR_UNSUPPORTED, so that the first checks fail
and say what is missing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2

from . import subjects
from .source import ManifestError

NAME = re.compile(r"^[a-z][a-z0-9_-]*$")

TOML = """\
# {{ name }}, to be judged by execmem-cts. conformance/subject.schema.json is the grammar, conformance/subjects/README.md
# the reference. Paths are relative to this file; {checkout} stands for the folder given with --checkout.
#
#   execmem-cts run --subject {{ path }}{{ " --port " ~ (objects | first) if objects else "" }}
schema = 1
name = "{{ name }}"
about = "{{ name }}"
claims = [{% for claim in claims %}"{{ claim }}"{{ ", " if not loop.last }}{% endfor %}] # what is offered, and so tested
{% if hosted %}
hosted = true                # needs a C library; its system calls are caught
{% endif %}
sources = ["{{ stem }}.c"]
# include_directories = ["include"]
# compile_flags = ["-DMINE"]
{% if hosted %}
# libraries = ["stdc++"]
{% endif %}
{% for port, files in objects.items() %}

[ports.{{ port }}]
objects = [{% for file in files %}"{{ file }}"{{ ", " if not loop.last }}{% endfor %}]
{% endfor %}
"""

SOURCE = """\
/*
 * {{ name }} as execmem-cts sees it. Each operation is to call yours; what it must do stands in
 * {{ headers | join(", ") }}.
 */
{% if hosted %}
#include <hosted/hosted.h>
{% endif %}
{% for header in headers %}
#include <{{ header }}>
{% endfor %}
{% for f in functions %}

static {{ f.result }}{{ f.name }}({{ f.parameters }})
{
{% if f.over %}
	return {{ f.over }}(NULL, {{ f.arguments | join(", ") }});
{% else %}
{% if f.operation == "create_over" and hosted %}
	hosted_over({{ f.arguments[0] }}); /* from now on, calls of the system go there; null: to the system itself */
{% endif %}
{% for argument in (f.arguments[1:] if f.operation == "create_over" and hosted else f.arguments) %}
	(void){{ argument }};
{% endfor %}
{% if f.answer %}
	return {{ f.answer }};
{% endif %}
{% endif %}
}
{% endfor %}
{% for layer in layers %}

static const struct {{ layer.type }} {{ layer.member }} = {
{% for f in layer.functions %}
	.{{ f.operation }} = {{ f.name }},
{% endfor %}
};
{% endfor %}

const struct subject subject = {
	.version = SUBJECT_VERSION,
{% for f in single %}
	.{{ f.operation }} = {{ f.name }},
{% endfor %}
{% for layer in layers %}
	.{{ layer.member }} = &{{ layer.member }},
{% endfor %}
};
"""


@dataclass
class Function:
    """An operation as the header declares it, and what stands for it in the adapter."""

    operation: str
    name: str
    result: str  # with the space or the star behind it
    parameters: str
    arguments: tuple[str, ...]  # the names of the parameters
    answer: str  # "": returns nothing
    over: str = ""  # of a hosted subject's create: the function that does the same over a table


@dataclass
class Layer:
    """A table of operations: its type, the member of `struct subject` that names it, what is offered of it."""

    type: str
    member: str
    functions: list[Function]


def _parameters(text: str) -> list[str]:
    """The parameters of a declaration: split at commas that stand in no parentheses."""
    parts, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _table(header: str, kind: str) -> str:
    """The members of a structure that a header defines."""
    found = re.search(rf"^struct {kind} \{{(.*?)^\}};", header, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


def _function(table: str, operation: str, prefix: str) -> Function:
    declared = re.search(
        rf"^\t(?P<result>[\w ]+?[ *]+)\(\*{operation}\)\((?P<parameters>.*?)\);", table, re.MULTILINE | re.DOTALL
    )
    if not declared:
        raise ManifestError(f"conformance/subject*.h: no declaration of {operation} was found; declare it in one piece")
    parameters = " ".join(declared["parameters"].split())
    names = tuple(
        match.group(1) or match.group(2)
        for part in _parameters(parameters)
        if (match := re.search(r"\(\*(\w+)\)|(\w+)$", part)) and part != "void"
    )
    result = declared["result"]
    answers = {"int": "SUBJECT_ERROR_UNSUPPORTED", "void": "", "bool": "false"}
    answer = answers.get(result.strip(), "0" if "enum" not in result else f"({result.strip()})0")
    return Function(operation, prefix + operation, result, parameters, names, answer)


def _layers(root: Path, claims: Sequence[str], hosted: bool) -> tuple[list[str], list[Layer], list[Function]]:
    """The headers, the tables of operations, and the operations that subject.h has by itself."""
    texts = {path.name: path.read_text() for path in (root / "conformance").glob("subject*.h")}
    layers: dict[str, Layer] = {}
    single: list[Function] = []
    for claim in claims:
        for header, names in subjects.operations(root)[claim].items():
            if header == "subject.h":
                single += [_function(_table(texts[header], "subject"), name, "") for name in names]
                continue
            kind = re.search(r"^struct (subject_\w+_operations) \{", texts[header], re.MULTILINE)
            member = kind and re.search(rf"const struct {kind[1]} \*(\w+);", texts["subject.h"])
            if not kind or not member:
                raise ManifestError(f"conformance/{header}: no table of operations that struct subject names")
            layer = layers.setdefault(header, Layer(kind[1], member[1], []))
            table = _table(texts[header], kind[1])
            layer.functions += [_function(table, name, f"{member[1]}_") for name in names]
    return sorted({"subject.h", *layers}), list(layers.values()), single


def _check(root: Path, folder: Path, name: str, claims: Sequence[str]) -> None:
    if not NAME.match(name):
        raise ManifestError(f"new-subject {name}: expected a name of a-z, 0-9, _ and -; give one with --name")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ManifestError(f"new-subject {folder}: is there already, and not empty; name a folder to be made")
    known = subjects.claims(root)
    for claim in claims:
        if claim not in known:
            raise ManifestError(f"--claim {claim}: no such claim; known are {', '.join(known)}")
    if name in subjects.discover(root):
        raise ManifestError(f"new-subject {name}: the tree has a subject of this name; give another with --name")


def write(
    root: Path, folder: Path, name: str, claims: Sequence[str], hosted: bool, objects: Mapping[str, Sequence[Path]]
) -> list[Path]:
    """Writes the folder; the files in it. `objects`: prebuilt ones by port. Raises ManifestError."""
    claims = list(dict.fromkeys(claims))
    _check(root, folder, name, claims)
    headers, layers, single = _layers(root, claims, hosted)
    for layer in layers:
        by_operation = {f.operation: f for f in layer.functions}
        if hosted and "create_over" in by_operation and "create" in by_operation:
            by_operation["create"].over = by_operation["create_over"].name
            layer.functions.sort(key=lambda f: f.operation != "create_over")  # declared before it is called
    functions = [*single, *(f for layer in layers for f in layer.functions)]
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, autoescape=False)
    placed = {
        port: [os.path.relpath(path.absolute(), folder.absolute()) for path in paths] for port, paths in objects.items()
    }
    stem = name.replace("-", "_")
    values = {
        "name": name, "stem": stem, "path": os.path.relpath(folder / subjects.MANIFEST), "claims": claims,
        "hosted": hosted, "objects": placed, "headers": headers, "functions": functions, "layers": layers,
        "single": single,
    }  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / subjects.MANIFEST, folder / f"{stem}.c"]
    for path, template in zip(written, (TOML, SOURCE), strict=True):
        path.write_text(environment.from_string(template).render(values))
    return written
