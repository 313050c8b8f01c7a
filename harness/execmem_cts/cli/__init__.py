"""The command line: a module for each group of commands, which adds them to `main`."""

from . import audit, faults, gate, running, subjects, tables
from .base import main

__all__ = ["audit", "faults", "gate", "main", "running", "subjects", "tables"]
