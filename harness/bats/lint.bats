#!/usr/bin/env bats
# The checks of ci/checks that are our own: each is shown something wrong in a copy of the tree, and must see it.

# shellcheck disable=SC2154 # root and tree are set by helper.bash
load helper

setup() {
	requires git
	check="$root/ci/checks"
	port="$(ports | head -1)"
	other="$(ports | tail -1)"
	copy_of_tree
	cd "$tree" || return
}

@test "the copy, as it is, is clean" {
	for name in ports toolchains presets paths mustpass; do
		run -0 "$check/$name"
	done
}

@test "mustpass: a check that a release required is there, or was renamed" {
	local list
	list="$(printf '%s\n' conformance/mustpass/*/conform.txt | head -1)"
	echo "PO-001 MUST po_name_of_old" >>"$list"
	run -1 "$check/mustpass"
	[[ "$output" == *"$list: po_name_of_old (PO-001) is no check any more"* ]]
	printf '[[renamed]]\nold = "po_name_of_old"\nnew = "%s"\nsince = "9.0.0"\n' \
		"$(awk '$1 == "PO-001" { print $3; exit }' "$list")" >>conformance/aliases.toml
	run -0 "$check/mustpass"
}

@test "ports: a list of ports in code is found, with file and line" {
	printf 'PORTS = ["%s", "%s"]\n' "$port" "$other" >harness/execmem_cts/planted.py
	run -1 "$check/ports"
	[[ "$output" == *"harness/execmem_cts/planted.py:1: names the port $port"* ]]
	[[ "$output" == *"harness/execmem_cts/planted.py:1: names the port $other"* ]]
}

@test "ports: one name is enough in code, in C, shell, Python and TOML" {
	printf '/* fine: %s */\nint on_%s;\nconst char *name = "%s";\n' "$port" "$port" "$port" >ref/planted.c
	printf '#!/bin/sh\n# fine: %s\necho %s\n' "$port" "$port" >ci/planted
	printf '"""Fine: %s."""\n\nONLY = "%s"  # fine: %s\n' "$port" "$port" "$port" >harness/execmem_cts/planted.py
	printf '# fine: %s\nport = "%s"\n' "$port" "$port" >conformance/planted.toml
	run -1 "$check/ports"
	[ "$(grep -c 'names the port' <<<"$output")" -eq 4 ]
	for line in ref/planted.c:3: ci/planted:3: harness/execmem_cts/planted.py:3: conformance/planted.toml:2:; do
		[[ "$output" == *"$line names the port $port"* ]]
	done
}

@test "ports: a test may name one port, but not list several" {
	printf 'ONE = "%s"\n' "$port" >harness/tests/test_planted.py
	run -0 "$check/ports"
	printf 'SOME = [\n    "%s",\n    "%s",\n]\n' "$port" "$other" >harness/tests/test_planted.py
	run -1 "$check/ports"
	[[ "$output" == *"harness/tests/test_planted.py:2: names the port $port"* ]]
}

@test "ports: a port's own files, faults and documentation may name it" {
	mkdir -p conformance/faults
	echo "/* */ int $port;" >"arch/$port/planted.h"
	echo "port = \"$port\"" >conformance/faults/planted.toml
	echo "$port and $other" >planted.md
	run -0 "$check/ports"
}

@test "ports: a port that grows too large is found" {
	two_ports
	yes '# a line' | head -700 >"arch/$port/notes.txt"
	run -1 "$check/ports"
	[[ "$output" == *"$port: "*" lines in its own files, at most 700 are a port"* ]]
}

@test "ports: a new port is found without being listed" {
	cp -r "arch/$port" arch/newport
	echo 'name = "newport"' >conformance/planted.toml
	run -1 "$check/ports"
	[[ "$output" == *"conformance/planted.toml:1: names the port newport"* ]]
}

@test "toolchains: another triple, emulator or flag than port.toml's is found" {
	sed -i 's/^set(EXECMEM_TRIPLE .*/set(EXECMEM_TRIPLE vax-unknown-linux)/' "toolchains/$port.cmake"
	sed -i "s/^exe_wrapper = .*/exe_wrapper = ['qemu-vax']/" "toolchains/$port.meson"
	sed -i 's/^set(EXECMEM_FLAGS.*/set(EXECMEM_FLAGS -mvax)/' "toolchains/$other.cmake"
	run -1 "$check/toolchains"
	[[ "$output" == *"toolchains/$port.cmake: triple: 'vax-unknown-linux'"* ]]
	[[ "$output" == *"toolchains/$port.meson: emulator: ['qemu-vax']"* ]]
	[[ "$output" == *"toolchains/$other.cmake: flags: ['-mvax']"* ]]
	[ "${#lines[@]}" -eq 3 ]
}

