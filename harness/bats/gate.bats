#!/usr/bin/env bats
# ci/gate: what it calls, which status it ends with, and that the YAML around it has no logic of its own.
# The suite is played by a script that notes its arguments: what the suite does has tests of its own.
# shellcheck disable=SC2030,SC2031 # each test exports for itself

setup() {
	gate="$BATS_TEST_DIRNAME/../../ci/gate"
	export EXECMEM_SETUP=0 EXECMEM_OUT="$BATS_TEST_TMPDIR/out" EXECMEM_CTS="$BATS_TEST_TMPDIR/cts"
	export LOG="$BATS_TEST_TMPDIR/log" RUN_STATUS=0 MERGE_STATUS=0 GATE_STATUS=0 WRITES=1
	unset CI_NODE_INDEX CI_NODE_TOTAL JOB_COMPLETION_INDEX SLURM_ARRAY_TASK_ID EXECMEM_SHARD EXECMEM_EXPECT GITHUB_STEP_SUMMARY
	cat >"$EXECMEM_CTS" <<'TEXT'
#!/bin/bash
echo "$*" >>"$LOG"
name="${1^^}_STATUS"
folder=
while [[ $# -gt 0 ]]; do
	case "$1" in --results | --output) folder="$2" ;; esac
	shift
done
mkdir -p "$folder"
[[ $name == GATE_STATUS ]] && echo "# summary" >"$folder/summary.md"
[[ $WRITES == 1 ]] && touch "$folder/results.jsonl"
exit "${!name}"
TEXT
	chmod +x "$EXECMEM_CTS"
}

@test "all runs with the options given, and ends as the gate does" {
	export RUN_STATUS=1 GATE_STATUS=0 EXECMEM_EXPECT=known.toml
	run "$gate" all --port x --jobs 1
	[ "$status" -eq 0 ]
	grep -q "^run --profile conform --results $EXECMEM_OUT/run --quiet --port x --jobs 1$" "$LOG"
	grep -q "^gate --results $EXECMEM_OUT/run --profile conform --output $EXECMEM_OUT --expect known.toml$" "$LOG"
	for expected in 1 2 3 4; do
		export GATE_STATUS=$expected
		run "$gate" all
		[ "$status" -eq "$expected" ]
	done
}

@test "a run without results is never green" {
	export WRITES=0
	for ended in 0 1 2 3 4; do
		export RUN_STATUS=$ended
		run "$gate" all
		[ "$status" -ge 2 ] && [ "$status" -le 3 ]
		[[ $output == *"the run ended with $ended and wrote no results"* ]]
	done
	run grep -q '^gate' "$LOG"
	[ "$status" -eq 1 ]
}

@test "results of an earlier run are not judged again" {
	mkdir -p "$EXECMEM_OUT/run"
	touch "$EXECMEM_OUT/run/results.jsonl"
	export WRITES=0
	run "$gate" all
	[ "$status" -eq 3 ]
}

@test "a shard ends with 0 where it wrote results, and names its folder by its number" {
	export RUN_STATUS=4 EXECMEM_SHARD=2/3
	run "$gate" shard
	[ "$status" -eq 0 ]
	grep -q "^run .*--results $EXECMEM_OUT/shards/2 .*--shard 2/3$" "$LOG"
	unset EXECMEM_SHARD
	CI_NODE_INDEX=1 CI_NODE_TOTAL=2 run "$gate" shard
	grep -q "^run .*--results $EXECMEM_OUT/shards/1 .*--shard auto$" "$LOG"
}

@test "the verdict joins what is there, and a merge that refuses is the verdict" {
	export MERGE_STATUS=1 GATE_STATUS=0
	run "$gate" verdict
	[ "$status" -eq 0 ]
	export MERGE_STATUS=3 WRITES=0
	run "$gate" verdict
	[ "$status" -eq 3 ]
	[ "$(grep -c '^gate' "$LOG")" -eq 1 ]
}

@test "the job's summary gets the Markdown" {
	export GITHUB_STEP_SUMMARY="$BATS_TEST_TMPDIR/summary" GATE_STATUS=1
	run "$gate" all
	[ "$status" -eq 1 ]
	grep -q '^# summary$' "$GITHUB_STEP_SUMMARY"
}

@test "a step that there is not is usage" {
	for argument in "" nonsense "verdict --port x"; do
		# shellcheck disable=SC2086 # several arguments
		run "$gate" $argument
		[ "$status" -eq 2 ]
	done
}
