"""Subjects that are not the tree's: where they are found, prebuilt objects, hosted ones, what is wrong with them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from execmem_cts import hosted, manifest, new_subject, objects, subjects, tools
from execmem_cts.source import ManifestError

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = Path(__file__).parent / "fixtures" / "subjects"
QUICK = ("--port", "x64", "--no-native", "--variant", "alloc", "--os-page", "4K", "--family", "JA", "--quiet")
EMPTY = "#include <subject.h>\nconst struct subject subject = {.version = SUBJECT_VERSION};\n"


def called(*argv: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [str(ROOT / "harness" / "execmem-cts"), *map(str, argv)]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False, env={**os.environ, **environment}
    )


def judged(results: Path, *argv: str | Path, quick: Sequence[str] = QUICK) -> tuple[str, dict[str, str]]:
    """What was printed, and the verdict of each check of family JA that ran."""
    done = called("run", *argv, *quick, "--results", results)
    found = {}
    for line in (results / "results.jsonl").read_text().splitlines():
        record = json.loads(line)
        if str(record.get("requirement", "")).startswith("JA-") and record["verdict"] != "SKIP":
            found[f"{record['port']}/{record['os_page']}/{record['check']}"] = record["verdict"]
    return done.stdout + done.stderr, found


def subject(folder: Path, text: str, **files: str) -> Path:
    """A folder with this subject.toml and these C files."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "subject.toml").write_text(text)
    for name, source in files.items():
        (folder / f"{name}.c").write_text(source)
    return folder / "subject.toml"


def object_for(triple: str, source: Path, output: Path) -> Path:
    flags = ["-ffreestanding", "-O2", f"--target={triple}", "-I", str(ROOT / "conformance"), "-c"]
    subprocess.run([tools.find().clang, *flags, str(source), "-o", str(output)], check=True)
    return output


def archive_of(member: Path) -> Path:
    ar = Path(os.path.realpath(tools.find().objdump)).with_name("llvm-ar")
    output = member.with_suffix(".a")
    subprocess.run([str(ar), "rcs", str(output), str(member)], check=True)
    return output


# ---- Found ----


def test_a_subject_is_found_in_a_folder_that_is_one_and_in_one_that_holds_some() -> None:
    for folder in (FIXTURES, FIXTURES / "plain"):
        assert subjects.find(ROOT, "plain", [folder]) == FIXTURES / "plain" / "subject.toml"
    assert subjects.find(ROOT, "ref", [FIXTURES]) == ROOT / "conformance/subjects/ref/subject.toml"


def test_the_variable_names_folders_as_the_option_does(tmp_path: Path) -> None:
    assert subjects.search_path([tmp_path], f"{FIXTURES}:{ROOT}") == [tmp_path, FIXTURES, ROOT]
    shown = called("subjects", EXECMEM_SUBJECT_PATH=str(FIXTURES))
    assert shown.returncode == 0 and "\nspellings: " in f"\n{shown.stdout}" and "blocks-os-table" in shown.stdout


def test_two_subjects_of_one_name_are_refused(tmp_path: Path) -> None:
    for name in ("one", "two"):
        subject(tmp_path / name, 'schema = 1\nname = "same"\n')
    with pytest.raises(ManifestError, match=r"two/subject.toml:2: name: 'same' is the name of .*one.*; rename one"):
        subjects.discover(ROOT, [tmp_path])


def test_a_folder_that_is_not_there_or_holds_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="--subject-path .*/absent: no such folder; name one"):
        subjects.search_path([tmp_path / "absent"], "")
    with pytest.raises(ManifestError, match="EXECMEM_SUBJECT_PATH .*/absent: no such folder"):
        subjects.search_path([], str(tmp_path / "absent"))
    with pytest.raises(ManifestError, match="expected subject.toml, .* found none; `execmem-cts new-subject`"):
        subjects.discover(ROOT, [tmp_path])
    with pytest.raises(ManifestError, match="--subject nobody: no such subject; there are .*plain.*--subject-path"):
        subjects.find(ROOT, "nobody", [FIXTURES])


def test_every_operation_of_the_headers_belongs_to_a_claim() -> None:
    known = subjects.operations(ROOT)
    for header in (ROOT / "conformance").glob("subject_*.h"):
        for table in re.findall(r"^struct subject_\w+_operations \{(.*?)^\};", header.read_text(), re.M | re.S):
            declared = re.findall(r"^\t[\w ]+?[ *]+\(\*(\w+)\)\(", table, re.M)
            assert declared and sorted(declared) == sorted(n for c in known.values() for n in c.get(header.name, ()))
    assert known["stub-pages"] == {"subject.h": ("fill_stub_page",)}


