"""The command line: a module for each group of commands, which adds them to `main`."""

from . import audit, faults, gate, hotspot, new_port, running, tables
from .base import main

__all__ = ["audit", "faults", "gate", "hotspot", "main", "new_port", "running", "tables"]
