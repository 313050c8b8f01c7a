# CMake toolchain file of arm64, AArch64: static freestanding ELF for Linux, by clang and lld alone.
#
#   cmake -S your-project -B build -G Ninja --toolchain path/to/toolchains/arm64.cmake
#   cmake --build build && ctest --test-dir build
#
# The project brings its own _start: there is no C library and no sysroot. CMake runs its tests through the emulator
# named here. Another compiler: -D EXECMEM_CLANG=/path/to/clang.
#
# -mno-outline-atomics: clang's default calls a run-time library that is not there.
set(EXECMEM_PORT arm64)
set(EXECMEM_TRIPLE aarch64-unknown-linux)
set(EXECMEM_EMULATOR qemu-aarch64 -cpu max)
set(EXECMEM_FLAGS -mno-outline-atomics)
set(CMAKE_SYSTEM_PROCESSOR aarch64)

include("${CMAKE_CURRENT_LIST_DIR}/common.cmake")
