#!/usr/bin/env bats
# The library by the presets, on every port; apart from toolchains.bats, so that both are run at once.

# shellcheck disable=SC2154 # root is set by helper.bash
load helper

@test "the library builds for every port by its preset, keeps to its names, and a program that uses it runs" {
	requires cmake ninja
	nm="llvm-nm$("$root/toolchains/setup" --meson | sed -n "s/^llvm = '\(.*\)'/\1/p")"
	for port in $(ports); do
		run -0 cmake -S "$root" --preset "$port" -B "$BATS_TEST_TMPDIR/$port"
		run -0 cmake --build "$BATS_TEST_TMPDIR/$port"
		run -0 ctest --test-dir "$BATS_TEST_TMPDIR/$port" --no-tests=error
		run -0 "$BATS_TEST_DIRNAME/fixtures/check-archive" "$nm" "$BATS_TEST_TMPDIR/$port/libexecmem.a"
	done
}
