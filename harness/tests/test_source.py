"""Manifest errors: one line that names file, line, field, what was expected, and how to mend it."""

from __future__ import annotations

import dataclasses
import re
import shutil
from pathlib import Path

import pytest

from execmem_cts import manifest
from execmem_cts.model import Template
from execmem_cts.source import ManifestError, Source, locate

ROOT = Path(__file__).resolve().parents[2]
ORIGINAL = sorted((ROOT / "arch").glob("*/port.toml"))[0]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with the schemas, the kinds of template and one port."""
    for name in (
        "arch/port.schema.json",
        "arch/templates.schema.json",
        "arch/templates.toml",
        "conformance/subject.schema.json",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    folder = tmp_path / "arch" / ORIGINAL.parent.name
    folder.mkdir()
    shutil.copy(ORIGINAL, folder / "port.toml")
    return tmp_path


def broken(tree: Path, find: str, replace: str) -> str:
    """The error of the port's manifest with the first match replaced."""
    path = next((tree / "arch").glob("*/port.toml"))
    text, times = re.subn(find, lambda m: replace, path.read_text(), count=1, flags=re.MULTILINE)
    assert times == 1, find
    path.write_text(text)
    with pytest.raises(ManifestError) as raised:
        manifest.discover_ports(tree)
    message = str(raised.value)
    assert "\n" not in message
    assert message.startswith(f"arch/{ORIGINAL.parent.name}/port.toml")
    named = re.match(r"^[^:]+:(\d+): ", message)
    if named:
        assert int(named[1]) <= len(text.splitlines())
    return message


def test_the_ports_of_the_tree_load() -> None:
    ports = manifest.discover_ports(ROOT)
    assert set(ports) == {path.parent.name for path in (ROOT / "arch").glob("*/port.toml")}
    for port in ports.values():
        subject = manifest.load_subject(manifest.subject_path(ROOT, "ref"), ROOT, {port.name: port})
        assert subject.template_sets
        for template_set in subject.template_sets:
            assert template_set.templates and template_set.stub_pages
            for template in template_set.templates:
                assert template.record_stride == template.pitch or template.record_stride > 0


@pytest.mark.parametrize(
    ("find", "replace", "expected"),
    [
        (r"^schema = 1", "schema = 2", r":\d+: schema: expected 1, found 2; use a newer execmem-cts"),
        (r"^triple = .*", "", r"target.triple: is missing; add `triple = \.\.\.`"),
        (r"^endianness = .*", 'endianness = "middle"', r":\d+: target.endianness: .*one of \"little\", \"big\""),
        (
            r"^pointer_bytes = .*",
            'pointer_bytes = "8"',
            r":\d+: target.pointer_bytes: expected one of 4, 8, found \"8\"",
        ),
        (r"^stub = \[", "stub = [12288, ", r":\d+: pages.stub\[0\]: expected a power of two, found 12288"),
        (r"^stub = .*", "stub = []", r":\d+: pages.stub: expected at least 1 entry, found 0"),
        (
            r"^vector_bytes",
            "vector_byte = 1\nvector_bytes",
            r":\d+: registers.vector_byte: unknown key .*did you mean 'vector_bytes'",
        ),
        (r'^argument = \["\w+"', 'argument = ["zz9"', r":\d+: registers.argument\[0\]: 'zz9' is in neither"),
        (r"pattern = \'\^", "pattern = '(", r":\d+: decode.rules\[0\].pattern: not a regular expression"),
        (
            r"^pitch = .*",
            "pitch = 12\nrecord_size = 2",
            r":\d+: template\[0\].fields\[0\].offset: the field lies at 0 to",
        ),
        (
            r"^call = \{",
            'call = { lands = "Nowhere",',
            r":\d+: template\[0\].path.call.lands: no field 'Nowhere'; name one of",
        ),
        (
            r"^call = \{",
            'call = { reads = ["Nothing"],',
            r":\d+: template\[0\].path.call.reads\[0\]: no field 'Nothing'",
        ),
        (r"carries = \{ \w+", "carries = { zz9", r":\d+: template\[0\].path.call.carries.zz9: no register 'zz9'"),
        (r"^call = ", "cull = ", r":\d+: template\[0\].path.cull: no path 'cull'; name one of call, or '\*'"),
        (
            r"^call = \{",
            "call = { carry = 1,",
            r":\d+: template\[0\].path.call.carry: unknown key 'carry'; did you mean",
        ),
        (
            r'^kind = ".*"',
            'kind = "other"',
            r":\d+: template\[0\].kind: .* describes no kind 'other'; name one of stub_",
        ),
        (r'^kind = ".*"', 'name = "mine"', r"template\[0\].kind: is missing; add `kind = "),
        (
            r'^kind = "fixup_precode"',
            'kind = "fixup_precode"\nbegin = "execmem_stub_precode_begin"',
            r"begin: .* is there twice",
        ),
        (r"^pitch = .*", "pitch = { strange = 24 }", r":\d+: template\[0\].pitch: no value for variant"),
        (r"^pitch = .*", 'pitch = "24"', r":\d+: template\[0\].pitch: expected integer or table, found \"24\""),
        (r"^name = .*", 'name = "other"', r":\d+: name: expected '\w+', the folder's name, found 'other'"),
        (r"^triple = .*", "triple = ", r":\d+: not valid TOML"),
    ],
)
def test_a_mistake_is_named(tree: Path, find: str, replace: str, expected: str) -> None:
    assert re.search(expected, broken(tree, find, replace)), broken


