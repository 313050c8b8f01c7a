#!/usr/bin/env bats
# ci/schemas: the CI files and SARIF are valid. Downloads nothing: where the validators were not fetched, it is skipped.
# shellcheck disable=SC2154 # root is set by helper.bash

load helper

@test "the CI files and SARIF are valid by their public schemas" {
	[[ -e $root/build/schemas/packages ]] || skip "needs the validators: ci/schemas fetches them"
	run -0 "$root/ci/schemas" --offline
	[ "$(grep -c ': valid$' <<<"$output")" -eq 4 ]
}

@test "without validators and offline it says what is missing" {
	local copy="$BATS_TEST_TMPDIR/copy"
	mkdir -p "$copy/ci" "$BATS_TEST_TMPDIR/bin"
	cp "$root/ci/schemas" "$copy/ci"
	printf '#!/bin/sh\n' >"$BATS_TEST_TMPDIR/bin/node"
	chmod +x "$BATS_TEST_TMPDIR/bin/node"
	PATH="$BATS_TEST_TMPDIR/bin:$PATH" run -3 "$copy/ci/schemas" --offline
	[[ $output == *"run it without --offline"* ]]
	run -2 "$copy/ci/schemas" --nonsense
}
