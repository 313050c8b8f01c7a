#!/usr/bin/env bats
# ci/slurm: first with an sbatch that is played by a script, then with Slurm itself, one node on this machine.
# shellcheck disable=SC2030,SC2031,SC2154 # each test exports for itself; root is set by helper.bash

load helper

setup() {
	export EXECMEM_SETUP=0 EXECMEM_OUT="$BATS_TEST_TMPDIR/out" LOG="$BATS_TEST_TMPDIR/log"
	unset CI_NODE_INDEX CI_NODE_TOTAL JOB_COMPLETION_INDEX SLURM_ARRAY_TASK_ID EXECMEM_SHARD EXECMEM_EXPECT EXECMEM_CTS
}

# An sbatch and an execmem-cts that note what they were called with. Each task leaves its shard's results.
played() {
	mkdir "$BATS_TEST_TMPDIR/bin"
	export PATH="$BATS_TEST_TMPDIR/bin:$PATH" EXECMEM_CTS="$BATS_TEST_TMPDIR/bin/cts" GATE_STATUS=0 SUBMITS=1 TASK_STATUS=0
	cat >"$BATS_TEST_TMPDIR/bin/sbatch" <<'TEXT'
#!/bin/bash
echo "sbatch $*" >>"$LOG"
[[ $SUBMITS == 1 ]] || exit 1
for argument; do
	case "$argument" in
	--wrap=*) command="${argument#--wrap=}" ;;
	--array=1-*) count="${argument#--array=1-}" ;;
	--chdir=*) cd "${argument#--chdir=}" ;;
	esac
done
echo 7
for ((task = 1; task <= count; task++)); do
	SLURM_ARRAY_TASK_ID=$task SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_COUNT=$count sh -c "$command" >/dev/null
done
exit "$TASK_STATUS"
TEXT
	cat >"$EXECMEM_CTS" <<'TEXT'
