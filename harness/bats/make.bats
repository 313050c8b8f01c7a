#!/usr/bin/env bats
# The Makefile's contract with the README and CI.

# shellcheck disable=SC2154 # root and tree are set by helper.bash
load helper

@test "make alone prints help, which names every public target" {
	run -0 make -s -C "$root"
	[ "$output" = "$(make -s -C "$root" help)" ]
	for target in conform test test-full lint format presets clean; do
		[[ "$output" == *"  $target "* ]]
	done
}

@test "conform and test set up first, and conform runs the profile" {
	run -0 make -s --no-print-directory -C "$root" --dry-run conform
	[[ "${lines[0]}" == *"toolchains/setup --for conform"* ]]
	[[ "$output" == *"execmem-cts run --profile conform"* ]]
	run -0 make -s --no-print-directory -C "$root" --dry-run test
	[[ "$output" == *"toolchains/setup --for test"* ]]
	for part in ci/lint pytest harness/bats faults; do
		[[ "$output" == *"$part"* ]]
	done
}

@test "a tool that is missing stops make conform before anything is built" {
	run ! env EXECMEM_NO_INSTALL=1 EXECMEM_LLVM_VERSION=1 make -C "$root" conform
	[[ "$output" == *"missing: clang-1:"* ]]
	[[ "$output" == *"apt-get install -y --no-install-recommends"* ]]
}

@test "CI's verdict is make test's" {
	run -0 cat "$root/.ci/run"
	[ "${lines[-1]}" = "exec make test" ]
}
