"""The command line: a module for each group of commands, which adds them to `main`."""

from . import audit, faults, gate, hotspot, mustpass, new_port, reporting, running, subjects, tables
from .base import main

__all__ = [
    "audit",
    "faults",
    "gate",
    "hotspot",
    "main",
    "mustpass",
    "new_port",
    "reporting",
    "running",
    "subjects",
    "tables",
]