#!/bin/bash
echo "$*" >>"$LOG"
name="$1"
while [[ $# -gt 0 ]]; do
	case "$1" in --results | --output) mkdir -p "$2" && touch "$2/results.jsonl" ;; esac
	shift
done
[[ $name != gate ]] || exit "$GATE_STATUS"
TEXT
	chmod +x "$BATS_TEST_TMPDIR"/bin/*
}

@test "each task is a shard of its own, and the end is the verdict" {
	played
	export CI_NODE_INDEX=1 CI_NODE_TOTAL=2 GATE_STATUS=1 TASK_STATUS=1
	run "$root/ci/slurm" --shards 3 --partition=p -- --port x --only "a b"
	[ "$status" -eq 1 ]
	grep -q -- "^sbatch --parsable --wait --array=1-3 .*--chdir=$root .*--partition=p --wrap=exec ci/gate shard --port x " "$LOG"
	for shard in 1 2 3; do
		grep -q "^run .*--results $EXECMEM_OUT/shards/$shard .*--shard auto --port x --only a b$" "$LOG"
	done
	[[ "$(tail -1 "$LOG")" == "gate --results $EXECMEM_OUT/run "* ]]
}

@test "shards of an earlier array are not judged again" {
	played
	mkdir -p "$EXECMEM_OUT/shards/9"
	run "$root/ci/slurm" --shards 1
	[ "$status" -eq 0 ]
	[ ! -e "$EXECMEM_OUT/shards/9" ]
}

@test "what cannot be submitted has no verdict" {
	played
	export SUBMITS=0
	run "$root/ci/slurm"
	[ "$status" -eq 3 ]
	[[ $output == *"submitted nothing"* ]]
	run ! grep -q '^gate' "$LOG"
}

@test "without Slurm it says so, and mistakes are usage" {
	command -v sbatch >/dev/null || {
		run "$root/ci/slurm"
		[ "$status" -eq 3 ]
		[[ $output == *"sbatch is missing"* ]]
	}
	for argument in "--shards 0" "--shards" "all"; do
		# shellcheck disable=SC2086 # several arguments
		run "$root/ci/slurm" $argument
		[ "$status" -eq 2 ]
	done
	run "$root/ci/slurm" --help
	[ "$status" -eq 0 ]
}

# ---- Slurm itself ----

# A cluster of one node on the loopback, without munge: Debian's daemons, files and ports of its own.
cluster() {
	[[ ${EXECMEM_FULL:-} ]] || skip "runs in make test-full"
	requires sbatch slurmctld slurmd scancel
	folder="$BATS_TEST_TMPDIR/slurm"
	mkdir -p "$folder/state" "$folder/spool"
	local port=$((20000 + $$ % 20000))
	export SLURM_CONF="$folder/slurm.conf"
	cat >"$SLURM_CONF" <<TEXT
ClusterName=one
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
AuthType=auth/none
CredType=cred/none
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/controller.pid
SlurmdPidFile=$folder/node.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
MailProg=/bin/true
KillWait=2
NodeName=one NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=one Default=YES MaxTime=INFINITE State=UP
TEXT
	slurmctld -D -f "$SLURM_CONF" >"$folder/controller.log" 2>&1 3>&- &
	controller=$!
	slurmd -D -N one -f "$SLURM_CONF" >"$folder/node.log" 2>&1 3>&- &
	node=$!
	local tries
	for tries in {1..60}; do
		[[ "$(sinfo --noheader --format=%T 2>/dev/null)" != idle ]] || return 0
		sleep 1
	done
	cat "$folder"/*.log
	echo "no node after $tries tries"
	return 1
}

teardown() {
	[[ ! ${controller:-} ]] || {
		scancel --user "$(id -un)" || true
		kill "$node" "$controller" || true
		wait "$node" "$controller" || true
	}
}

# Results without what differs from run to run: times.
same_in_all_runs() {
	sed -E 's/"seconds":[0-9.e-]+/"seconds":0/; s/"date": "[^"]*"/"date": ""/' "$1" | sort
}

@test "slurm: an array finds what one run finds, byte for byte" {
	cluster
	local port whole=0 array=0
	port="$(ports | head -1)"
	EXECMEM_OUT="$BATS_TEST_TMPDIR/whole" "$root/ci/gate" all --port "$port" --family PO --jobs 1 >/dev/null || whole=$?
	"$root/ci/slurm" --shards 3 -- --port "$port" --family PO --jobs 1 || array=$?
	[ "$whole" -eq "$array" ]
	[ "$(find "$EXECMEM_OUT/shards" -name results.jsonl | wc -l)" -eq 3 ]
	same_in_all_runs "$BATS_TEST_TMPDIR/whole/run/results.jsonl" >"$BATS_TEST_TMPDIR/one"
	same_in_all_runs "$EXECMEM_OUT/run/results.jsonl" >"$BATS_TEST_TMPDIR/other"
	[ "$(grep -c '"verdict":"PASS"' "$BATS_TEST_TMPDIR/one")" -gt 50 ]
	cmp "$BATS_TEST_TMPDIR/one" "$BATS_TEST_TMPDIR/other"
}

@test "slurm: a worker that is killed leaves a verdict that names its shard" {
	cluster
	local port
	port="$(ports | head -1)"
	# The second task ends itself as a machine that goes down would: no file is closed, nothing is said.
	cat >"$BATS_TEST_TMPDIR/cts" <<TEXT
#!/bin/bash
[[ \${SLURM_ARRAY_TASK_ID:-} != 2 ]] || kill -9 0
exec "$root/harness/execmem-cts" "\$@"
TEXT
	chmod +x "$BATS_TEST_TMPDIR/cts"
	EXECMEM_CTS="$BATS_TEST_TMPDIR/cts" run "$root/ci/slurm" --shards 3 -- --port "$port" --only po_decode_access --jobs 1
	[ "$status" -eq 3 ]
	[[ $output =~ "missing shard 2/3: "[1-9][0-9]*" of "[0-9]+" planned checks have no result" ]]
}
