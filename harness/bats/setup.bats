#!/usr/bin/env bats
# toolchains/setup: what it finds, what it says is missing, and when it installs.

# shellcheck disable=SC2154 # root and tree are set by helper.bash
load helper

# A PATH for each test: what setup calls, for real; what it looks for, as a stub that tells a version. A test takes some
# away or puts others in their place.
setup_file() {
	root="$(cd "$BATS_TEST_DIRNAME/../.." && pwd)"
	bin="$BATS_FILE_TMPDIR/bin"
	mkdir "$bin"
	local program
	for program in bash awk grep sed sort paste fold mktemp rm cp cat dirname env; do
		ln -s "$(command -v "$program")" "$bin/$program"
	done
	for program in ninja bats chromedriver chromium cmake gcc git luajit pkg-config shellcheck shfmt strace ld.lld-19 llvm-mc-19 llvm-objdump-19 llvm-nm-19 \
		clang-format-19 clang-tidy-19 clang-19 $(sed -n 's/^argv = \["\([^"]*\)".*/\1/p' "$root"/arch/*/port.toml); do
		stub "$program"
	done
	mkdir -p "$BATS_FILE_TMPDIR/resources/lib/linux"
	touch "$BATS_FILE_TMPDIR/resources/lib/linux/libclang_rt.fuzzer.a"
	# Files that clang finds: by name, for a triple in a folder of its name.
	local triple
	sed -n 's/.*\btriple = "\([a-z0-9_]*-linux-gnu[a-z]*\)".*/\1/p' "$root"/arch/*/port.toml | while read -r triple; do
		mkdir -p "$BATS_FILE_TMPDIR/files/$triple"
		touch "$BATS_FILE_TMPDIR/files/$triple/libc.a" "$BATS_FILE_TMPDIR/files/$triple/libgcc.a"
	done
	touch "$BATS_FILE_TMPDIR/files/libasmjit.a"
	stub clang-19 "case \"\$*\" in
		-print-resource-dir) echo '$BATS_FILE_TMPDIR/resources' ;;
		--target=*\ -print-file-name=*) echo \"$BATS_FILE_TMPDIR/files/\${1#--target=}/\${2#*=}\" ;;
		-print-file-name=*) echo \"$BATS_FILE_TMPDIR/files/\${1#*=}\" ;;
		*) echo 'stub 1.2.3' ;;
		esac"
	stub id 'echo 0'
}