def test_the_line_is_the_one_of_the_mistake(tree: Path) -> None:
    path = next((tree / "arch").glob("*/port.toml"))
    message = broken(tree, r"^call = \{", 'call = { lands = "Nowhere",')
    line = int(message.split(":")[1])
    assert "Nowhere" in path.read_text().splitlines()[line - 1]


@pytest.mark.parametrize(
    ("find", "replace", "expected"),
    [
        ('tail = "first"', 'tail = "last"', r"port.toml:\d+: template\[1\].fields\[0\].tail: no path 'last'"),
        (r'^reads = \["Sec', 'reads = ["Sac', r"templates.toml:\d+: template\[0\].path\[0\].reads\[0\]: no field 'Sac"),
        (
            r"^record_words = 3",
            'record_words = "3"',
            r"templates.toml:\d+: template\[0\].record_words: expected integer",
        ),
    ],
)
def test_a_mistake_in_a_kind_is_named(tree: Path, find: str, replace: str, expected: str) -> None:
    path = tree / "arch" / "templates.toml"
    path.write_text(re.sub(find, replace, path.read_text(), count=1, flags=re.MULTILINE))
    with pytest.raises(ManifestError, match=expected):
        manifest.discover_ports(tree)


def test_a_port_goes_before_the_kind_and_may_write_all_itself(tree: Path) -> None:
    def loaded() -> tuple[Template, ...]:
        ports = manifest.discover_ports(tree)
        return (
            manifest.load_subject(subject(tree, 'schema = 1\nname = "mine"\n'), tree, ports).template_sets[0].templates
        )

    path = next((tree / "arch").glob("*/port.toml"))
    text, before = path.read_text(), loaded()
    word = before[0].fields[0].width
    assert [(f.offset, f.width) for f in before[0].fields] == [(0, word), (word, word), (2 * word, 1)]
    path.write_text(text.replace("[template.path]", 'end = "mine"\n[template.path]\n"*" = { ordered = true }', 1))
    after = loaded()
    assert after[0] == dataclasses.replace(
        before[0], end="mine", paths=(dataclasses.replace(before[0].paths[0], ordered=True),)
    )
    assert after[1:] == before[1:]
    full = re.sub(r"^\[\[ports\.\{port\}\.", "[[", FOREIGN[FOREIGN.index("[[ports") :], flags=re.MULTILINE)
    path.write_text(text + "\n" + full.format())
    assert loaded()[-1].name == "thunk" and loaded()[:-1] == before


def test_locate_finds_inline_tables() -> None:
    text = 'a = 1\n[[t]]\nname = "x"\nfields = [\n  { name = "p" },\n  { name = "q" },\n]\n'
    assert locate(text, ["t", 0, "fields", 1, "name"]) == 6
    assert locate(text, ["t", 0, "name"]) == 3
    assert locate(text, ["nothing"]) == 0


def subject(tree: Path, text: str) -> Path:
    path = tree / "mine" / "subject.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    (path.parent / "mine.S").touch()
    return path


FOREIGN = """\
schema = 1
name = "mine"
[ports.{port}]
sources = ["mine.S"]
stub_pages = [4096]
[[ports.{port}.template]]
name = "thunk"
begin = "b"
end = "e"
pitch = 16
record_size = 16
data_distance = "-stub_page"
page_tail = 8
fields = [
  {{ name = "Data", offset = 0, width = 4, role = "value" }},
  {{ name = "Target", offset = -8, width = 4, role = "target", in_page = true }},
]
[[ports.{port}.template.path]]
name = "call"
entry = "begin"
reads = ["Data", "Target"]
lands = "Target"
"""


def test_other_layouts_can_be_described(tree: Path) -> None:
    ports = manifest.discover_ports(tree)
    name = next(iter(ports))
    loaded = manifest.load_subject(subject(tree, FOREIGN.format(port=name)), tree, ports)
    template = loaded.template_sets[0].templates[0]
    assert template.slots(4096) == (4096 - 8) // 16
    assert template.distance(4096) == -4096
    assert template.field_offset(template.fields[1], 4096) == 4088
    assert template.field_distance(template.fields[1], 4096, slot=3) == -4096 + 4088 - 3 * 16
    assert template.field_distance(template.fields[0], 4096, slot=3) == -4096
    assert loaded.template_sets[0].stub_pages == (4096,)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("[ports.", "[ports.zz"), r"ports\.zz\w+: no port"),
        (('["mine.S"]', '["absent.S"]'), r"ports\.\w+\.sources\[0\]: no such file: absent.S"),
        (('["mine.S"]', '["{checkout}/a.S"]'), r"give --checkout DIRECTORY"),
        (('name = "mine"', 'name = "mine"\nclaims = ["everything"]'), r"claims\[0\]: unknown claim 'everything'"),
        (("schema = 1", "schema = 9"), r"schema: expected 1, found 9"),
    ],
)
def test_a_mistake_in_a_subject_is_named(tree: Path, change: tuple[str, str], expected: str) -> None:
    ports = manifest.discover_ports(tree)
    text = FOREIGN.format(port=next(iter(ports))).replace(*change)
    with pytest.raises(ManifestError, match=expected) as raised:
        manifest.load_subject(subject(tree, text), tree, ports)
    assert "\n" not in str(raised.value)


def test_a_valid_manifest_is_not_validated_twice(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest.discover_ports(tree, tree / "cache")
    remembered = list((tree / "cache").iterdir())
    assert len(remembered) == 2  # the port, and the kinds of template
    import jsonschema

    monkeypatch.setattr(jsonschema, "Draft202012Validator", None)
    assert manifest.discover_ports(tree, tree / "cache")


def test_no_port_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="no <port>/port.toml"):
        manifest.discover_ports(tmp_path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="cannot be read"):
        Source(tmp_path / "absent.toml", tmp_path)
