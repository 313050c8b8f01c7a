"""What the user selected of the suite."""

from __future__ import annotations

from dataclasses import dataclass

from .model import ALLOC, Configuration, Runner


@dataclass(frozen=True)
class Filter:
    """The user's selection. Empty: everything."""

    ports: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    stub_pages: tuple[int, ...] = ()
    os_pages: tuple[int, ...] = ()
    families: tuple[str, ...] = ()
    only: tuple[str, ...] = ()  # check, requirement or check.point
    keys: frozenset[str] | None = None  # result keys: --last-failed
    native: bool | None = None  # None: where it works

    def wants_cell(self, c: Configuration) -> bool:
        if self.variants and c.template_set.variant not in self.variants:
            return False
        if self.stub_pages and c.stub_page not in self.stub_pages:
            return False
        if self.os_pages and c.runner is not Runner.HOST and c.os_page not in self.os_pages:
            return False
        if self.native is False and c.runner is Runner.NATIVE:
            return False
        return self.keys is None or any(key.startswith(f"{c.key}/") for key in self.keys)

    def wants_alloc(self, cell: str, page: int, runner: Runner) -> bool:
        """A cell of the allocator families. It has neither variants nor stub pages: asking for those leaves it out."""
        if self.stub_pages or (self.variants and ALLOC not in self.variants):
            return False
        if self.os_pages and page not in self.os_pages:
            return False
        if self.native is False and runner is Runner.NATIVE:
            return False
        return self.keys is None or any(key.startswith(f"{cell}/") for key in self.keys)

    def wants_check(self, check: str, requirement: str) -> bool:
        if self.families and requirement.split("-", 1)[0] not in self.families:
            return False
        return not self.only or any(o in (requirement, check) or o.startswith(f"{check}.") for o in self.only)

    def points(self, cell: str, check: str, requirement: str) -> list[str]:
        """The points asked for one by one; empty: all."""
        if self.keys is not None:
            keys = [key for key in self.keys if key.startswith(f"{cell}/{check}.")]
            return sorted(key.rsplit(".", 1)[1] for key in keys)
        if check in self.only or requirement in self.only:
            return []
        return [o.split(".", 1)[1] for o in self.only if o.startswith(f"{check}.")]
