"""mustpass: the checks that a release requires, and what changed since an earlier one."""

from __future__ import annotations

import sys

import click

from .. import __version__, verdict
from ..source import ManifestError
from .base import ROOT, guarded, main


@main.command()
@click.option("--profile", default="conform", show_default=True, help="What is required: the name of a profile.")
@click.option("--write", is_flag=True, help="Write the list of this version, as is done at a release.")
@click.option("--check", is_flag=True, help="Is every check of every release still there, or renamed?")
@click.option("--since", metavar="VERSION", help="Upgrade notes from this release: what is new, renamed, gone.")
@guarded
def mustpass(profile: str, write: bool, check: bool, since: str | None) -> None:
    """The checks that must pass: of this tree, or what changed since a release.

    \b
    execmem-cts mustpass                        requirement, level and check, one a line
    execmem-cts mustpass --since 0.1.0          upgrade notes, in Markdown
    execmem-cts mustpass --write                at a release: conformance/mustpass/VERSION/PROFILE.txt
    execmem-cts mustpass --check                what `ci/lint mustpass` runs
    execmem-cts gate --mustpass 0.1.0           judge by the checks of that release, and leave later ones out

    A list is what a profile requires of any port, by any runner. Where a runner cannot show a requirement, the profile and
    the port's manifest say so, with the reason. A list that was released stays as it is; a check that is renamed keeps its
    old name in conformance/aliases.toml.

    Exit status: 0; 1 a check of a release is neither there nor renamed (--check).
    """
    from .. import tree as trees
    from ..gate import aliases
    from ..gate import mustpass as lists

    if write + check + bool(since) > 1:
        raise ManifestError("mustpass: give one of --write, --check and --since")
    tree = trees.load_tree(ROOT, profile)
    checks = trees.checks_of(tree)
    renamed = aliases.load(ROOT, checks)
    now = lists.wanted(tree.requirements, tree.profile)
    if since:
        before = lists.read(ROOT, since, tree.profile.name)
        click.echo(lists.notes(lists.since(before, now, checks, renamed), since, tree.requirements), nl=False)
    elif check:
        sys.exit(verdict.REGRESSION if _lost(tree.profile.name, checks, renamed) else 0)
    elif write:
        path = lists.path_of(ROOT, __version__, tree.profile.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(lists.text(now, tree.profile))
        click.echo(f"written: {path.relative_to(ROOT)}: {len(now)} checks")
    else:
        click.echo(lists.text(now, tree.profile), nl=False)


def _lost(profile: str, checks: dict[str, str], renamed: dict[str, str]) -> int:
    """Says which checks of releases are gone, and counts them."""
    from ..gate import aliases
    from ..gate import mustpass as lists

    count = 0
    for version in lists.versions(ROOT, profile):
        for entry in lists.since(lists.read(ROOT, version, profile), [], checks, renamed).lost:
            where = lists.path_of(ROOT, version, profile).relative_to(ROOT)
            click.echo(
                f"{where}: {entry.check} ({entry.requirement}) is no check any more; bring it back, or name what it is "
                f"called now in {aliases.FILE}"
            )
            count += 1
    return count
