"""What the tests of .NET's tables share: traces made of a text, and small ones of the generator."""

from __future__ import annotations

from pathlib import Path

from execmem_cts.tables import dotnet, dotnet_rw, trace

ROOT = Path(__file__).resolve().parents[2]
HEAD = "execmem-trace 1\n"


def parsed(text: str) -> trace.Trace:
    return trace.parse((HEAD + text).splitlines(True), "t")


def small(tmp_path: Path, **change: str) -> dotnet.Parameters:
    """The committed parameters with an application of 60 methods in place of theirs."""
    text = (ROOT / dotnet_rw.PARAMETERS).read_text().split("[[profile]]")[0]
    for key, value in change.items():
        assert f"\n{key} = " in text
        text = "\n".join(f"{key} = {value}" if line.startswith(f"{key} = ") else line for line in text.splitlines())
    path = tmp_path / "parameters.toml"
    counts = 'jitted = 20\ncode_bytes = 6000\nprepared = 40\nsource = { jitted = "a test" }\n'
    path.write_text(f'{text}\n[[profile]]\nname = "small"\n{counts}')
    return dotnet.load(path)