# ---- Prebuilt ----


@pytest.fixture(scope="module")
def from_sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    said, found = judged(tmp_path_factory.mktemp("plain"), "--subject-path", FIXTURES, "--subject", "plain")
    assert found and "FAIL" not in found.values(), said
    return found


@pytest.mark.long
@pytest.mark.xdist_group("prebuilt")
@pytest.mark.parametrize("archived", [False, True])
def test_a_prebuilt_part_is_judged_as_its_sources_are(
    tmp_path: Path, from_sources: dict[str, str], archived: bool
) -> None:
    shutil.copytree(FIXTURES / "plain", tmp_path / "plain")
    port = manifest.load_port(ROOT / "arch/x64/port.toml", ROOT)
    file = object_for(port.triple, tmp_path / "plain/pages.c", tmp_path / "plain/pages.o")
    file = archive_of(file) if archived else file
    (tmp_path / "plain/pages.c").unlink()
    text = f'schema = 1\nname = "plain"\nclaims = ["blocks", "blocks-os-table"]\nsources = ["plain.c"]\n'
    path = subject(tmp_path / "plain", text + f'[ports.x64]\nobjects = ["{file.name}"]\n')
    said, found = judged(tmp_path / "results", "--subject", path)
    assert found == from_sources, said
    assert f"run --subject {path}" in said or "FAIL" not in found.values()


def test_an_archive_is_read_member_by_member(tmp_path: Path) -> None:
    (tmp_path / "a_name_of_more_than_sixteen_characters.c").write_text(
        "int asked(void); int f(void) { return asked(); }"
    )
    made = object_for("aarch64-linux", *(tmp_path / f"a_name_of_more_than_sixteen_characters{s}" for s in (".c", ".o")))
    names = [name for name, _ in objects.members(archive_of(made))]
    assert names == ["a_name_of_more_than_sixteen_characters.a(a_name_of_more_than_sixteen_characters.o)"]
    assert objects.undefined(made.with_suffix(".a")) == {"asked"}


def wrong_machine(folder: Path) -> str:
    (folder / "x.c").write_text("int x;\n")
    return object_for("aarch64-linux", folder / "x.c", folder / "x.o").name


def wrong_member(folder: Path) -> str:
    return archive_of(folder / wrong_machine(folder)).name


def no_object(folder: Path) -> str:
    (folder / "x.o").write_text("no object at all\n")
    return "x.o"


def cut_short(folder: Path) -> str:
    path = archive_of(folder / wrong_machine(folder))
    path.write_bytes(path.read_bytes()[:-100])
    return path.name


def linked(folder: Path) -> str:
    made = object_for("x86_64-linux", *[(folder / wrong_machine(folder)).with_suffix(s) for s in (".c", ".o")])
    subprocess.run([tools.find().lld, "-shared", str(made), "-o", str(folder / "x.so")], check=True)
    return "x.so"


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (wrong_machine, r"x.o is for EM_AARCH64 \(64 bits, .*\), expected EM_X86_64 \(64 bits.*; build it for x86_64-"),
        (wrong_member, r"x.a\(x.o\) is for EM_AARCH64 .*, expected EM_X86_64 .*; build it for x86_64-"),
        (no_object, r"x.o is no object and no archive: .*; build it for x86_64-"),
        (cut_short, r"x.a is no object and no archive: an archive that is cut short at byte \d+; build it"),
        (linked, r"x.so is linked already \(ET_DYN\), expected an object or an archive"),
    ],
)
def test_what_is_no_object_for_the_port_is_refused(tmp_path: Path, made: object, said: str) -> None:
    assert callable(made)
    path = subject(
        tmp_path, f'schema = 1\nname = "mine"\nclaims = ["blocks"]\n\n[ports.x64]\nobjects = ["{made(tmp_path)}"]\n'
    )
    ports = manifest.discover_ports(ROOT)
    with pytest.raises(ManifestError, match=rf"subject.toml:6: ports.x64.objects: .*{said}"):
        manifest.load_subject(path, ROOT, ports)


# ---- Bad input, on the command line ----

