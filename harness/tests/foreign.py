"""Small templates of many machines for the tests of the oracles: assembled here, described here, known to no port."""

from __future__ import annotations

import subprocess
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

from execmem_cts import tools
from execmem_cts.model import Configuration, Field, PathSpec, Port, Rule, Runner, Template, TemplateSet, Through
from execmem_cts.oracles import Context, host_checks
from execmem_cts.process import run

ROOT = Path(__file__).resolve().parents[2]
PAGE = 16384


def port(name: str, triple: str, machine: str, rules: list[Rule], **changes: Any) -> Port:
    given: dict[str, Any] = {
        "name": name,
        "directory": ROOT / "arch" / name,
        "triple": triple,
        "pointer_bytes": 8,
        "endianness": "little",
        "elf_machine": machine,
        "compile_flags": (),
        "weakly_ordered": True,
        "emulator_argv": (),
        "stub_pages": (PAGE,),
        "general": ("r0", "r1", "r2"),
        "aliases": {},
        "objdump_argv": (),
        "rules": tuple(rules),
    }
    others: dict[str, Any] = {f.name: "" for f in fields(Port) if f.default is MISSING}  # of no concern to the oracles
    return Port(**{**others, **given, **changes})


def path(lands: str, *reads: str, **changes: Any) -> PathSpec:
    given: dict[str, Any] = {"name": "call", "entry": "begin", "reads": reads or (lands,), "lands": lands}
    return PathSpec(**{**given, **changes})


def template(*paths: PathSpec, width: int = 8, **changes: Any) -> Template:
    """A record of two words: Data, Target."""
    given: dict[str, Any] = {
        "name": "foreign",
        "kind": "other",
        "begin": "begin",
        "end": "end",
        "pitch": 64,
        "record_size": 2 * width,
        "record_stride": 64,
        "record_offset": 0,
        "data_distance": None,
        "mode_bit": 0,
        "fields": (Field("Data", 0, width, "value"), Field("Target", width, width, "target")),
        "paths": paths or (path("Target", "Data", "Target"),),
        "patches": (),
    }
    return Template(**{**given, **changes})


def through(field: str, width: int, direction: str) -> Through:
    return Through(field, 0, width, direction)


@dataclass
class Bench:
    """One template on one port, assembled in `directory`."""

    directory: Path
    port: Port
    template: Template
    source: str
    landing_pads: bool = False
    flags: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()

    @property
    def template_set(self) -> TemplateSet:
        source = self.directory / "foreign.S"
        if not source.exists() or source.read_text() != self.source:
            source.write_text(self.source)
        return TemplateSet(
            port=self.port,
            subject="foreign",
            variant="plain",
            sources=(source,),
            include_directories=(),
            defines=self.defines,
            assemble_flags=self.flags,
            stub_pages=self.port.stub_pages,
            landing_pads=self.landing_pads,
            templates=(self.template,),
        )

    def assemble(self) -> Path:
        chosen, obj = self.template_set, self.directory / "templates.o"
        argv = [tools.find().clang, f"--target={self.port.triple}", "-c", f"-DEXECMEM_STUB_PAGE={PAGE}", *self.flags]
        subprocess.run([*argv, str(chosen.sources[0]), "-o", str(obj)], check=True)
        return obj

    def judge(self, check: str) -> tuple[str, str]:
        """Verdict and message of a host check."""
        found = tools.find()
        obj = self.assemble()
        context = Context(
            found.clang, found.objdump, found.mc, ROOT, self.directory, obj, self.directory / "po", (), run
        )
        configuration = Configuration(self.template_set, PAGE, 4096, Runner.HOST)
        (one,) = host_checks[check].run(configuration, context)
        return one.verdict, one.message