setup() {
	cp -a "$BATS_FILE_TMPDIR/bin" "$BATS_TEST_TMPDIR/bin"
	bin="$BATS_TEST_TMPDIR/bin"
	mkdir "$BATS_TEST_TMPDIR/away"
	# Installs nothing: writes down how it was called, and puts back what the test took away.
	stub apt-get "echo \"\$*\" >>'$BATS_TEST_TMPDIR/apt-get.log'
		[[ \$1 != install ]] || cp '$BATS_TEST_TMPDIR'/away/* '$bin'"
}

# A program with a text of its own ($2), or that tells a version. It compiles whatever it is given.
stub() {
	printf '#!/bin/bash\n%s\n' "${2:-echo "stub 1.2.3"}" >"$bin/$1"
	chmod +x "$bin/$1"
}

take_away() {
	mv "${@/#/$bin/}" "$BATS_TEST_TMPDIR/away"
}

run_setup() {
	env -u EXECMEM_NO_INSTALL -u EXECMEM_LLVM_VERSION PATH="$bin" "$@"
}

@test "with everything there it says what it found, by version, and installs nothing" {
	run -0 env -u EXECMEM_LLVM_VERSION "$root/toolchains/setup" --for test --check
	[[ "$output" =~ "LLVM "[0-9.]+": clang" ]]
	[[ "$output" =~ "ninja "[0-9.]+ ]]
	[[ "$output" =~ "python3 3."[0-9.]+ ]]
	[[ "$output" =~ "qemu-"[a-z0-9_]+" "[0-9.]+ ]]
	run -0 run_setup "$root/toolchains/setup" --for test
	[[ "$output" == *"LLVM 1.2.3: clang-19, ld.lld-19, llvm-mc-19, llvm-objdump-19"* ]]
	[ ! -e "$BATS_TEST_TMPDIR/apt-get.log" ]
}

@test "something missing, and not allowed to install: the exact command, status 3, nothing installed" {
	take_away ninja bats
	run -3 run_setup EXECMEM_NO_INSTALL=1 "$root/toolchains/setup" --for test
	[[ "$output" == *"missing: ninja: builds them"* ]]
	[[ "$output" == *"to install it: apt-get install -y --no-install-recommends bats ninja-build"* ]]
	run -3 run_setup "$root/toolchains/setup" --for test --check
	[[ "$output" == *"to install it: apt-get install -y --no-install-recommends bats ninja-build"* ]]
	[ ! -e "$BATS_TEST_TMPDIR/apt-get.log" ]
}

@test "something missing, and not root: the exact command, status 3" {
	take_away ninja
	stub id 'echo 1000'
	run -3 run_setup "$root/toolchains/setup"
	[[ "$output" == *"to install it: apt-get install -y --no-install-recommends ninja-build"* ]]
	[ ! -e "$BATS_TEST_TMPDIR/apt-get.log" ]
}

@test "something missing, and root: it says so, installs exactly that, and looks again" {
	take_away ninja
	run -0 run_setup "$root/toolchains/setup"
	[[ "$output" == *"installing: apt-get install -y --no-install-recommends ninja-build"* ]]
	[[ "$output" =~ "ninja "[0-9.]+ ]]
	[ "$(cat "$BATS_TEST_TMPDIR/apt-get.log")" = "install -y --no-install-recommends ninja-build" ]
}

@test "an installation that fails is tried once more behind apt-get update, then given up with status 3" {
	take_away ninja
	stub apt-get "echo \"\$*\" >>'$BATS_TEST_TMPDIR/apt-get.log'; [[ \$1 == update ]]"
	run -3 run_setup "$root/toolchains/setup"
	[ "$(cut -d ' ' -f 1 "$BATS_TEST_TMPDIR/apt-get.log" | paste -sd ' ')" = "install update install" ]
	[[ "$output" == *"by hand: apt-get install -y --no-install-recommends ninja-build"* ]]
}

@test "an installation that brings nothing ends with status 3" {
	take_away ninja
	stub apt-get true
	run -3 run_setup "$root/toolchains/setup"
	[[ "$output" == *"installed, and still missing"* ]]
}

@test "a missing C library is named with its port, and its packages are those of the port's manifest" {
	mv "$BATS_FILE_TMPDIR/files/i686-linux-gnu/libgcc.a" "$BATS_FILE_TMPDIR/files/libasmjit.a" "$BATS_TEST_TMPDIR"
	run -0 run_setup "$root/toolchains/setup" --for conform --check
	run -3 run_setup "$root/toolchains/setup" --for test --check
	mv "$BATS_TEST_TMPDIR/libgcc.a" "$BATS_FILE_TMPDIR/files/i686-linux-gnu"
	mv "$BATS_TEST_TMPDIR/libasmjit.a" "$BATS_FILE_TMPDIR/files"
	[[ "$output" == *"missing: the C library of x86: "* && "$output" == *"missing: libasmjit.a: "* ]]
	[[ "$output" == *"--no-install-recommends libasmjit-dev libc6-dev-i386-cross libgcc-12-dev-i386-cross" ]]
}

@test "tools for the tests alone do not hold up the conformance run" {
	take_away bats shellcheck clang-tidy-19
	run -0 run_setup "$root/toolchains/setup" --for conform --check
	run -3 run_setup "$root/toolchains/setup" --for test --check
	[[ "$output" == *"install -y --no-install-recommends bats clang-tidy-19 shellcheck"* ]]
}

@test "a missing emulator is named with its ports" {
	port="$(ports | head -1)"
	emulator="$(sed -n 's/^argv = \["\([^"]*\)".*/\1/p' "$root/arch/$port/port.toml" | head -1)"
	take_away "$emulator"
	run -3 run_setup "$root/toolchains/setup" --check
	[[ "$output" == *"missing: $emulator (for $port)"* ]]
	[[ "$output" == *"--no-install-recommends qemu-user"* ]]
}

