#!/usr/bin/env bats
# The toolchain files: a project of a user's own builds and runs with them, on every port.

# shellcheck disable=SC2154 # root and tree are set by helper.bash
load helper

setup_file() {
	root="$(cd "$BATS_TEST_DIRNAME/../.." && pwd)"
	"$root/toolchains/setup" --meson >"$BATS_FILE_TMPDIR/llvm.meson"
}

@test "a user's CMake project of C and assembly builds, and runs through the emulator, on every port" {
	requires cmake ninja
	run -0 for_each_port "$BATS_TEST_DIRNAME/fixtures/try-project" cmake "$root" "$BATS_FILE_TMPDIR" '{}'
	for port in $(ports); do
		[ -x "$BATS_FILE_TMPDIR/$port/build/hello" ]
	done
}

@test "a user's Meson project of C and assembly builds, and runs through the emulator, on every port" {
	requires meson ninja
	mkdir "$BATS_FILE_TMPDIR/meson"
	cp "$BATS_FILE_TMPDIR/llvm.meson" "$BATS_FILE_TMPDIR/meson"
	run -0 for_each_port "$BATS_TEST_DIRNAME/fixtures/try-project" meson "$root" "$BATS_FILE_TMPDIR/meson" '{}'
	for port in $(ports); do
		[ -x "$BATS_FILE_TMPDIR/meson/$port/build/hello" ]
	done
}

@test "a failing test of a user's project is a failure" {
	requires cmake ninja
	port="$(ports | head -1)"
	cp -r "$BATS_FILE_TMPDIR/$port" "$BATS_TEST_TMPDIR/user"
	cd "$BATS_TEST_TMPDIR/user"
	rm -r build
	sed -i 's/hello one two/hello one/' CMakeLists.txt
	run -0 cmake -S . -B build -G Ninja --toolchain "$root/toolchains/$port.cmake"
	run -0 cmake --build build
	run ! ctest --test-dir build
	[[ "$output" == *"1 tests failed out of 1"* ]]
}

@test "headers and libraries of the build machine are out of reach" {
	requires cmake ninja
	port="$(ports | head -1)"
	mkdir "$BATS_TEST_TMPDIR/user"
	cd "$BATS_TEST_TMPDIR/user"
	cat >CMakeLists.txt <<-'TEXT'
		cmake_minimum_required(VERSION 3.21)
		project(user LANGUAGES C)
		find_library(libc NAMES c m pthread)
		find_path(headers stdio.h)
		message(STATUS "library: ${libc} headers: ${headers}")
		add_library(user STATIC user.c)
	TEXT
	echo '#include <stdio.h>' >user.c
	run -0 cmake -S . -B build -G Ninja --toolchain "$root/toolchains/$port.cmake"
	[[ "$output" == *"library: libc-NOTFOUND headers: headers-NOTFOUND"* ]]
	run ! cmake --build build
	[[ "$output" == *"'stdio.h' file not found"* ]]
}

@test "without a clang that has the back end, CMake says what was tried and what to install" {
	requires cmake ninja
	port="$(ports | head -1)"
	mkdir "$BATS_TEST_TMPDIR/bin"
	printf '#!/bin/sh\necho "error: unknown target" >&2\nexit 1\n' >"$BATS_TEST_TMPDIR/bin/clang-19"
	chmod +x "$BATS_TEST_TMPDIR/bin/clang-19"
	for program in cmake ninja; do
		ln -s "$(command -v "$program")" "$BATS_TEST_TMPDIR/bin"
	done
	run ! env PATH="$BATS_TEST_TMPDIR/bin" cmake -S "$BATS_TEST_DIRNAME/fixtures/user-cmake" \
		-B "$BATS_TEST_TMPDIR/build" -G Ninja --toolchain "$root/toolchains/$port.cmake" \
		-D CMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF
	[[ "$output" == *"toolchains/$port.cmake: no clang on PATH"* ]]
	[[ "$output" == *"apt-get install clang-19 lld-19 llvm-19"* ]]
}

@test "without a port, CMake names the ports and how to choose one" {
	requires cmake ninja
	run ! cmake -S "$root" -B "$BATS_TEST_TMPDIR/build" -G Ninja -D CMAKE_C_COMPILER="$(command -v cc || command -v clang)"
	[[ "$output" == *"cmake --preset <port>"* ]]
	[[ "$output" == *"The ports: $(ports | paste -sd ',' | sed 's/,/, /g')"* ]]
}