HEAD = 'schema = 1\nname = "mine"\nclaims = ["blocks"]\n'
BLOCKS = """\
#include <subject.h>
#include <subject_blocks.h>
static int create(struct subject_blocks **b) { (void)b; return -1; }
static int allocate(struct subject_blocks *b, size_t n, struct subject_block *o) { (void)b; (void)o; return n ? -1 : 0; }
static int release(struct subject_blocks *b, const struct subject_block *o) { (void)b; (void)o; return -1; }
static int write(struct subject_blocks *b, const struct subject_block *o, size_t at, const void *c, size_t n)
{ (void)b; (void)o; (void)at; (void)c; (void)n; return -1; }
static const struct subject_blocks_operations blocks = {
	.create = create, .allocate = allocate, .release = release, .write = write };
const struct subject subject = {.version = SUBJECT_VERSION, .blocks = &blocks};
"""


@pytest.mark.parametrize(
    ("text", "sources", "said"),
    [
        ('schema = 2\nname = "mine"\n', {}, "subject.toml:1: schema: expected 1, found 2; use a newer execmem-cts"),
        (HEAD.replace('"blocks"', '"blocks", "blocks"'), {}, "claims[1]: 'blocks' is there twice; remove one"),
        (HEAD.replace('"blocks"', '"bloks"'), {}, "claims[0]: unknown claim 'bloks'; known are"),
        (HEAD + 'libraries = ["m"]\n', {}, "libraries: is there without a C library; say `hosted = true`"),
        (
            HEAD + 'sources = ["a.c"]\n',
            {"a": EMPTY},
            "the subject claims and does not offer: blocks, operation create",
        ),
        (
            HEAD.replace('"blocks"', '"blocks", "blocks-destroy"') + 'sources = ["a.c"]\n',
            {"a": BLOCKS},
            "the subject claims and does not offer: blocks-destroy, operation destroy",
        ),
        (
            HEAD + 'sources = ["a.c"]\n',
            {"a": BLOCKS.replace(".write = write", ".write = write, .make = (void *)create")},
            "the subject offers and does not claim: blocks-make, operation make",
        ),
        (
            HEAD + 'sources = ["a.c"]\n',
            {"a": BLOCKS.replace("return n ? -1 : 0;", "extern int lost(void); return n ? lost() : 0;")},
            "mine does not link on x64: undefined symbol lost; name the source or the object that defines it",
        ),
        (
            HEAD + 'sources = ["a.c", "b.c"]\n',
            {"a": BLOCKS, "b": EMPTY},
            "mine does not link on x64: duplicate symbol subject; remove one of the sources or objects",
        ),
        (
            HEAD + 'hosted = true\nlibraries = ["no_such_library"]\nsources = ["a.c"]\n',
            {"a": BLOCKS},
            "libraries: no libno_such_library.a for x86_64-linux-gnu; install the package",
        ),
    ],
)
def test_bad_input_is_one_line_and_status_2(tmp_path: Path, text: str, sources: dict[str, str], said: str) -> None:
    path = subject(tmp_path / "mine", text, **sources)
    done = called("run", "--subject", path, *QUICK, "--results", tmp_path / "results")
    lines = done.stderr.strip().splitlines()
    assert done.returncode == 2 and len(lines) == 1 and said in lines[0], done.stdout + done.stderr
    assert "mine/subject.toml" in lines[0] or "in mine" in lines[0]


def test_a_port_without_a_c_library_is_named(tmp_path: Path) -> None:
    path = subject(tmp_path, HEAD + 'hosted = true\nsources = ["a.c"]\n', a=BLOCKS)
    ports = manifest.discover_ports(ROOT)
    mine = manifest.load_subject(path, ROOT, ports)
    without = [port for port in ports.values() if port.hosted is None]
    assert without
    with pytest.raises(ManifestError, match=rf"needs a C library, and {without[0].name} has none: .*\[hosted\]"):
        hosted.check(mine, without, tools.find())


# ---- Hosted ----


def there_is_a_c_library() -> list[str]:
    """Ports of which this machine has the C library."""
    mine = manifest.load_subject(FIXTURES / "spellings/subject.toml", ROOT, manifest.discover_ports(ROOT))
    found = []
    for port in manifest.discover_ports(ROOT).values():
        try:
            hosted.check(mine, [port], tools.find())
        except (ManifestError, tools.ToolError):
            continue
        found.append(port.name)
    return found