@test "missing Python modules are those of \$PYTHON, not of the first python3 on PATH" {
	stub python3 'echo "not this one" >&2; exit 1'
	run -0 run_setup "$root/toolchains/setup" --check
	printf '#!/bin/bash\nexec /usr/bin/python3 -S "$@"\n' >"$BATS_TEST_TMPDIR/bare"
	chmod +x "$BATS_TEST_TMPDIR/bare"
	run -3 run_setup PYTHON="$BATS_TEST_TMPDIR/bare" "$root/toolchains/setup" --check
	[[ "$output" == *"Python module click"* ]]
	[[ "$output" == *"python3-click"* ]]
	run -3 run_setup PYTHON="$BATS_TEST_TMPDIR/none" "$root/toolchains/setup" --check
	[[ "$output" == *"--no-install-recommends python3 python3-click"* ]]
}

@test "another version of LLVM is taken when it is complete and has every back end, and --meson names it" {
	for tool in clang ld.lld llvm-mc llvm-objdump; do
		mv "$bin/$tool-19" "$bin/$tool-20"
	done
	run -0 run_setup "$root/toolchains/setup" --check
	[[ "$output" == *"clang-20, ld.lld-20, llvm-mc-20, llvm-objdump-20"* ]]
	run -0 run_setup "$root/toolchains/setup" --meson
	[ "${lines[0]}" = "[constants]" ]
	[ "${lines[1]}" = "llvm = '-20'" ]
}

@test "an LLVM without a port's back end is refused, and the port named" {
	port="$(ports | head -1)"
	triple="$(sed -n 's/^triple = "\([^"]*\)".*/\1/p' "$root/arch/$port/port.toml" | head -1)"
	stub clang-19 "[[ \$* != *--target=$triple* ]]"
	run -3 run_setup "$root/toolchains/setup" --check
	[[ "$output" == *"clang-19 has no back end for $port ($triple)"* ]]
	[[ "$output" == *"--no-install-recommends clang-19"* ]]
	run -3 run_setup EXECMEM_LLVM_VERSION=7 "$root/toolchains/setup" --check
	[[ "$output" == *"clang-7"* ]]
}

@test "--help teaches, and a wrong argument is status 2" {
	run -0 run_setup "$root/toolchains/setup" --help
	[[ "$output" == *"EXECMEM_NO_INSTALL=1"* ]]
	[[ "$output" == *"exit status: 0"* ]]
	run -2 run_setup "$root/toolchains/setup" --for everything
	run -2 run_setup "$root/toolchains/setup" --frobnicate
}

@test "every Python module that the harness imports is in packages.txt" {
	run -0 "$PYTHON" - "$root" <<-'TEXT'
		import ast, pathlib, re, sys
		root = pathlib.Path(sys.argv[1])
		listed = set(re.findall(r"python:(\w+)", (root / "toolchains/packages.txt").read_text()))
		used = {}
		for path in [*root.glob("harness/execmem_cts/**/*.py"), *root.glob("harness/tests/**/*.py")]:
		    for node in ast.walk(ast.parse(path.read_text())):
		        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
		        names += [node.module] if isinstance(node, ast.ImportFrom) and not node.level and node.module else []
		        used.update({name.split(".")[0]: path for name in names})
		own = {"execmem_cts", "conftest"} | {p.stem for p in root.glob("harness/tests/**/*.py")}
		missing = set(used) - listed - set(sys.stdlib_module_names) - own
		sys.exit(", ".join(f"{name} ({used[name]})" for name in sorted(missing)) or 0)
	TEXT
}
