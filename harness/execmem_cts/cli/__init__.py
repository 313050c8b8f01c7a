"""The command line: a module for each group of commands, which adds them to `main`."""

from . import audit, faults, gate, reporting, running, tables
from .base import main

__all__ = ["audit", "faults", "gate", "main", "reporting", "running", "tables"]
