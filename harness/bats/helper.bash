# Loaded by every .bats file: `load helper`.
# shellcheck shell=bash
bats_require_minimum_version 1.5.0

root="$(cd "$BATS_TEST_DIRNAME/../.." && pwd)"
export PYTHON="${PYTHON:-/usr/bin/python3}"

# Skips, and says why, unless every program named is there.
requires() {
	local program
	for program in "$@"; do
		command -v "$program" >/dev/null || skip "needs $program: toolchains/setup --for test"
	done
}

# Names of the ports, found by their manifests.
ports() {
	local manifest
	for manifest in "$root"/arch/*/port.toml; do
		manifest="${manifest%/port.toml}"
		echo "${manifest##*/}"
	done
}

# Runs a command for each port, two at a time; shows what failed and fails if one did. {} stands for the port.
for_each_port() {
	ports | xargs -P 2 -I '{}' "$@"
}

# A copy of the parts of the tree that the checks of ci/ look at, as a repository of its own, in $tree; the checks are
# pointed at it.
copy_of_tree() {
	tree="$BATS_TEST_TMPDIR/tree"
	mkdir "$tree"
	(cd "$root" && cp -r --parents arch asm ci ref toolchains conformance harness CMakePresets.json .clang-format \
		.clang-tidy .gitignore pyproject.toml Makefile "$tree")
	git -C "$tree" init -q
	export EXECMEM_LINT_ROOT="$tree"
}

# Leaves two ports in the copy, which is quicker where each is compiled.
two_ports() {
	local name
	for name in $(ports | sed '1d;$d'); do
		rm -r "$tree/arch/$name"
	done
}
