"""The black-box audit: a model of the address space of a program that cannot be wrapped, and what in it breaks W^X.

From the bottom up: `events` is what a runner tells, `kinds` what can be found, `files` the identity of what is mapped,
`space` one address space, `model` turns events into findings. `strace`, `plugin` and `qemu_strace` read one runner each and
know nothing of the model; `run` chooses the runner; `report` prints.
"""
