"""The order of the tests: those that take long are begun first, so that all workers end together."""

from __future__ import annotations

import pytest


@pytest.hookimpl(tryfirst=True)  # xdist adds the groups to the names behind this
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("long") is None)
