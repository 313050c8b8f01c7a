"""The command line: a module for each group of commands, which adds them to `main`."""

from . import audit, faults, gate, mustpass, reporting, running, tables
from .base import main

__all__ = ["audit", "faults", "gate", "main", "mustpass", "reporting", "running", "tables"]