@pytest.mark.long
@pytest.mark.parametrize("port", [port.name for port in manifest.discover_ports(ROOT).values() if port.hosted])
def test_every_spelling_of_every_call_is_caught(tmp_path: Path, port: str) -> None:
    """Recorded (JA-010), at simulated pages (JA-007), refused one by one (JA-011)."""
    if port not in there_is_a_c_library():
        pytest.skip(f"the C library of {port} is missing: toolchains/setup --for test installs it")
    quick = [*(port if part == "x64" else part for part in QUICK), "--os-page", "64K"]
    said, found = judged(tmp_path, "--subject-path", FIXTURES, "--subject", "spellings", quick=quick)
    assert {v for v in found.values()} <= {"PASS", "NA"}, said
    for check in ("4096/ja_extents", "65536/ja_extents", "65536/ja_multiples", "4096/ja_refused", "4096/ja_threads"):
        assert found[f"{port}/{check}"] == "PASS", said
    assert re.search(rf"note: spellings on {port}: calls of .*mmap64, .*syscall, .* are caught; .* is not seen", said)


def test_what_is_caught_is_what_the_folder_defines() -> None:
    caught = hosted.wrapped(ROOT)
    assert {"mmap", "mmap64", "syscall", "sysconf", "getpagesize", "shm_open", "execmem_port_fork"} <= set(caught)
    text = "".join(path.read_text() for path in (ROOT / hosted.FOLDER).glob("*.c"))
    assert set(caught) == set(re.findall(r"\b__wrap_(\w+)\(", text)), "declared, and not defined"
    assert not set(caught) & set(hosted.OTHER_WAYS)


def test_a_way_that_is_not_caught_is_told(tmp_path: Path) -> None:
    text = BLOCKS.replace("return n ? -1 : 0;", "extern void *sbrk(long); return sbrk((long)n) ? -1 : 0;")
    path = subject(tmp_path / "mine", HEAD + 'hosted = true\nsources = ["a.c"]\n', a=text)
    said, found = judged(tmp_path / "results", "--subject", path)
    assert "note: mine on x64: calls of nothing are caught; " in said and "nor are calls of sbrk" in said
    assert found["x64/4096/ja_apart"] == "FAIL"


# ---- new-subject ----


def test_a_new_subject_builds_and_fails_where_it_is_to_be_filled_in(tmp_path: Path) -> None:
    made = called("new-subject", tmp_path / "mine", "--claim", "blocks", "--claim", "blocks-os-table", "--hosted")
    assert made.returncode == 0, made.stderr
    assert "run --subject" in made.stdout
    said, found = judged(tmp_path / "results", "--subject", tmp_path / "mine" / "subject.toml")
    assert found["x64/4096/ja_apart"] == "FAIL" and found["x64/4096/ja_made"] == "NA", said
    assert "UNSUPPORTED" in said


def test_every_claim_can_be_written_at_once(tmp_path: Path) -> None:
    for with_library in (False, True):
        folder = tmp_path / f"all{with_library}"
        new_subject.write(ROOT, folder, folder.name.lower(), subjects.claims(ROOT), with_library, {})
        source = folder / f"{folder.name.lower()}.c"
        flags = ["-std=c11", "-ffreestanding", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
        includes = ["-I", str(ROOT / "conformance"), "-I", str(ROOT / "arch"), "-I", str(ROOT / "arch/x64")]
        subprocess.run([tools.find().clang, *flags, *includes, str(source)], check=True)
        text = source.read_text()
        for tables in subjects.operations(ROOT).values():
            for operations in tables.values():
                assert all(f".{name} = " in text for name in operations)


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--claim", "bloks"], "--claim bloks: no such claim; known are stub-pages"),
        (["--name", "Mine"], "new-subject Mine: expected a name of a-z"),
        (["--name", "ref"], "new-subject ref: the tree has a subject of this name; give another with --name"),
        (["--object", "x64"], "--object x64: expected PORT=FILE; write --object PORT="),
        (["--object", "x65=README.md"], "no port 'x65'; there are "),
        (["--object", "x64=README.md"], "ports.x64.objects: "),
        (["--object", "x64=absent.a"], "no such file: "),
    ],
)
def test_a_new_subject_of_bad_input_is_not_written(tmp_path: Path, argv: list[str], said: str) -> None:
    done = called("new-subject", tmp_path / "mine", *argv)
    assert done.returncode == 2 and said in done.stderr and not (tmp_path / "mine").exists(), done.stderr


def test_a_new_subject_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("mine")
    done = called("new-subject", tmp_path, "--name", "mine")
    assert done.returncode == 2 and "is there already, and not empty" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
