"""execmem-cts: the conformance suite for executable-memory allocators and their thunk templates."""

__version__ = "0.1.0"
