#!/usr/bin/env bats
# The installed library: a stranger's project finds it, by CMake and by pkg-config, wherever its prefix was moved to.

# shellcheck disable=SC2154 # root and tree are set by helper.bash
load helper

# The port of the machine that the C compiler makes programs for.
native_port() {
	local machine port
	machine="$(cc -dumpmachine)"
	for port in $(ports); do
		! grep -q "^triple = \"${machine%%-*}-" "$root/arch/$port/port.toml" || echo "$port"
	done
}

# The first port of each pointer size: library.bats builds, and looks at, the library of every port.
typical_ports() {
	local port
	for port in $(ports); do
		sed -n "s/^pointer_bytes = /$port /p" "$root/arch/$port/port.toml"
	done | sort -s -u -k 2,2 | cut -d ' ' -f 1
}

setup() {
	fixtures="$BATS_TEST_DIRNAME/fixtures"
}

@test "installed natively, the library serves a program over the C library" {
	requires cc cmake ninja pkg-config
	port="$(native_port)"
	[[ "$port" != "" ]] || skip "this machine is no port: $(cc -dumpmachine)"
	run -0 "$fixtures/install-and-use" "$root" "$BATS_FILE_TMPDIR/native" "$port" native
	# No program start of ours, and the C library's own memory functions.
	run -0 nm "$BATS_FILE_TMPDIR/native/$port/by-pkg-config"
	[[ "$output" == *"U __libc_start_main"* ]]
	[[ ! "$output" =~ \ [Tt]\ (mem(cpy|set|move|cmp)|execmem_port_start) ]]
}

@test "cross-compiled and installed, it serves a program without a C library" {
	requires cmake ninja pkg-config
	[ "$(typical_ports | wc -l)" -ge 2 ]
	run -0 xargs -P 2 -I '{}' "$fixtures/install-and-use" "$root" "$BATS_FILE_TMPDIR/cross" '{}' < <(typical_ports)
	for port in $(typical_ports); do
		[ -x "$BATS_FILE_TMPDIR/cross/$port/by-cmake/consumer" ]
		[ -x "$BATS_FILE_TMPDIR/cross/$port/by-pkg-config" ]
	done
}

@test "a package of one port is refused to a build for another" {
	requires cmake ninja pkg-config
	first="$(typical_ports | head -1)" last="$(ports | tail -1)"
	[ -d "$BATS_FILE_TMPDIR/cross/$first/moved" ]
	run ! cmake -S "$fixtures/consumer" -B "$BATS_TEST_TMPDIR/build" -G Ninja \
		--toolchain "$root/toolchains/$last.cmake" -D CMAKE_PREFIX_PATH="$BATS_FILE_TMPDIR/cross/$first/moved"
	# A package for another pointer size is passed over; of the same size, it says why.
	[[ "$output" == *"it was built for the port $first, and EXECMEM_PORT is $last"* ||
		"$output" == *"32bit"* || "$output" == *"64bit"* ]]
}

@test "another version is refused, by CMake and by pkg-config" {
	requires cmake ninja pkg-config
	port="$(typical_ports | head -1)"
	prefix="$BATS_FILE_TMPDIR/cross/$port/moved"
	cp -r "$fixtures/consumer" "$BATS_TEST_TMPDIR/consumer"
	sed -i 's/find_package(execmem 0.1 /find_package(execmem 0.2 /' "$BATS_TEST_TMPDIR/consumer/CMakeLists.txt"
	run ! cmake -S "$BATS_TEST_TMPDIR/consumer" -B "$BATS_TEST_TMPDIR/build" -G Ninja \
		--toolchain "$root/toolchains/$port.cmake" -D CMAKE_PREFIX_PATH="$prefix"
	[[ "$output" == *'compatible with requested version "0.2"'* ]]
	export PKG_CONFIG_LIBDIR="$prefix/lib/pkgconfig"
	run -0 pkg-config --modversion execmem
	run -0 pkg-config --exact-version="$output" execmem execmem-port
	run ! pkg-config --atleast-version=0.2 execmem
}

@test "a name that is not the library's, defined or needed, is found in the archive" {
	requires cmake ninja pkg-config
	port="$(typical_ports | head -1)"
	suffix="$("$root/toolchains/setup" --meson | sed -n "s/^llvm = '\(.*\)'/\1/p")"
	triple="$(sed -n 's/^triple = "\([^"]*\)".*/\1/p' "$root/arch/$port/port.toml" | head -1)"
	cd "$BATS_TEST_TMPDIR"
	cp "$BATS_FILE_TMPDIR/cross/$port/moved/lib/libexecmem.a" .
	run -0 "$fixtures/check-archive" "llvm-nm$suffix" libexecmem.a
	for code in '_start: defines _start' 'stranger: defines stranger' '.long getenv - .: needs getenv'; do
		cp libexecmem.a planted.a
		case "$code" in
		.long*) printf '\t.data\n\t%s\n' "${code%%: *}" ;;
		*) printf '\t.globl\t%s\n\t.text\n%s:\n' "${code%%: *}" "${code%%: *}" ;;
		esac >planted.s
		"clang$suffix" "--target=$triple" -c planted.s -o planted.o
		"llvm-ar$suffix" q planted.a planted.o
		run -1 "$fixtures/check-archive" "llvm-nm$suffix" planted.a
		[ "$output" = "${code#*: }" ]
	done
	"llvm-ar$suffix" qc empty.a planted.o
	run -1 "$fixtures/check-archive" "llvm-nm$suffix" empty.a
	[[ "$output" == *"only "* ]]
}