@test "toolchains: a missing file and one without a port are found" {
	rm "toolchains/$port.meson"
	cp "toolchains/$port.cmake" toolchains/vax.cmake
	run -1 "$check/toolchains"
	[[ "$output" == *"toolchains/$port.meson: is missing"* ]]
	[[ "$output" == *"toolchains/vax.cmake: there is no arch/vax/port.toml"* ]]
}

@test "presets: a file that is not current is found, with the difference; make presets mends it" {
	cp -r "arch/$port" arch/newport
	run -1 "$check/presets"
	[[ "$output" == *'+      "name": "newport"'* ]]
	[[ "$output" == *"make presets"* ]]
	run -0 toolchains/presets
	run -0 "$check/presets"
	rm CMakePresets.json
	run -1 "$check/presets"
}

@test "headers: one that needs another before it, and one that cannot come twice, are found" {
	two_ports
	printf '#pragma once\nuint32_t planted_alone(void);\n' >ref/include/execmem/planted_alone.h
	printf 'enum planted { PLANTED_TWICE };\n' >ref/include/execmem/planted_twice.h
	run -1 "$check/headers"
	[[ "$output" == *"ref/include/execmem/planted_alone.h: does not compile alone and twice"* ]]
	[[ "$output" == *"ref/include/execmem/planted_twice.h: does not compile alone and twice"* ]]
}

@test "namespace: a global without the prefix, in C or assembly, is found; so is an exception that nothing needs" {
	two_ports
	printf 'int planted_c(void);\nint planted_c(void)\n{\n\treturn 0;\n}\n' >ref/planted.c
	printf '\t.globl planted_asm\nplanted_asm:\n' >"arch/$port/planted.S"
	cp "arch/$port/planted.S" "arch/$other/planted.S"
	run -1 "$check/namespace"
	[[ "$output" == *": global, and without the prefix execmem_: "*planted_c* ]] # on one port of each pointer size
	[[ "$output" == *"$port: global, and without the prefix execmem_: planted_asm"* ]]
	[[ "$output" == *"$other: global, and without the prefix execmem_: planted_asm"* ]]

	rm ref/planted.c "arch/$port/planted.S" "arch/$other/planted.S"
	echo 'planted_exception   why' >>ci/namespace.txt
	run -1 "$check/namespace"
	[[ "$output" == *"ci/namespace.txt: nothing defines planted_exception"* ]]
}

@test "paths: a place of one machine is found; part of a longer path or an address is not" {
	# shellcheck disable=SC2016 # text
	printf 'https://example.org/%s/page and a/%s/b and ${x}/%s/y\n' home root work >planted.md
	run -0 "$check/paths"
	printf 'see /%s/someone/notes\n' home >>planted.md
	run -1 "$check/paths"
	[[ "$output" == *"planted.md:2:"* ]]
}

@test "clang-format, clang-tidy, shellcheck, shfmt, black and mypy each turn red" {
	requires clang-format-19 clang-tidy-19 shellcheck shfmt
	printf 'int execmem_planted(int a);\nint execmem_planted(int a) { return   a; }\n' >ref/planted.c
	run ! "$check/clang-format"
	[[ "$output" == *"ref/planted.c"* ]]

	printf 'int execmem_planted(int a);\n\nint execmem_planted(int a)\n{\n\treturn a && a;\n}\n' >ref/planted.c
	find arch ref conformance -name '*.c' ! -name planted.c -delete
	run ! "$check/clang-tidy"
	[[ "$output" == *"both sides of operator are equivalent"* ]]

	rm -rf harness ci/planted
	mkdir -p ci
	# shellcheck disable=SC2016 # text
	printf '#!/bin/bash\nrm $1\n' >ci/planted
	run ! "$check/shell"
	[[ "$output" == *"SC2086"* ]]
	printf '#!/bin/bash\nif true; then\n  true\nfi\n' >ci/planted
	run ! "$check/shell"
	[[ "$output" == *"ci/planted"* ]]

	printf '#!/usr/bin/python3\nx = {  }\n' >ci/planted
	run ! "$check/python"
	[[ "$output" == *"would reformat"*"planted"* ]]
	printf '#!/usr/bin/python3\nx: int = "1"\n' >ci/planted
	run ! "$check/python"
	[[ "$output" == *"Incompatible types in assignment"* ]]
}

@test "ci/lint fails if one check fails, shows its output, and passes if all pass" {
	run -0 "$root/ci/lint" presets paths
	[[ "$output" == *"lint: ok   presets"* ]]
	rm CMakePresets.json
	run -1 "$root/ci/lint" presets paths
	[[ "$output" == *"lint: FAIL presets"* ]]
	[[ "$output" == *"lint: ok   paths"* ]]
	[[ "$output" == *"make presets"* ]]
	run -2 "$root/ci/lint" no-such-check
}
