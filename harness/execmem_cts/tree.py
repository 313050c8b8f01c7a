"""What the manifests of the tree say, for whoever judges results: nothing is built here, and nothing run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import manifest, port_path, profile, report, requirements, tools
from .gate import aliases, expectations
from .model import Port

if TYPE_CHECKING:
    from .selection import Filter


@dataclass
class Tree:
    """What the manifests of the tree say."""

    ports: dict[str, Port]
    requirements: dict[str, requirements.Requirement]
    profile: profile.Profile

    def selected(self, chosen: Filter) -> list[Port]:
        for name in chosen.ports:
            if name not in self.ports:
                raise manifest.ManifestError(f"--port {name}: no such port; there are {', '.join(self.ports)}")
        return [port for name, port in self.ports.items() if not chosen.ports or name in chosen.ports]


def load_tree(root: Path, profile_name: str) -> Tree:
    """Raises ManifestError."""
    ports = manifest.discover_ports(root, root / "build" / "manifests")
    known = requirements.load(root)
    chosen = profile.load(profile.profile_path(root, profile_name), root, known)
    return Tree(ports, known, chosen.bind(ports.values()))


def checks_of(tree: Tree) -> dict[str, str]:
    """Every check that a requirement names, and which."""
    return {check: one.id for one in tree.requirements.values() for check in one.checks}


def load_expectations(path: Path | None, root: Path, tree: Tree | None = None) -> list[expectations.Expectation]:
    """Raises ManifestError."""
    if path is None:
        return []
    ports = tree.ports if tree else manifest.discover_ports(root, root / "build" / "manifests")
    known = tree.requirements if tree else requirements.load(root)
    renamed = aliases.load(root, {check for one in known.values() for check in one.checks})
    return expectations.load(path, root, list(ports), list(known), renamed)


def surroundings_of(
    root: Path, header: dict[str, Any], tree: Tree, triples: dict[tuple[str, str], str], disassembles: bool = True
) -> report.Surroundings:
    """What the console needs to show failures of these results. `disassembles`: there is code to be shown."""
    try:
        llvm_mc = tools.find().mc if disassembles else ""
    except tools.ToolError:
        llvm_mc = ""
    subject, checkout = str(header.get("subject")), header.get("checkout")
    repeated = ["run"] if subject == "ref" else ["run", "--subject", subject]
    repeated += ["--checkout", checkout] if checkout else []
    repeated += port_path.options()
    repeated += ["--profile", tree.profile.name] if tree.profile.name != "conform" else []
    return report.Surroundings(root, tree.ports, tree.requirements, header, triples, llvm_mc, tuple(repeated))
